"""From raw samples to a `Metric`: median, spread and only the percentiles that n allows."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from profiler.metrics import METRICS
from profiler.types import Metric, Phase

PERCENTILES: tuple[tuple[str, float, int], ...] = (
    ("p90", 0.90, 10),
    ("p95", 0.95, 20),
    ("p99", 0.99, 100),
    ("p99.9", 0.999, 1000),
)
"""Name, rank and the smallest n at which the percentile says more than the maximum."""


def summarise(
    name: str, samples: Sequence[float], *, phase: Phase, method: str, value: float | None = None
) -> Metric:
    """A metric over `samples` (at least one), in the unit its definition names.

    `value` defaults to the median of the samples; give it when the definition
    says otherwise and let `method` say how. Percentiles are linear between
    closest ranks (Hyndman-Fan type 7, numpy's default).
    """
    definition = METRICS[name]
    ordered = sorted(samples)
    mean = statistics.fmean(ordered)
    several = len(ordered) > 1
    return Metric(
        name=name,
        unit=definition.unit,
        direction=definition.direction,
        definition=definition.version,
        phase=phase,
        method=method,
        value=quantile(ordered, 0.5) if value is None else value,
        n=len(ordered),
        samples=tuple(samples),
        minimum=ordered[0],
        maximum=ordered[-1],
        iqr=quantile(ordered, 0.75) - quantile(ordered, 0.25) if several else None,
        cov=statistics.stdev(ordered) / mean if several and mean else None,
        percentiles={p: quantile(ordered, rank) for p, rank, n in PERCENTILES if len(ordered) >= n},
    )


def quantile(ordered: Sequence[float], rank: float) -> float:
    """The `rank` quantile (0 to 1) of ascending, non-empty `ordered`."""
    position = (len(ordered) - 1) * rank
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def median(samples: Sequence[float]) -> float:
    """The median of non-empty `samples`."""
    return quantile(sorted(samples), 0.5)
