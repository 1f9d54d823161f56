"""`manage.py compare`: two commits to a verdict, from a terminal or from CI on the server."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path

from dashboard.management.base import ContractCommand
from dashboard.models import Comparison, Repository
from dashboard.queries.comparisons import ComparisonView, comparison_view, get_comparison
from dashboard.services.catalog import device_of, ensure_platform
from dashboard.services.comparisons import NewComparison, create_comparison
from dashboard.services.workloads import Workloads, of_run, of_spec, of_template
from dashboard.views.comparison_exports import as_json, as_text
from profiler.analysis.ladder import Settings
from profiler.errors import ExitCode, UserError

POLL_S = 1.0
INTERRUPTED = 130
Options = Mapping[str, object]


class Command(ContractCommand):
    help = "Measure two commits of a repository against each other and print the verdict."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--repo", required=True, help="name of a registered repository")
        parser.add_argument("--base", required=True, help="branch, tag, HEAD or whole hash")
        parser.add_argument("--candidate", default="HEAD", help="what is tried (default: HEAD)")
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--template", default="quick", help="workloads (default: quick)")
        what.add_argument("--spec", metavar="FILE", help="one workload: a specification as JSON")
        what.add_argument("--like-run", type=int, metavar="RUN", help="the workload of a run")
        parser.add_argument("--platform", default="", help="default: this installation's")
        parser.add_argument("--margin", type=float, default=2.0, help="in per cent (default: 2)")
        parser.add_argument("--seed", type=int, help="of the order of launches")
        parser.add_argument(
            "--gate", action="store_true", help="leave with the verdict's exit code"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument("--no-wait", action="store_true", help="queue it and leave")
        parser.add_argument("--timeout", type=float, metavar="SECONDS", help="wait no longer")

    def handle(self, *args: object, **options: object) -> None:
        try:
            made = create_comparison(_wanted(options), None)
        except UserError as error:
            self.stderr.write(error.line())
            sys.exit(int(error.exit_code))
        self.stderr.write(f"comparison {made.pk} is queued")
        if options["no_wait"]:
            self.stdout.write(str(made.pk))
            return
        try:
            view = self._wait(made, options["timeout"])
        except KeyboardInterrupt:
            self.stderr.write(f"comparison {made.pk} goes on; its page shows it and can cancel it")
            sys.exit(INTERRUPTED)
        self.stdout.write(as_json(view) if options["json"] else as_text(view))
        if options["gate"]:
            sys.exit(int(view.exit_code))
        if view.row.state == "failed":
            sys.exit(int(ExitCode.BAD_INPUT))

    def _wait(self, made: Comparison, timeout_s: object) -> ComparisonView:
        """Until it has ended or time is up; each change is told on stderr."""
        deadline = time.monotonic() + float(str(timeout_s)) if timeout_s else None
        said = ""
        while True:
            row = get_comparison(made.pk)
            if row is None:
                raise UserError(f"Comparison {made.pk} was deleted", "start it again")
            view = comparison_view(row)
            if row.is_terminal or (deadline is not None and time.monotonic() > deadline):
                return view
            now = _progress(view)
            if now != said:
                self.stderr.write(now)
                said = now
            time.sleep(POLL_S)


def _progress(view: ComparisonView) -> str:
    if not view.pairs:
        return "waiting for a worker" if view.row.baseline_id else "looking up the commits"
    figures = ", ".join(item.figures for item in view.workloads if item.figures)
    return f"pair {view.pairs} of {view.pairs_wanted}, so far {figures or 'no figure'}"


def _wanted(options: Options) -> NewComparison:
    repository = Repository.objects.filter(slug=str(options["repo"])).first()
    if repository is None:
        known = ", ".join(Repository.objects.values_list("slug", flat=True)) or "none yet"
        raise UserError(f"There is no repository {options['repo']}", f"registered: {known}")
    platform = ensure_platform(str(options["platform"]))
    chosen = _workloads(options, device_of(platform.slug))
    seed = options["seed"]
    return NewComparison(
        repository=repository,
        baseline=str(options["base"]),
        candidate=str(options["candidate"]),
        platform=platform,
        specs=chosen.specs,
        version=chosen.version,
        settings=Settings(margin=float(str(options["margin"])) / 100),
        seed=None if seed is None else int(str(seed)),
    )


def _workloads(options: Options, device: str) -> Workloads:
    if options["spec"]:
        return of_spec(Path(str(options["spec"])), device)
    if options["like_run"]:
        return of_run(int(str(options["like_run"])), device)
    return of_template(str(options["template"]), device)
