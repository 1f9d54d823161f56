"""Measured commits for tests: a repository whose runs took given times, in git order."""

from __future__ import annotations

import random
from collections.abc import Sequence

from dashboard.models import (
    Change,
    ChangeDirection,
    ChangeKind,
    ChangeState,
    Commit,
    Repository,
    Run,
    RunState,
)
from dashboard.services.clock import db_now
from profiler.types import RunSpec
from tests.factories import make_platform, make_result, make_run, make_spec, make_workload
from tests.sources import make_commit, make_repository

MARK = "a" * 64


def noisy(*levels: tuple[int, float], noise: float = 0.005, seed: int = 1) -> list[float]:
    """`(20, 1e6), (5, 1.1e6)`: so many points around each level."""
    drawn = random.Random(seed)
    return [
        level * (1 + drawn.uniform(-noise, noise)) for count, level in levels for _ in range(count)
    ]


def make_history(
    values: Sequence[float],
    *,
    repository: Repository | None = None,
    mark: str = MARK,
    spec: RunSpec | None = None,
) -> list[Run]:
    """One commit and one run of it per value."""
    repository = repository or Repository.objects.first() or make_repository()
    return [measured(make_commit(repository), value, mark=mark, spec=spec) for value in values]


def measured(commit: Commit, value: float, *, mark: str = MARK, spec: RunSpec | None = None) -> Run:
    """One more run of a commit."""
    run = make_run(RunState.SUCCEEDED, commit=commit, spec=spec or make_spec())
    make_result(run, value=value, comparable_hash=mark)
    return run


def make_change(before: Run | None = None, after: Run | None = None, **fields: object) -> Change:
    """A change between two runs; without them between two new commits."""
    if before is None or after is None:
        before, after = make_history([1e6, 1.1e6])
    assert before.commit is not None and after.commit is not None
    now = db_now()
    values: dict[str, object] = {
        "repository": after.commit.repository,
        "workload": make_workload(),
        "platform": make_platform(),
        "metric": "tpot",
        "comparable_hash": MARK,
        "kind": ChangeKind.STEP,
        "direction": ChangeDirection.SLOWER,
        "before_commit": before.commit,
        "after_commit": after.commit,
        "before_run": before,
        "after_run": after,
        "before_value": 1e6,
        "after_value": 1.1e6,
        "effect": 0.1,
        "p_value": 1e-6,
        "state": ChangeState.NEW,
        "found_at": now,
        "state_at": now,
    }
    return Change.objects.create(**(values | fields))
