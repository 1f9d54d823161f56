"""What all verbs of the tuning loop share: their error, and the ladder of the rows."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.models import Iteration, IterationState, Tuning
from dashboard.services.tuning_ladder import Ladder, Step, climb
from profiler.errors import UserError

REASON_CHARS = 1000


class TuningError(UserError):
    """A step of the loop that cannot be taken, or not any more."""

    kind = "tuning"


def kept_of(tuning: Tuning) -> list[Iteration]:
    """The kept iterations in the order they were kept."""
    found = tuning.iterations.filter(state=IterationState.KEPT)
    return list(found.select_related("commit").order_by("decided_at", "number"))


def ladder_of(tuning: Tuning, kept: Sequence[Iteration]) -> Ladder:
    """The ladder of the kept iterations, given in the order they were kept."""
    return climb(
        tuning.day0_value,
        [
            Step(
                number=row.number,
                effect=row.effect,
                low=row.low,
                high=row.high,
                predicted=row.predicted_effect,
                setback=row.setback,
            )
            for row in kept
        ],
    )
