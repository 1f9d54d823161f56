"""The noise floor of a platform: how far apart two launches of the same thing are (A/A).

The unit is a launch, a fresh process; its value is the median of its timed
iterations. Pairs are neighbours in time, so drift over the whole series does
not count as noise, just as it does not in an interleaved comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy

SMALLEST_CHANGE = 0.02
"""Share below which a change is none, however quiet the platform is."""

REGRESSION_SHARE = 0.03
"""Slowdown a regression must certainly exceed on a quiet platform."""

ENOUGH_PAIRS = 6
"""Fewer pairs tell a noise floor only roughly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseFloor:
    """A/A noise as shares of the value: 0.01 is one per cent.

    `differences` holds |second - first| / first of every pair in order,
    `typical` is their median and `worst` the largest; `few` says that there
    were fewer than `ENOUGH_PAIRS`.
    """

    typical: float
    worst: float
    differences: tuple[float, ...]
    few: bool

    @property
    def change_threshold(self) -> float:
        """Share a step in a history must exceed: the noise, at least `SMALLEST_CHANGE`."""
        return max(SMALLEST_CHANGE, self.typical)

    @property
    def regression_threshold(self) -> float:
        """Share the lower bound of a slowdown must exceed: twice the noise, at least 3 %."""
        return max(REGRESSION_SHARE, 2 * self.typical)


def noise_floor(launch_medians: Sequence[float]) -> NoiseFloor:
    """The noise of repeated launches of one workload at one commit.

    `launch_medians` are positive values of one metric, one per launch, in the
    order they ran; launches 1 and 2 are a pair, 3 and 4 the next. Raises
    `ValueError` for an odd number, fewer than two or a value that is not positive.
    """
    values = numpy.asarray(launch_medians, dtype=numpy.float64)
    if len(values) < 2 or len(values) % 2:
        raise ValueError(f"{len(values)} launches make no pairs")
    if not (numpy.isfinite(values) & (values > 0)).all():
        raise ValueError("every launch needs a positive, finite median")
    first, second = values[0::2], values[1::2]
    shares = numpy.abs(second - first) / first
    return NoiseFloor(
        typical=float(numpy.median(shares)),
        worst=float(shares.max()),
        differences=tuple(shares.tolist()),
        few=len(shares) < ENOUGH_PAIRS,
    )
