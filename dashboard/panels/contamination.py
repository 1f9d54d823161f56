"""Panel: what disturbed a run, in sentences, with the readings before and after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dashboard.queries.run_detail import ResultView
from profiler import units
from profiler.analysis.contamination import Notice, Severity, notices
from profiler.types import Contamination

_MEASURES: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "temperature": ("Device temperature", lambda value: f"{value:.0f} °C"),
    "clock_rate": ("Device clock", lambda value: f"{value:.0f} MHz"),
    "power_draw": ("Device power", lambda value: f"{units.significant(value / 1000)} W"),
    "utilization": ("Device utilisation", lambda value: units.share(value / 100)),
    "other_memory": ("Device memory of others", units.size),
}
"""Title and format of the device's readings, as its back-end gives them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One measure before and after the timed phase; `over` is what only the whole of it has."""

    title: str
    before: str = ""
    after: str = ""
    over: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DisturbedView:
    """The banner: sentences that matter, the rest as remarks, and the readings behind them."""

    severity: Severity
    matters: tuple[Notice, ...]
    remarks: tuple[Notice, ...]
    readings: tuple[Reading, ...]
    missing: tuple[str, ...]


def disturbed(result: ResultView) -> DisturbedView | None:
    """What a reader of the numbers must know; `None` for a quiet run and for one not probed."""
    if result.contamination is None:
        return None
    found = notices(result.contamination, result.environment.fields)
    matters = tuple(notice for notice in found if notice.severity != "info")
    if not matters:
        return None
    return DisturbedView(
        severity=matters[0].severity,
        matters=matters,
        remarks=tuple(notice for notice in found if notice.severity == "info"),
        readings=_readings(result.contamination),
        missing=tuple(name.replace("_", " ") for name in result.contamination.missing),
    )


def other_warnings(result: ResultView) -> tuple[str, ...]:
    """The run's own warnings but those that the banner says."""
    if result.contamination is None:
        return result.warnings
    said = {notice.text for notice in notices(result.contamination, result.environment.fields)}
    return tuple(warning for warning in result.warnings if warning not in said)


def _readings(seen: Contamination) -> tuple[Reading, ...]:
    switches = units.count(seen.involuntary_switches)
    found = [
        Reading(title="CPU time of other processes", over=units.share(seen.other_cpu_share)),
        Reading(title="CPU time taken by the hypervisor", over=units.share(seen.steal_share)),
        Reading(title="Load", before=_load(seen.load_before), after=_load(seen.load_after)),
        Reading(title="Involuntary context switches", over=switches),
    ]
    names = sorted({name.rpartition("_")[0] for name in seen.device})
    return (*found, *(_device(seen.device, name) for name in names))


def _load(value: float | None) -> str:
    return units.MISSING if value is None else f"{value:.2f}"


def _device(readings: Mapping[str, float], name: str) -> Reading:
    title, shown = _MEASURES.get(name, (name.replace("_", " ").capitalize(), units.count))
    before, after = (readings.get(f"{name}_{when}") for when in ("before", "after"))
    return Reading(
        title=title,
        before=units.MISSING if before is None else shown(before),
        after=units.MISSING if after is None else shown(after),
    )
