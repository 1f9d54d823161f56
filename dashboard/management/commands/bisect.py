"""`manage.py bisect`: the commit between a good and a bad one that changed the speed."""

from __future__ import annotations

import json
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
from dashboard.models import Bisect
from dashboard.queries.bisect import BisectView, StepLine, bisect_view, get_bisect
from dashboard.services.bisect import NewBisect, create_bisect
from dashboard.services.catalog import device_of
from dashboard.services.workloads import of_run, of_spec
from profiler.errors import printable
from profiler.types import RunSpec


class Command(MeasuringCommand[Bisect, BisectView]):
    help = "Find the commit between a good and a bad one that changed the speed of a workload."
    noun = "bisect"

    def add_subject(self, parser: ArgumentParser) -> None:
        parser.add_argument("--good", required=True, help="branch, tag or whole hash")
        parser.add_argument("--bad", default="HEAD", help="built on the good one (default: HEAD)")
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--spec", metavar="FILE", help="the workload: a specification as JSON")
        what.add_argument("--like-run", type=int, metavar="RUN", help="the workload of a run")

    def create(self, options: Options) -> int:
        return create_bisect(_wanted(options), None).pk

    def read(self, number: int) -> Bisect | None:
        return get_bisect(number)

    def look(self, row: Bisect) -> BisectView:
        return bisect_view(row)

    def progress(self, view: BisectView) -> str:
        step = view.current
        if step is None:
            return view.sentence
        return f"{view.sentence} Pair {step.pairs} of {step.wanted}"

    def told(self, view: BisectView, *, as_json: bool) -> str:
        return json_of(view) if as_json else as_text(view)

    def exit_code(self, view: BisectView, options: Options) -> int:
        return int(view.exit_code)


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


def json_of(view: BisectView) -> str:
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
    repository, platform = repository_of(options), platform_of(options)
    return NewBisect(
        repository=repository,
        good=str(options["good"]),
        bad=str(options["bad"]),
        platform=platform,
        spec=_spec(options, device_of(platform.slug)),
        settings=settings_of(options),
        seed=seed_of(options),
    )


def _spec(options: Options, device: str) -> RunSpec:
    if options["spec"]:
        return of_spec(Path(str(options["spec"])), device).specs[0]
    return of_run(int(str(options["like_run"])), device).specs[0]
