"""The history of one workload on one platform: readings in an order, as points and segments.

Knows no database: whoever has readings of a headline metric can ask. Values
are in the unit of their metric (ns for all headline metrics).
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

BETWEEN_LAUNCHES = 3
"""From so many launches at one place on, the spread is that between launches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One launch: the median of its timed iterations.

    `place` is where it stands in the order (the position of its commit, or the
    number of its run); `iqr` is the interquartile range of its `n` samples,
    None where there was one only.
    """

    run_id: int
    place: int
    value: float
    iqr: float | None
    n: int
    environment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """All launches at one place in one environment: the median of their values.

    `low` and `high` are the quartiles of the launches' values where `between`
    is true, else half the interquartile range of the newest launch's samples
    around the value; both are None where neither is known. `n` counts launches
    where there are several, else the samples of the one.
    """

    place: int
    run_ids: tuple[int, ...]
    value: float
    low: float | None
    high: float | None
    between: bool
    n: int
    environment: str

    @property
    def run_id(self) -> int:
        """The newest launch, which stands for the point."""
        return self.run_ids[-1]

    @property
    def spread(self) -> float | None:
        """Half the width of the band."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


def points(readings: Sequence[Reading]) -> tuple[Point, ...]:
    """Launches of one place and environment together, in the order of places.

    Of several environments at one place that with the oldest run comes first.
    """
    groups: dict[tuple[int, str], list[Reading]] = {}
    for reading in sorted(readings, key=lambda one: (one.place, one.run_id)):
        groups.setdefault((reading.place, reading.environment), []).append(reading)
    return tuple(_point(group) for group in groups.values())


def _point(launches: Sequence[Reading]) -> Point:
    values = [one.value for one in launches]
    value = statistics.median(values) if len(values) > 1 else values[0]
    newest = launches[-1]
    between = len(values) >= BETWEEN_LAUNCHES
    low: float | None = None
    high: float | None = None
    if between:
        low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    elif newest.iqr is not None and newest.n > 1:
        low, high = value - newest.iqr / 2, value + newest.iqr / 2
    return Point(
        place=newest.place,
        run_ids=tuple(one.run_id for one in launches),
        value=value,
        low=low,
        high=high,
        between=between,
        n=len(values) if len(values) > 1 else newest.n,
        environment=newest.environment,
    )


def segments(found: Sequence[Point]) -> tuple[tuple[int, int], ...]:
    """(first, one past the last) of the stretches whose environments are comparable."""
    starts = [
        place
        for place in range(len(found))
        if place == 0 or found[place].environment != found[place - 1].environment
    ]
    ends = [*starts[1:], len(found)][: len(starts)]
    return tuple(zip(starts, ends, strict=True))


def best(found: Sequence[Point], direction: str) -> Point:
    """The point with the best value, of equals the first; raises `ValueError` without any."""
    pick = min if direction == "lower" else max
    return pick(found, key=lambda point: point.value)


def speed(baseline: float | None, value: float | None, direction: str) -> float | None:
    """How many times as fast as the baseline: 1.59 is faster, whatever the metric's direction.

    None where a side is missing or zero.
    """
    if not baseline or not value:
        return None
    return baseline / value if direction == "lower" else value / baseline
