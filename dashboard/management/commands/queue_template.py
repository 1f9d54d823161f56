"""`manage.py queue_template`: the plan page for scripts and schedules."""

from __future__ import annotations

import secrets
import sys
from argparse import ArgumentParser

from django.conf import settings

from dashboard.management.base import ContractCommand
from dashboard.queries.templates import Plan, get_version, plan
from dashboard.services import catalog, templates
from profiler import units
from profiler.errors import UserError


class Command(ContractCommand):
    help = "Queue every run of a template in random order, as one group."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="name of the template")
        parser.add_argument("--platform", default=settings.PLATFORM, metavar="NAME")
        parser.add_argument(
            "--model", action="append", metavar="NAME", help="in place of its own (repeat it)"
        )
        parser.add_argument("--seed", type=int, help="of the random order (default: a new one)")
        parser.add_argument("--dry-run", action="store_true", help="only say what would be queued")

    def handle(self, *args: object, **options: object) -> None:
        try:
            self.stdout.write(_queued(options))
        except UserError as error:
            self.stderr.write(error.line())
            sys.exit(int(error.exit_code))


def _queued(options: dict[str, object]) -> str:
    """Queue it, unless it is a dry run; what happened in one line."""
    name, slug = str(options["name"]), str(options["platform"])
    version = get_version(name, None)
    if version is None:
        raise UserError(f"There is no template {name!r}", "see the page Templates for their names")
    chosen = options["model"]
    models = [str(one) for one in chosen] if isinstance(chosen, list) else []
    specs = templates.runs_of(version, models=models, device=catalog.device_of(slug))
    words = _words(plan(specs, slug))
    if options["dry_run"]:
        return f"Would queue {words} on {slug}."
    given = options["seed"]
    seed = given if isinstance(given, int) else secrets.randbits(templates.SEED_BITS)
    runs = templates.queue_template(
        version, specs, platform=catalog.ensure_platform(slug), user=None, seed=seed, key=None
    )
    return f"Queued {words} on {slug} as group {runs[0].group_id}, order of seed {seed}."


def _words(planned: Plan) -> str:
    if planned.known_ns is None:
        return f"{len(planned.rows)} runs (time unknown: no history)"
    known = units.duration(planned.known_ns)
    rest = f", {planned.unknown} without history" if planned.unknown else ""
    return f"{len(planned.rows)} runs (usually {known} one after another{rest})"
