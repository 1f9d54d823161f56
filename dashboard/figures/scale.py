"""One unit for a whole axis."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from profiler import units

_TIMES = {"s": 1e9, "ms": 1e6, "µs": 1e3, "ns": 1.0}
_BYTES = {"TiB": 2.0**40, "GiB": 2.0**30, "MiB": 2.0**20, "KiB": 2.0**10, "B": 1.0}
_RATES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Values divided by `factor` read in `unit`."""

    factor: float
    unit: str


def scale_of(values: Sequence[float], unit: str) -> Scale:
    """The unit in which the median of the values would be written."""
    shown = units.quantity(statistics.median(values) if values else 0.0, unit)
    written = shown.rsplit(" ", 1)[-1] if " " in shown else unit
    if unit == "ns":
        return Scale(factor=_TIMES.get(written, 1.0), unit=written)
    if unit == "ratio":
        return Scale(factor=0.01, unit="%")
    if unit == "bytes":
        return Scale(factor=_BYTES.get(written, 1.0), unit=written)
    factor = _RATES.get(written.removesuffix(unit), 1.0)
    return Scale(factor=factor, unit=written)
