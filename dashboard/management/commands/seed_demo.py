"""`manage.py seed_demo`: a generated model with history, changes and a tuning, or its removal."""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from dashboard.management.base import ContractCommand
from dashboard.services.demo_remove import remove_demo
from dashboard.services.demo_seed import seed_demo
from dashboard.services.demo_story import MODEL, PLATFORM
from profiler.errors import UserError


class Command(ContractCommand):
    help = "Make demo data: generated, labelled, and removable by --remove."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--seed", type=int, default=1, help="gives the numbers (default: 1)")
        parser.add_argument("--remove", action="store_true", help="take all of it away again")

    def handle(self, *args: object, **options: object) -> None:
        try:
            said = _removed() if options["remove"] else _seeded(int(str(options["seed"])))
        except UserError as error:
            self.stderr.write(error.line())
            sys.exit(int(error.exit_code))
        self.stdout.write(said)


def _seeded(seed: int) -> str:
    made = seed_demo(seed)
    return (
        f"Made demo data (generated, nothing was measured): model {MODEL} on {PLATFORM}, "
        f"{made.commits} commits, {made.runs} runs, {made.traces} traces, "
        f"{made.changes} confirmed changes, a tuning with {made.kept} kept and "
        f"{made.reverted} reverted iterations.\n"
        "Look at Overview first. Take it away by `manage.py seed_demo --remove`."
    )


def _removed() -> str:
    gone = remove_demo()
    return f"Removed the demo data: {gone.rows} rows and {gone.files} files."
