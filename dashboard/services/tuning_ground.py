"""What an iteration is held against: the kept commit below it, or the change that it mends."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.models import Change, ChangeDirection, Commit, Iteration, Tuning
from dashboard.services.tuning_rows import kept_of
from profiler.metrics import METRICS


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The commit to compare with, the kept iteration it belongs to (none: Day-0), and the loss.

    `setback` is the relative change of the metric that came between the two.
    """

    baseline: Commit
    stands_on: Iteration | None
    setback: float | None


def ground_of(tuning: Tuning, change: Change | None) -> Ground:
    """What the next comparison of the tuning starts from now."""
    kept = kept_of(tuning)
    top = kept[-1] if kept else None
    commit = top.commit if top is not None and top.commit is not None else tuning.day0_commit
    if change is None or not _came_later(change, commit):
        return Ground(baseline=commit, stands_on=top, setback=None)
    return Ground(baseline=change.after_commit, stands_on=top, setback=_loss(change, tuning.metric))


def _came_later(change: Change, commit: Commit) -> bool:
    """Whether the change made slower what is kept, so that the ladder lost it meanwhile."""
    return (
        change.direction == ChangeDirection.SLOWER
        and change.repository_id == commit.repository_id
        and change.after_commit.position > commit.position
    )


def _loss(change: Change, metric: str) -> float:
    """The effect of the change on the tuning's metric, which may be a rate of the same time."""
    effect = change.shown_effect
    same = METRICS[change.metric].direction == METRICS[metric].direction
    return effect if same else 1 / (1 + effect) - 1
