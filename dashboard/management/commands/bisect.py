"""`manage.py bisect`: the commit between a good and a bad one that changed the speed."""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path

from dashboard.management.base import ContractCommand
from dashboard.models import Bisect, Repository
from dashboard.queries.bisect import BisectView, StepLine, bisect_view, get_bisect
from dashboard.services.bisect import NewBisect, create_bisect
from dashboard.services.catalog import device_of, ensure_platform
from dashboard.services.workloads import of_run, of_spec
from profiler.analysis.ladder import Settings
from profiler.errors import UserError, printable
from profiler.types import RunSpec

POLL_S = 1.0
INTERRUPTED = 130
Options = Mapping[str, object]


class Command(ContractCommand):
    help = "Find the commit between a good and a bad one that changed the speed of a workload."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--repo", required=True, help="name of a registered repository")
        parser.add_argument("--good", required=True, help="branch, tag or whole hash")
        parser.add_argument("--bad", default="HEAD", help="built on the good one (default: HEAD)")
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--spec", metavar="FILE", help="the workload: a specification as JSON")
        what.add_argument("--like-run", type=int, metavar="RUN", help="the workload of a run")
        parser.add_argument("--platform", default="", help="default: this installation's")
        parser.add_argument("--margin", type=float, default=2.0, help="in per cent (default: 2)")
        parser.add_argument("--seed", type=int, help="of the order of launches")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument("--no-wait", action="store_true", help="queue it and leave")
        parser.add_argument("--timeout", type=float, metavar="SECONDS", help="wait no longer")

    def handle(self, *args: object, **options: object) -> None:
        try:
            made = create_bisect(_wanted(options), None)
        except UserError as error:
            self.stderr.write(error.line())
            sys.exit(int(error.exit_code))
        self.stderr.write(f"bisect {made.pk} is queued")
        if options["no_wait"]:
            self.stdout.write(str(made.pk))
            return
        try:
            view = self._wait(made, options["timeout"])
        except KeyboardInterrupt:
            self.stderr.write(f"bisect {made.pk} goes on; its page shows it and can cancel it")
            sys.exit(INTERRUPTED)
        self.stdout.write(as_json(view) if options["json"] else as_text(view))
        if view.exit_code:
            sys.exit(int(view.exit_code))

    def _wait(self, made: Bisect, timeout_s: object) -> BisectView:
        """Until it has ended or time is up; each step is told on stderr."""
        deadline = time.monotonic() + float(str(timeout_s)) if timeout_s else None
        said = ""
        while True:
            row = get_bisect(made.pk)
            if row is None:
                raise UserError(f"Bisect {made.pk} was deleted", "start it again")
            view = bisect_view(row)
            if row.is_terminal or (deadline is not None and time.monotonic() > deadline):
                return view
            if _progress(view) != said:
                said = _progress(view)
                self.stderr.write(said)
            time.sleep(POLL_S)


def _progress(view: BisectView) -> str:
    step = view.current
    if step is None:
        return view.sentence
    return f"{view.sentence} Pair {step.pairs} of {step.wanted}"


def as_text(view: BisectView) -> str:
    """One screen for a terminal; foreign text made harmless."""
    lines = [f"Bisect {view.row.pk}: {view.sentence}", *([view.row.hint] if view.row.hint else [])]
    lines += [f"  {_step_text(step)}" for step in view.steps]
    return "\n".join(printable(line, 1200) for line in lines)


def _step_text(step: StepLine) -> str:
    commit = step.row.commit
    against = "its parent" if step.row.kind == "confirm" else "good"
    words = f"{commit.sha[:10]} {commit.subject[:50]:<50} against {against}"
    answer = step.row.answer or "measuring"
    return f"{words}  {answer:<9}  {step.figures}".rstrip()


def as_json(view: BisectView) -> str:
    """The machine-readable summary."""
    row = view.row
    summary = {
        "schema": 1,
        "bisect": row.pk,
        "state": row.state,
        "outcome": row.outcome or None,
        "exit_code": int(view.exit_code),
        "sentence": view.sentence,
        "repository": row.repository.slug,
        "good": row.good.sha if row.good else None,
        "bad": row.bad.sha if row.bad else None,
        "culprit": row.culprit.sha if row.culprit else None,
        "effect": row.effect,
        "commits": view.total,
        "suspected": [line.commit.sha for line in view.commits if line.fate != "cleared"],
        "steps": [
            {
                "commit": step.row.commit.sha,
                "kind": step.row.kind,
                "answer": step.row.answer or None,
                "comparison": step.row.comparison_id,
                "effect": step.compared.effect if step.compared else None,
                "pairs": step.pairs,
                "reason": step.row.reason,
            }
            for step in view.steps
        ],
    }
    return json.dumps(summary, indent=1, allow_nan=False)


def _wanted(options: Options) -> NewBisect:
    repository = Repository.objects.filter(slug=str(options["repo"])).first()
    if repository is None:
        known = ", ".join(Repository.objects.values_list("slug", flat=True)) or "none yet"
        raise UserError(f"There is no repository {options['repo']}", f"registered: {known}")
    platform = ensure_platform(str(options["platform"]))
    seed = options["seed"]
    return NewBisect(
        repository=repository,
        good=str(options["good"]),
        bad=str(options["bad"]),
        platform=platform,
        spec=_spec(options, device_of(platform.slug)),
        settings=Settings(margin=float(str(options["margin"])) / 100),
        seed=None if seed is None else int(str(seed)),
    )


def _spec(options: Options, device: str) -> RunSpec:
    if options["spec"]:
        return of_spec(Path(str(options["spec"])), device).specs[0]
    return of_run(int(str(options["like_run"])), device).specs[0]
