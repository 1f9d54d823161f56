"""Rows of the tuning loop for tests, made by the services that make real ones."""

from __future__ import annotations

import dataclasses

from dashboard.models import (
    ComparedState,
    Comparison,
    ComparisonState,
    Iteration,
    Repository,
    RunState,
    TargetKind,
    Tuning,
    User,
)
from dashboard.services.clock import db_now
from dashboard.services.pairs import verdict_of, write_verdict
from dashboard.services.tuning import (
    Decision,
    NewIteration,
    NewTuning,
    Target,
    add_iteration,
    attach_comparison,
    decide_iteration,
    open_tuning,
)
from profiler.types import RunSpec
from tests.factories import make_platform, make_result, make_run, make_spec, make_user
from tests.sources import (
    make_commit,
    make_compared,
    make_comparison,
    make_pair,
    make_repository,
)

DAY0 = 8e6
REASON = "it is what was wanted"
BY_HAND = "answers compared by hand"


def make_tuning(
    *,
    repository: Repository | None = None,
    target: float = 4e6,
    day0: float = DAY0,
    spec: RunSpec | None = None,
    user: User | None = None,
) -> Tuning:
    """An open tuning of a decode workload: one Day-0 run of 8 ms per token, target 4 ms."""
    repository = repository or make_repository(f"models-{make_user().pk}")
    commit = repository.commits.order_by("position").first() or make_commit(repository, "Day-0")
    run = make_run(RunState.SUCCEEDED, spec=spec or make_spec(), commit=commit)
    make_result(run, value=day0)
    wanted = NewTuning(
        workload=run.workload,
        platform=make_platform(),
        repository=repository,
        target=Target(kind=TargetKind.VALUE, value=target),
        runs=(run.pk,),
    )
    return open_tuning(wanted, user)


def make_iteration(
    tuning: Tuning, hypothesis: str = "fuse the softmax", *, predicted: float | None = -0.1
) -> Iteration:
    """An idea."""
    wanted = NewIteration(hypothesis=hypothesis, predicted_effect=predicted)
    return add_iteration(tuning, wanted, None)


def measure(
    iteration: Iteration,
    effect: float,
    *,
    pairs: int = 10,
    state: str = ComparisonState.ENDED,
    others: tuple[str, ...] = (),
) -> Comparison:
    """A comparison that ended for a new commit, its pairs `effect` apart, attached.

    `others` are the verdicts of further workloads.
    """
    tuning = iteration.tuning
    made = make_comparison(
        repository=tuning.repository,
        baseline=iteration.baseline,
        candidate=make_commit(tuning.repository, f"try {iteration.number}"),
    )
    compared = made.workloads.get()
    compared.workload = tuning.workload
    compared.save()
    for number in range(pairs):
        wobble = 1 + (number % 2 * 2 - 1) * 1e-4
        make_pair(compared, 1e6, 1e6 * (1 + effect) * wobble)
    compared.comparison = made
    write_verdict(compared, verdict_of(compared, compared.metric))
    for place, verdict in enumerate(others, 1):
        more = dataclasses.replace(make_spec(), batch=place + 1)
        add_workload(made, more, verdict)
    made.workloads.update(state=ComparedState.SETTLED)
    attach_comparison(iteration.pk, made.pk, None)
    Comparison.objects.filter(pk=made.pk).update(
        state=state, ended_at=db_now() if state == ComparisonState.ENDED else None
    )
    made.refresh_from_db()
    return made


def add_workload(comparison: Comparison, spec: RunSpec, verdict: str) -> None:
    """One more workload of a comparison, with its verdict as stored."""
    row = make_compared(comparison, spec)
    row.verdict = verdict
    row.save()


def keep(iteration: Iteration, *, despite: str = BY_HAND, user: User | None = None) -> Iteration:
    decision = Decision(keep=True, reason=REASON, despite=despite)
    return decide_iteration(iteration.pk, decision, user)


def revert(iteration: Iteration, reason: str = REASON, user: User | None = None) -> Iteration:
    return decide_iteration(iteration.pk, Decision(keep=False, reason=reason), user)


def make_kept(tuning: Tuning, effect: float = -0.1, **changes: object) -> Iteration:
    """An iteration that was measured and kept."""
    made = make_iteration(tuning, f"try number {tuning.iterations.count() + 1}", **changes)  # type: ignore[arg-type]
    measure(made, effect)
    return keep(made)
