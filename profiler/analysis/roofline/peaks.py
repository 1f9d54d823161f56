"""Peaks of devices: measured on the platform, else from the catalogue `platforms.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from importlib import resources

from profiler.analysis.roofline.cost import Cost

_UNITS = {
    "TFLOP/s": 1e12,
    "GFLOP/s": 1e9,
    "TB/s": 1e12,
    "GB/s": 1e9,
    "GB": 1e9,
    "GiB": 2.0**30,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """What one device can do at most.

    `flops` in FLOP/s by type (`tf32` beside the types), bandwidths in
    bytes/s, memory in bytes; absent is unknown. `origin` says where from:
    `measured` on the platform, `entered` for it by a person, or a `datasheet`,
    whose figures stand at `urls`.
    Only a measured, entered or verified peak may give percentages and
    recoverable time (`usable`).
    """

    device: str
    flops: Mapping[str, float] = field(default_factory=dict)
    bandwidth: float | None = None
    memory_bytes: float | None = None
    link_bandwidth: float | None = None
    origin: str = "measured"
    source: str = ""
    urls: tuple[str, ...] = ()
    as_of: date | None = None
    verified: bool = False

    @property
    def usable(self) -> bool:
        """Whether percentages may be derived from it."""
        return self.origin in ("measured", "entered") or self.verified

    def rate(self, dtype: str) -> float | None:
        """Peak FLOP/s for arithmetic in `dtype`."""
        return self.flops.get(dtype)

    def bound_ns(self, cost: Cost) -> float | None:
        """Least time of a call: the slower of arithmetic at the peak and traffic at the bandwidth.

        Only matrix units have a catalogued rate, so other arithmetic counts as
        traffic. None where the peak that decides is unknown.
        """
        times = []
        if cost.size_bytes:
            if not self.bandwidth:
                return None
            times.append(cost.size_bytes / self.bandwidth)
        if cost.unit == "matrix" and cost.flops:
            rate = self.rate(cost.dtype)
            if not rate:
                return None
            times.append(cost.flops / rate)
        return max(times) * 1e9 if times else None

    def limited_by(self, cost: Cost) -> str:
        """`compute` or `memory`: which of the two bounds is the higher one."""
        rate = self.rate(cost.dtype)
        if cost.unit != "matrix" or not rate or not self.bandwidth:
            return "memory"
        return "compute" if cost.flops / rate > cost.size_bytes / self.bandwidth else "memory"


@dataclass(frozen=True, slots=True)
class _Row:
    pattern: re.Pattern[str]
    peaks: Peaks


def _quantity(block: Mapping[str, object], key: str) -> float | None:
    found = block.get(key)
    if not isinstance(found, dict):
        return None
    return float(found["value"]) * _UNITS[str(found["unit"])]


def _peaks(block: Mapping[str, object]) -> Peaks:
    rates = block["flops"]
    if not isinstance(rates, dict):
        raise TypeError(f"flops of {block['name']} must be a table")
    scale = _UNITS[str(rates["unit"])]
    as_of, urls = block["date"], block.get("urls")
    return Peaks(
        device=str(block["name"]),
        flops={name: float(value) * scale for name, value in rates.items() if name != "unit"},
        bandwidth=_quantity(block, "bandwidth"),
        memory_bytes=_quantity(block, "memory"),
        link_bandwidth=_quantity(block, "link"),
        origin="datasheet",
        source=str(block["source"]),
        urls=tuple(str(url) for url in urls) if isinstance(urls, list) else (),
        as_of=as_of if isinstance(as_of, date) else None,
        verified=block.get("verified") is True and bool(urls),
    )


@cache
def _catalogue() -> tuple[_Row, ...]:
    text = resources.files("profiler.analysis").joinpath("platforms.toml").read_text("utf-8")
    blocks = tomllib.loads(text)["device"]
    return tuple(_Row(re.compile(block["match"]), _peaks(block)) for block in blocks)


def catalogue() -> tuple[Peaks, ...]:
    """Every device of the catalogue."""
    return tuple(row.peaks for row in _catalogue())


def peaks_of(device_names: Iterable[str]) -> Peaks | None:
    """The catalogue's peaks of the first device name it knows."""
    for name in device_names:
        for row in _catalogue():
            if row.pattern.search(name):
                return row.peaks
    return None
