"""`manage.py compare`: two commits to a verdict, from a terminal or from CI on the server."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from dashboard.management.measuring import (
    MeasuringCommand,
    Options,
    platform_of,
    repository_of,
    seed_of,
    settings_of,
)
from dashboard.models import Comparison
from dashboard.queries.comparisons import ComparisonView, comparison_view, get_comparison
from dashboard.services.catalog import device_of
from dashboard.services.comparisons import NewComparison, create_comparison
from dashboard.services.workloads import Workloads, of_run, of_spec, of_template
from dashboard.views.comparison_exports import as_json as json_of
from dashboard.views.comparison_exports import as_text
from profiler.errors import ExitCode


class Command(MeasuringCommand[Comparison, ComparisonView]):
    help = "Measure two commits of a repository against each other and print the verdict."
    noun = "comparison"

    def add_subject(self, parser: ArgumentParser) -> None:
        parser.add_argument("--base", required=True, help="branch, tag, HEAD or whole hash")
        parser.add_argument("--candidate", default="HEAD", help="what is tried (default: HEAD)")
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--template", default="quick", help="workloads (default: quick)")
        what.add_argument("--spec", metavar="FILE", help="one workload: a specification as JSON")
        what.add_argument("--like-run", type=int, metavar="RUN", help="the workload of a run")
        parser.add_argument(
            "--gate", action="store_true", help="leave with the verdict's exit code"
        )

    def create(self, options: Options) -> int:
        return create_comparison(_wanted(options), None).pk

    def read(self, number: int) -> Comparison | None:
        return get_comparison(number)

    def look(self, row: Comparison) -> ComparisonView:
        return comparison_view(row)

    def progress(self, view: ComparisonView) -> str:
        if not view.pairs:
            return "waiting for a worker" if view.row.baseline_id else "looking up the commits"
        figures = ", ".join(item.figures for item in view.workloads if item.figures)
        return f"pair {view.pairs} of {view.pairs_wanted}, so far {figures or 'no figure'}"

    def told(self, view: ComparisonView, *, as_json: bool) -> str:
        return json_of(view) if as_json else as_text(view)

    def exit_code(self, view: ComparisonView, options: Options) -> int:
        if options["gate"]:
            return int(view.exit_code)
        return int(ExitCode.BAD_INPUT) if view.row.state == "failed" else 0


def _wanted(options: Options) -> NewComparison:
    repository, platform = repository_of(options), platform_of(options)
    chosen = _workloads(options, device_of(platform.slug))
    return NewComparison(
        repository=repository,
        baseline=str(options["base"]),
        candidate=str(options["candidate"]),
        platform=platform,
        specs=chosen.specs,
        version=chosen.version,
        settings=settings_of(options),
        seed=seed_of(options),
    )


def _workloads(options: Options, device: str) -> Workloads:
    if options["spec"]:
        return of_spec(Path(str(options["spec"])), device)
    if options["like_run"]:
        return of_run(int(str(options["like_run"])), device)
    return of_template(str(options["template"]), device)
