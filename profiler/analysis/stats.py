"""Estimates and tests for paired measurements: plain numpy, exact for small samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

EXACT_LIMIT = 400
"""Up to so many pairs the signed-rank distribution is counted, above it is taken as normal."""

APART = 8.0
"""A pair further than so many median absolute deviations from the median stands apart."""

APART_SHARE = 0.2
"""More pairs than this share standing apart are no outliers but the shape of the noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """Hodges-Lehmann shift of `n` differences with the signed-rank interval and test.

    `low` and `high` bound the shift with confidence `confidence`; they are
    None when n is too small for that (below 6 pairs for 95 %). `p_value` is
    two-sided against a shift of zero.
    """

    n: int
    value: float
    low: float | None
    high: float | None
    confidence: float
    p_value: float


def shift(differences: Floats, confidence: float = 0.95) -> Shift:
    """The shift of at least one finite difference (Hollander, Wolfe, Chicken 2014, 3.1 to 3.3)."""
    averages = walsh_averages(differences)
    low, high = _interval(averages, len(differences), confidence)
    return Shift(
        n=len(differences),
        value=float(np.median(averages)),
        low=low,
        high=high,
        confidence=confidence,
        p_value=signed_rank_p(differences),
    )


def walsh_averages(differences: Floats) -> Floats:
    """The means of all pairs of differences, each with itself too, ascending: n(n+1)/2 values."""
    one, other = np.triu_indices(len(differences))
    averages: Floats = (differences[one] + differences[other]) / 2
    averages.sort()
    return averages


def _interval(averages: Floats, n: int, confidence: float) -> tuple[float | None, float | None]:
    cut = _critical(n, (1 - confidence) / 2)
    if cut is None:
        return None, None
    return float(averages[cut]), float(averages[len(averages) - 1 - cut])


@lru_cache(maxsize=512)
def _critical(n: int, tail: float) -> int | None:
    """The largest rank sum w with P(W <= w) <= `tail` for n pairs, None when there is none."""
    if n > EXACT_LIMIT:
        mean, deviation = _moments(n)
        return max(0, math.floor(mean + NormalDist().inv_cdf(tail) * deviation - 0.5))
    reached = np.flatnonzero(np.cumsum(_null(n)) <= tail)
    return int(reached[-1]) if len(reached) else None


def signed_rank_p(differences: Floats) -> float:
    """Two-sided p of Wilcoxon's signed-rank test; zero differences say nothing and are left out.

    Exact also with ties (the distribution is counted over the mid-ranks that
    occur), normal with continuity correction above `EXACT_LIMIT` pairs.
    """
    told = differences[differences != 0]
    n = len(told)
    if n == 0:
        return 1.0
    ranks = doubled_ranks(np.abs(told))
    smaller = min(int(ranks[told > 0].sum()), int(ranks[told < 0].sum()))
    if n > EXACT_LIMIT:
        mean, deviation = _moments(n)
        return min(1.0, 2 * NormalDist().cdf((smaller / 2 - mean + 0.5) / deviation))
    if len(np.unique(ranks)) == n:
        tail = float(_null(n)[: smaller // 2 + 1].sum())
    else:
        tail = float(_sums(ranks)[: smaller + 1].sum())
    return min(1.0, 2 * tail)


def doubled_ranks(values: Floats) -> npt.NDArray[np.int64]:
    """Twice the mid-rank of each value, so that ties stay whole numbers."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((2 * last - counts + 1)[inverse], np.int64)


def _moments(n: int) -> tuple[float, float]:
    return n * (n + 1) / 4, math.sqrt(n * (n + 1) * (2 * n + 1) / 24)


@lru_cache(maxsize=512)
def _null(n: int) -> Floats:
    """P(W = w) of n pairs without ties, w from 0."""
    return _sums(np.arange(1, n + 1, dtype=np.int64))


def _sums(ranks: npt.NDArray[np.int64]) -> Floats:
    """The distribution of the sum of the ranks when each counts with probability one half."""
    out = np.zeros(int(ranks.sum()) + 1)
    out[0] = 1.0
    reach = 0
    for rank in ranks.tolist():
        out[rank : reach + rank + 1] += out[: reach + 1].copy()
        out /= 2
        reach += rank
    return out


def apart(differences: Floats, *, near: float = 0.0) -> npt.NDArray[np.bool_]:
    """Which differences stand apart from the rest; none when too many would.

    The rule looks at the distance to the median alone, the same on both
    sides, so leaving those out favours neither side. Nothing within `near` of
    the median stands apart, however alike the rest are.
    """
    distance = np.abs(differences - np.median(differences)) if len(differences) else differences
    scale = float(np.median(distance)) if len(differences) else 0.0
    if scale == 0:
        return np.zeros(len(differences), np.bool_)
    found = np.asarray(distance > max(APART * scale, near))
    if found.sum() > APART_SHARE * len(differences):
        return np.zeros(len(differences), np.bool_)
    return found


def spread(differences: Floats) -> float:
    """Standard deviation of differences, from their median absolute deviation when that is more.

    0 for fewer than two.
    """
    if len(differences) < 2:
        return 0.0
    robust = 1.4826 * float(np.median(np.abs(differences - np.median(differences))))
    return max(robust, float(np.std(differences, ddof=1)))


def paired_t_p(differences: Floats) -> float | None:
    """Two-sided p of Student's t test of a zero mean; None for fewer than two differences.

    Differences without any spread give 1 when they are zero and 0 otherwise.
    """
    n = len(differences)
    if n < 2:
        return None
    mean, error = float(np.mean(differences)), float(np.std(differences, ddof=1)) / math.sqrt(n)
    if error <= 1e-15 * abs(mean):
        return 1.0 if mean == 0 else 0.0
    return student_p(mean / error, n - 1)


def student_p(t: float, freedom: int) -> float:
    """P(|T| >= |t|) with `freedom` degrees of freedom: I_x(f/2, 1/2) with x = f / (f + t^2)."""
    return _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function (Lentz's continued fraction, DLMF 8.17.22)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(log_front + a * math.log(x) + b * math.log1p(-x)) / a
    tiny = 1e-300
    c, d = 1.0, 1 / max(1 - (a + b) * x / (a + 1), tiny)
    value = d
    for m in range(1, 500):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / ((1 + term * d) or tiny)
            c = (1 + term / c) or tiny
            value *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return min(1.0, front * value)


def discovery_adjusted(p_values: Sequence[float | None]) -> list[float | None]:
    """Benjamini-Hochberg adjusted p values; None (not tested) stays None and does not count."""
    tested = [(p, at) for at, p in enumerate(p_values) if p is not None]
    tested.sort(reverse=True)
    out: list[float | None] = [None] * len(p_values)
    lowest = 1.0
    for place, (p, at) in enumerate(tested):
        lowest = min(lowest, p * len(tested) / (len(tested) - place))
        out[at] = lowest
    return out
