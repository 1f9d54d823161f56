"""Where the history of a workload steps, and whether it leaks away slowly.

A series holds one median per commit in the order of the commits, all of one
environment. `make bench-history` measures how often the rules here are wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from profiler.analysis.stats import Floats, student_p
from profiler.types import Direction

FEWEST = 3
"""Fewer points than this are no level: any two outliers would be a step."""

LEVEL = 9e-4
"""Two-sided p up to which a step counts; `make bench-history` measures what it costs."""

SMALLEST = 0.02
"""Relative change below which a step does not matter."""

SMALLEST_LEAK = 0.03
"""A leak must be larger: the best stretch of a quiet series is already better than its mean."""

STRETCH = 10
"""Points of a stable stretch: the best one and the newest one are compared."""

_NEIGHBOURS = 5
_OUTLYING = 4.0
_MOST_APART = 0.25
_HIDDEN = 0.05
_MOST_STEPS = 20
_MOST_DEPENDENT = 0.9
_DOUBT = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """A step: `index` is the first point after it.

    `before` and `after` are the centres of the stretches on both sides in the
    unit of the values (geometric, outliers left out), `effect` is after / before - 1.
    `p_value` is two-sided, of one look at this place.
    """

    index: int
    before: float
    after: float
    effect: float
    p_value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """The newest stretch is worse than the best one, and no step explains it.

    The best stretch is `start` up to but not including `end`; centres, effect
    and p (times the number of stretches looked at) as in `ChangePoint`.
    """

    start: int
    end: int
    before: float
    after: float
    effect: float
    p_value: float


def change_points(
    values: Sequence[float], *, noise_floor: float = 0.0, level: float = LEVEL
) -> tuple[ChangePoint, ...]:
    """Every step of a series, in order.

    For 1, 2, 3 ... steps the least-squares segments of the log values (exact;
    Auger and Lawrence 1989) with at least `FEWEST` points each are tried; the
    most steps count that all have p <= `level` by Student's t with the pooled
    unbiased variance and a size of at least `SMALLEST` and `noise_floor`
    (shares). Where a step is not sure alone but two are, as up and down again,
    those must be `_HIDDEN` times as sure. Points beyond `_OUTLYING` robust
    deviations of the median of their five neighbours are left out first: it
    takes three of five points to make a level. Variances grow by what
    neighbours have in common (AR(1), Priestley 1981, 5.3.5). Raises
    `ValueError` for a value that is not positive and finite.
    """
    logs = _logs(values)
    kept = np.flatnonzero(~_apart(logs))
    calm = logs[kept]
    smallest = float(np.log1p(max(SMALLEST, noise_floor)))
    found: tuple[ChangePoint, ...] = ()
    allowed = level
    for breaks in _segmentations(calm):
        steps, chances = _tested(calm, breaks)
        if (np.abs(steps) >= smallest).all() and (chances <= allowed).all():
            found, allowed = _points(calm, breaks, chances, kept), level
        elif allowed < level:
            break
        else:
            allowed = level * _HIDDEN
    return found


def slow_leak(
    values: Sequence[float],
    *,
    direction: Direction,
    steps: Sequence[ChangePoint] = (),
    noise_floor: float = 0.0,
    level: float = LEVEL,
) -> Leak | None:
    """Whether the newest `STRETCH` points are worse than the best `STRETCH` before them.

    `steps` are those already known: their effect is taken out first. The noise
    is that around a straight line, so that the leak itself is none. Raises
    `ValueError` as `change_points` does.
    """
    logs = _logs(values)
    if len(logs) < 2 * STRETCH + FEWEST:
        return None
    logs = np.where(_apart(logs), _middle(logs), logs)
    sign = 1.0 if direction == "lower" else -1.0
    level_of = sign * _without(logs, steps)
    stretches = sliding_window_view(level_of[:-STRETCH], STRETCH).mean(axis=1)
    start = int(np.argmin(stretches))
    rise = float(level_of[-STRETCH:].mean() - stretches[start])
    places = np.arange(len(logs), dtype=np.float64)
    around = level_of - np.polyval(np.polyfit(places, level_of, 1), places)
    error2 = 2 * _variance_of_mean(around, STRETCH, fitted=2)
    looks = len(stretches) / STRETCH
    p_value = min(1.0, looks * _p(rise, error2, len(logs) - 2))
    if rise < np.log1p(max(SMALLEST_LEAK, noise_floor)) or p_value > level:
        return None
    before = float(logs[start : start + STRETCH].mean())
    return Leak(
        start=start,
        end=start + STRETCH,
        before=float(np.exp(before)),
        after=float(np.exp(before + sign * rise)),
        effect=float(np.expm1(sign * rise)),
        p_value=p_value,
    )


def _logs(values: Sequence[float]) -> Floats:
    given = np.asarray(values, dtype=np.float64)
    if not (np.isfinite(given) & (given > 0)).all():
        raise ValueError("every point of a series needs a positive, finite value")
    logs: Floats = np.log(given)
    return logs


def _apart(logs: Floats) -> npt.NDArray[np.bool_]:
    """Points far from the median of their neighbours; none when too many are."""
    far = np.abs(logs - _middle(logs)) > _OUTLYING * _noise(logs)
    return far & (far.mean() <= _MOST_APART) if len(logs) else far


def _middle(logs: Floats) -> Floats:
    """The median of every point and its neighbours, at the ends of the same first or last five."""
    if len(logs) < _NEIGHBOURS:
        return logs
    inner = np.median(sliding_window_view(logs, _NEIGHBOURS), axis=1)
    side = _NEIGHBOURS // 2
    return np.concatenate([inner[:1].repeat(side), inner, inner[-1:].repeat(side)])


def _noise(logs: Floats) -> float:
    """Standard deviation from the differences of neighbours, which no step disturbs."""
    if len(logs) < 2:
        return 0.0
    return float(np.median(np.abs(np.diff(logs)))) / (0.6745 * 2**0.5)


def _segmentations(logs: Floats) -> Iterator[list[int]]:
    """The least-squares segments with one break, with two, and so on: where each but the first
    begins."""
    count = len(logs)
    cost = _costs(logs)
    best = cost[0]
    before: list[npt.NDArray[np.int64]] = []
    for breaks in range(1, min(_MOST_STEPS, count // FEWEST - 1) + 1):
        tried = best[:, None] + cost
        before.append(np.argmin(tried, axis=0))
        best = np.min(tried, axis=0)
        found, at = [], count
        for earlier in reversed(before[:breaks]):
            at = int(earlier[at])
            found.append(at)
        yield found[::-1]


def _costs(logs: Floats) -> Floats:
    """Squares around the mean of every stretch from a place up to another, inf for short ones."""
    places = np.arange(len(logs) + 1)
    centred = logs - logs.mean() if len(logs) else logs
    sums = np.concatenate([[0.0], np.cumsum(centred)])
    squares = np.concatenate([[0.0], np.cumsum(centred**2)])
    lengths = places[None, :] - places[:, None]
    cost = squares[None, :] - squares[:, None]
    cost -= (sums[None, :] - sums[:, None]) ** 2 / np.maximum(lengths, 1)
    return np.where(lengths < FEWEST, np.inf, cost)


def _tested(logs: Floats, breaks: Sequence[int]) -> tuple[Floats, Floats]:
    """Size (log) and two-sided p of every break against the segments beside it."""
    parts = np.split(logs, list(breaks))
    around = np.concatenate([part - part.mean() for part in parts])
    means = np.array([part.mean() for part in parts])
    errors = [_variance_of_mean(around, len(part), fitted=len(parts)) for part in parts]
    steps: Floats = np.diff(means)
    freedom = len(logs) - len(parts)
    chances = [
        _p(float(step), errors[at] + errors[at + 1], freedom) for at, step in enumerate(steps)
    ]
    return steps, np.array(chances)


def _variance_of_mean(around: Floats, points: int, *, fitted: int) -> float:
    """Of the mean of `points` neighbours, from residuals `around` `fitted` parameters."""
    variance = float(around @ around) / max(1, len(around) - fitted)
    shared = _dependence(around, fitted=fitted)
    lags = np.arange(1, points)
    grown = 1 + 2 * float(((1 - lags / points) * shared**lags).sum())
    return variance * grown / points


def _dependence(around: Floats, *, fitted: int) -> float:
    """Correlation of neighbours, corrected for what fitting took away; 0 when it is none.

    Half a standard error is taken off: most series have none, and believing
    in some would hide their steps.
    """
    total = float(around @ around)
    if total <= 0:
        return 0.0
    raw = float(around[:-1] @ around[1:]) / total
    corrected = raw + (fitted + 3 * raw) / len(around) - _DOUBT / math.sqrt(len(around))
    return min(_MOST_DEPENDENT, max(0.0, corrected))


def _p(difference: float, error2: float, freedom: int) -> float:
    if error2 <= 1e-18:
        return 0.0 if abs(difference) > 1e-9 else 1.0
    return student_p(difference / error2**0.5, max(1, freedom))


def _points(
    logs: Floats, breaks: Sequence[int], chances: Floats, kept: npt.NDArray[np.int64]
) -> tuple[ChangePoint, ...]:
    """The steps at `breaks` of the points that were `kept`."""
    means = [float(part.mean()) for part in np.split(logs, list(breaks))]
    return tuple(
        ChangePoint(
            index=int(kept[place]),
            before=float(np.exp(means[at])),
            after=float(np.exp(means[at + 1])),
            effect=float(np.expm1(means[at + 1] - means[at])),
            p_value=float(chances[at]),
        )
        for at, place in enumerate(breaks)
    )


def _without(logs: Floats, steps: Sequence[ChangePoint]) -> Floats:
    """The series as if none of `steps` had happened."""
    out = logs.copy()
    for step in steps:
        out[step.index :] -= np.log1p(step.effect)
    return out
