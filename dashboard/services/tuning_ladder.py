"""The ladder of a tuning: from the Day-0 value over every kept iteration to where we are. Pure.

Values are in the unit of the tuning's metric, effects relative changes of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from profiler.types import Direction


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A kept iteration as the ladder needs it; `effect` is None where no pairs settled it.

    `low` and `high` are the 95 % interval of `effect`; `setback` is what was
    lost before it by a change that it mends.
    """

    number: int
    effect: float | None
    low: float | None = None
    high: float | None = None
    predicted: float | None = None
    setback: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One bar: the value before and after; a setback is a bar of its own, of the same number."""

    number: int
    is_setback: bool
    before: float
    after: float
    predicted: float | None
    measured: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Where a tuning stands.

    `now` is the Day-0 value times every kept change: effects come from pairs
    and hold across environments, absolute values do not. `low` and `high` are
    the 95 % interval of `change`, from the intervals of the steps taken as
    independent; None before the first, while a step has none, and after a loss:
    that is known without one.
    """

    day0: float
    now: float
    rungs: tuple[Rung, ...]
    low: float | None
    high: float | None

    @property
    def change(self) -> float:
        """Relative change of the metric since Day-0."""
        return self.now / self.day0 - 1


def climb(day0: float, steps: Sequence[Step]) -> Ladder:
    """Stack the steps, given in the order they were kept."""
    level = day0
    rungs: list[Rung] = []
    for step in steps:
        if step.setback is not None:
            lost = level * (1 + step.setback)
            rungs.append(
                Rung(
                    number=step.number,
                    is_setback=True,
                    before=level,
                    after=lost,
                    predicted=None,
                    measured=True,
                )
            )
            level = lost
        after = level if step.effect is None else level * (1 + step.effect)
        rungs.append(
            Rung(
                number=step.number,
                is_setback=False,
                before=level,
                after=after,
                predicted=None if step.predicted is None else level * (1 + step.predicted),
                measured=step.effect is not None,
            )
        )
        level = after
    low, high = _interval(level / day0, steps)
    return Ladder(day0=day0, now=level, rungs=tuple(rungs), low=low, high=high)


def _interval(ratio: float, steps: Iterable[Step]) -> tuple[float | None, float | None]:
    """The interval of the whole change: half widths of the logs, added in quadrature."""
    below = above = 0.0
    count = 0
    for step in steps:
        if step.effect is None or step.low is None or step.high is None or step.setback is not None:
            return None, None
        middle = math.log1p(step.effect)
        below += (middle - math.log1p(step.low)) ** 2
        above += (math.log1p(step.high) - middle) ** 2
        count += 1
    if not count:
        return None, None
    return ratio * math.exp(-math.sqrt(below)) - 1, ratio * math.exp(math.sqrt(above)) - 1


def speed(day0: float, value: float, direction: Direction) -> float:
    """How many times as fast as Day-0 a value is."""
    return day0 / value if direction == "lower" else value / day0


def effect_of_gain(share: float, direction: Direction) -> float:
    """The change of a metric when a step takes `share` (0 to below 1) less time.

    A time falls by the share; a rate rises by more: half the time is twice the rate.
    """
    return -share if direction == "lower" else 1 / (1 - share) - 1


def meets(value: float, target: float, direction: Direction) -> bool:
    """Whether `value` is at least as good as `target`."""
    return value <= target if direction == "lower" else value >= target
