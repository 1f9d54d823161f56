"""What a contamination record means: plain sentences with a severity, the gravest first.

Loads no torch, so pages, comparisons and the runner say the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from profiler import units
from profiler.types import Contamination

Severity = Literal["serious", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("serious", "warning", "info")
"""`serious`: numbers are not to be trusted; `warning`: they may be off; `info`: good to know."""

OTHER_CPU = (0.05, 0.25)
STEAL = (0.01, 0.05)
LOAD_PER_CPU = (1.5, 3.0)
"""Load before the timed phase; the run's own warm-up is part of it and may reach 1 per CPU."""

CLOCK_DROP = (0.05, 0.15)
"""Share of the device's clock lost between the start and the end of the timed phase."""

OTHER_DEVICE_BYTES = (2 << 30, 8 << 30)
"""Memory in use on the device outside our allocator; a driver's own context stays below 1 GiB."""

HOT_CELSIUS = 85.0
THROTTLED: tuple[tuple[int, Severity, str], ...] = (
    (0x04, "warning", "the device was held at its power cap"),
    (0x20 | 0x40, "serious", "the device slowed down because of its temperature"),
    (0x08 | 0x80, "serious", "the device was slowed down by its power supply or board"),
)
"""NVML's clock event reasons that cost speed; idle and user settings are none of them."""

SLOW_GOVERNORS = ("powersave", "conservative", "ondemand", "schedutil")
_WHEN = ("before", "after")
NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One sentence about what disturbed a run."""

    severity: Severity
    text: str


def notices(seen: Contamination, environment: Mapping[str, str] = NOTHING) -> tuple[Notice, ...]:
    """What in `seen` a reader of the run must know, the gravest first; nothing for a quiet run.

    `environment` holds the fields of the run's fingerprint: its number of
    CPUs makes the load meaningful, governor and uncommitted changes are told.
    """
    found = [*_cpu(seen), *_load(seen, environment), *_device(seen), *_environment(environment)]
    return tuple(sorted(found, key=lambda notice: SEVERITIES.index(notice.severity)))


def _cpu(seen: Contamination) -> list[Notice]:
    other, steal = seen.other_cpu_share, seen.steal_share
    found = _graded(
        other,
        OTHER_CPU,
        f"other processes used {other or 0:.0%} of the CPUs during the timed phase",
    )
    return found + _graded(steal, STEAL, f"the hypervisor took {steal or 0:.0%} of the CPUs")


def _load(seen: Contamination, environment: Mapping[str, str]) -> list[Notice]:
    told = environment.get("cpus_usable", "")
    cpus = int(told) if told.isdecimal() else 0
    if seen.load_before is None or not cpus:
        return []
    text = f"load was {seen.load_before:.1f} on {cpus} CPUs before the timed phase"
    return _graded(seen.load_before / cpus, LOAD_PER_CPU, text)


def _device(seen: Contamination) -> list[Notice]:
    found: list[Notice] = []
    before, after = (seen.device.get(f"clock_rate_{when}") for when in _WHEN)
    if before and after is not None:
        text = f"the device's clock fell from {before:.0f} to {after:.0f} MHz while timing"
        found += _graded(1 - after / before, CLOCK_DROP, text)
    held = seen.device.get("other_memory_before")
    text = f"others held {units.size(held)} of the device's memory"
    found += _graded(held, OTHER_DEVICE_BYTES, text)
    temperatures = (v for name, v in seen.device.items() if name.startswith("temperature"))
    hottest = max(temperatures, default=0.0)
    if hottest >= HOT_CELSIUS:
        found.append(Notice(severity="warning", text=f"the device reached {hottest:.0f} °C"))
    return found + _company(seen) + _throttling(seen)


def _company(seen: Contamination) -> list[Notice]:
    others = max(int(seen.device.get(f"other_processes_{when}", 0)) for when in _WHEN)
    if not others:
        return []
    who = f"{others} other processes" if others > 1 else "another process"
    return [Notice(severity="warning", text=f"{who} used the device")]


def _throttling(seen: Contamination) -> list[Notice]:
    """The reasons at the end of the timed phase; at its start the device may just wake up."""
    bits = int(seen.device.get("throttle_reasons_after", 0))
    return [Notice(severity=how, text=text) for mask, how, text in THROTTLED if bits & mask]


def _environment(fields: Mapping[str, str]) -> list[Notice]:
    found = []
    governor = fields.get("cpu_governor", "")
    if governor in SLOW_GOVERNORS:
        text = f"the CPU governor is {governor}: clocks follow the load"
        found.append(Notice(severity="info", text=text))
    if fields.get("git_dirty") == "True":
        text = "the measured code had uncommitted changes"
        found.append(Notice(severity="warning", text=text))
    return found


def _graded(value: float | None, limits: tuple[float, float], text: str) -> list[Notice]:
    """A warning above the first limit, serious above the second."""
    warning, serious = limits
    if value is None or value <= warning:
        return []
    return [Notice(severity="serious" if value > serious else "warning", text=text)]
