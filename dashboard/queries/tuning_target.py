"""What a target means in the unit of the metric: a share of the roofline, a rival, a value."""

from __future__ import annotations

import re

from dashboard.models import Platform, TargetKind, Workload
from dashboard.queries.tuning_ceiling import at_share, newest_of
from dashboard.services.tuning import Target, TuningError, metric_of
from profiler.errors import printable
from profiler.types import Definition

_AMOUNT = re.compile(r"\s*([0-9][0-9 ,_]*(?:\.[0-9]+)?|\.[0-9]+)\s*([^\s0-9]*(?:/s)?)\s*")
_TIMES = {"": 1.0, "ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9}
_PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}


def target_from(
    kind: TargetKind,
    workload: Workload,
    platform: Platform,
    *,
    metric: str = "",
    share: float = 0.0,
    rival: Platform | None = None,
    value: str = "",
) -> Target:
    """The target with its value; raises `TuningError` where that is not known."""
    definition = metric_of(workload, metric)
    if kind == TargetKind.ROOFLINE:
        return _of_roofline(workload, platform, definition, share)
    if kind == TargetKind.RIVAL and rival is not None:
        return _of_rival(workload, platform, definition, rival)
    return Target(kind=TargetKind.VALUE, value=amount(value, definition))


def _of_roofline(
    workload: Workload, platform: Platform, metric: Definition, share: float
) -> Target:
    newest = newest_of(workload, platform, metric)
    if newest is None or newest.ceiling is None:
        why = newest.source if newest else f"{workload} was never measured there"
        raise TuningError(
            f"The roofline of {workload} on {platform.slug} is not known",
            f"{why}; or set a value as target",
        )
    wanted = at_share(newest.ceiling, share, metric.direction)
    return Target(kind=TargetKind.ROOFLINE, value=wanted, share=share)


def _of_rival(
    workload: Workload, platform: Platform, metric: Definition, rival: Platform
) -> Target:
    if rival.pk == platform.pk:
        raise TuningError(
            f"{rival.slug} is the platform that is tuned", "choose another platform as rival"
        )
    newest = newest_of(workload, rival, metric)
    if newest is None:
        raise TuningError(
            f"{workload} was never measured on {rival.slug}", "measure it there, or set a value"
        )
    return Target(kind=TargetKind.RIVAL, value=newest.value, rival=rival)


def amount(text: str, metric: Definition) -> float:
    """`4.6 ms` or `1.2 ktok/s` in the unit of the metric; raises `TuningError`."""
    found = _AMOUNT.fullmatch(text)
    unit = found[2] if found else ""
    factor = _TIMES.get(unit) if metric.unit == "ns" else _rate_factor(unit, metric.unit)
    if found is None or factor is None or (metric.unit == "ns" and not unit):
        example = "4.6 ms" if metric.unit == "ns" else f"1200 {metric.unit}"
        raise TuningError(
            f"{printable(text, 40)!r} is no value of {metric.title.lower()}",
            f"write it with its unit: {example}",
        )
    return float(re.sub(r"[ ,_]", "", found[1])) * factor


def _rate_factor(unit: str, base: str) -> float | None:
    """`ktok/s` for `tok/s`; a bare number is in the unit itself."""
    if not unit:
        return 1.0
    return _PREFIXES.get(unit.removesuffix(base)) if unit.endswith(base) else None
