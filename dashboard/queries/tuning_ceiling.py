"""How far a workload is from the roofline on a platform, and where a target stands."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.models import MetricValue, Platform, RunState, Standing, Workload
from profiler.types import Definition, Direction
from profiler.units import share as percent

_SHARES = ("mfu", "mbu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """The newest measured value of a metric; `share` is what it reached of the roofline.

    `ceiling` is the value at the roofline, in the metric's unit; both are None
    where no peak is known that is trusted. `source` says what they rest on, or why
    they are not known.
    """

    run_id: int
    value: float
    share: float | None
    ceiling: float | None
    source: str


def newest_of(workload: Workload, platform: Platform, metric: Definition) -> Newest | None:
    """The newest succeeded run of the workload there; None when it was never measured.

    The share is the run's MFU or MBU, whichever is nearer to one; without
    those the least time over the time taken of the operators that have a
    bound, from the newest trace.
    """
    newest = _newest(workload, platform, metric.name)
    if newest is None:
        return None
    run_id, values = newest
    value = values[metric.name]
    reached = max((values[name] for name in _SHARES if name in values), default=None)
    if reached is not None:
        source = f"model FLOPs and bytes of run {run_id} against the peak of its device"
    else:
        reached, source = _of_trace(workload, platform)
    return Newest(
        run_id=run_id,
        value=value,
        share=reached,
        ceiling=at_roofline(value, reached, metric.direction) if reached else None,
        source=source,
    )


def _newest(
    workload: Workload, platform: Platform, metric: str
) -> tuple[int, dict[str, float]] | None:
    """The newest run that has the metric, with its values by name."""
    rows = MetricValue.objects.filter(
        name__in=(metric, *_SHARES),
        result__run__workload=workload,
        result__run__platform=platform,
        result__run__state=RunState.SUCCEEDED,
        result__run__compared__isnull=True,
    ).order_by("-result__run_id")
    found: dict[int, dict[str, float]] = {}
    for run_id, name, value in rows.values_list("result__run_id", "name", "value")[:6]:
        found.setdefault(run_id, {})[name] = value
    return next(((run_id, row) for run_id, row in found.items() if metric in row), None)


def _of_trace(workload: Workload, platform: Platform) -> tuple[float | None, str]:
    found = Standing.objects.filter(workload=workload, platform=platform).first()
    if found is None or not found.roofline:
        return None, (
            "no peak of the device is known that is trusted; calibrate the platform and record "
            "shapes"
        )
    counted = percent(found.counted) if found.counted else "a part"
    return found.roofline, f"operators with a bound in trace {found.trace_id}, {counted} of time"


def at_roofline(value: float, reached: float, direction: Direction) -> float:
    """The value where all of the roofline is reached, from one that reached a share of it."""
    return value * reached if direction == "lower" else value / reached


def at_share(ceiling: float, wanted: float, direction: Direction) -> float:
    """The value that reaches `wanted` of the roofline."""
    return ceiling / wanted if direction == "lower" else ceiling * wanted


def share_at(ceiling: float, value: float, direction: Direction) -> float:
    """What a value reaches of the roofline."""
    return ceiling / value if direction == "lower" else value / ceiling
