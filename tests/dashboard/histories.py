"""Histories for tests: measured runs at commits, in whatever order they ran."""

# ruff: noqa: ANN401 - the values of columns are of any type

from __future__ import annotations

from typing import Any

from dashboard.models import Commit, Repository, Run, RunState, Standing, Trace, TraceState
from tests.factories import make_operator, make_result, make_run, make_spec, make_trace
from tests.sources import make_commit, make_repository


def measured(value: float, commit: Commit | None = None, **fields: Any) -> Run:
    """A run with a result; `mark` is the letter of its environment."""
    mark = fields.pop("mark", "a")
    iqr = fields.pop("iqr", value * 0.02)
    environment = {"fields": {"torch": mark}, "missing": [], "comparable_hash": mark * 64}
    spec = make_spec(**fields)
    run = make_run(RunState.SUCCEEDED, spec=spec, commit=commit)
    make_result(
        run,
        value=value,
        iqr=iqr,
        comparable_hash=mark * 64,
        environment={**environment, "exact_hash": mark * 64, "schema": 1},
    )
    return run


def commits(count: int, slug: str = "models") -> list[Commit]:
    """The commits of a new repository, oldest first."""
    repository: Repository = make_repository(slug)
    return [make_commit(repository, f"change {number}") for number in range(count)]


def traced(run: Run, self_ns: int, *, steps: int = 2, name: str = "aten::mm") -> Trace:
    """A trace of the run that was read, with two operators."""
    trace = make_trace(TraceState.READY, run=run, steps=steps)
    make_operator(trace, name, canonical="aten::mm", host_self_ns=self_ns, count=4)
    make_operator(trace, "aten::add", host_self_ns=1000)
    return trace


def standing() -> Standing:
    """The one there is."""
    return Standing.objects.get()
