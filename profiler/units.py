"""The only formatter of durations, bytes, rates, counts and shares.

Pages, exports and the command line call it, so one value reads the same
everywhere: three significant digits, SI time, IEC bytes, a non-zero value
never shown as zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_TIME = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_BYTES = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))
_SI = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
MISSING = "–"


def significant(value: float, digits: int = 3) -> str:
    """`value` with `digits` significant digits, thousands grouped, no exponent."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    exponent = math.floor(math.log10(abs(rounded)))
    decimals = max(0, digits - 1 - exponent)
    return f"{rounded:,.{decimals}f}"


def scaled(value: float | None, scale: Sequence[tuple[float, str]], suffix: str = "") -> str:
    """`value` in the largest unit of `scale` that keeps it at or above one."""
    if value is None or not math.isfinite(value):
        return MISSING
    # Picked by the value as it will read: 999.96 µs is 1.00 ms, 1,024 B is 1.00 KiB.
    factor, unit = _fitting(value, scale)
    whole = factor == 1 and float(value).is_integer()
    shown = f"{int(value):,}" if whole else significant(value / factor)
    return f"{shown} {unit}{suffix}".rstrip()


def _fitting(value: float, scale: Sequence[tuple[float, str]]) -> tuple[float, str]:
    for step in scale:
        if _reads_as_one(value / step[0]):
            return step
    return scale[-1]


def _reads_as_one(value: float) -> bool:
    """Whether three digits of it read 1.00 or more; only values just below need to be written."""
    size = abs(value)
    return size >= 1 or (size > 0.99 and abs(float(f"{value:.2e}")) >= 1)


def duration(ns: float | None) -> str:
    """A duration given in nanoseconds: `7.62 ms`."""
    return scaled(ns, _TIME)


def size(count: float | None) -> str:
    """A number of bytes: `61.8 GiB`."""
    return scaled(count, _BYTES)


def rate(per_second: float | None, unit: str) -> str:
    """A rate: `1.05 ktok/s` for unit `tok/s`."""
    return scaled(per_second, _SI, unit)


def count(value: float | None) -> str:
    """A plain number, grouped; whole numbers are never rounded."""
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{int(value):,}" if float(value).is_integer() else significant(value)


def share(part: float | None) -> str:
    """A share between 0 and 1 as a percentage; tiny but non-zero reads `<0.01 %`."""
    if part is None or not math.isfinite(part):
        return MISSING
    percent = part * 100
    if 0 < percent < 0.01:
        return "<0.01 %"
    return f"{percent:.2f} %" if percent < 10 else f"{percent:.1f} %"


def change(ratio: float | None) -> str:
    """A signed relative change with a true minus sign: `−12.4 %`."""
    if ratio is None or not math.isfinite(ratio):
        return "n/a"
    percent = f"{ratio * 100:+.1f}"
    return f"{percent.replace('-', '−')} %"


def quantity(value: float | None, unit: str) -> str:
    """A metric value in the unit its definition names."""
    if unit == "ns":
        return duration(value)
    if unit == "bytes":
        return size(value)
    if unit == "ratio":
        return share(value)
    if unit == "count":
        return count(value)
    return rate(value, unit)


def middle(text: str, limit: int = 60) -> str:
    """A long name cut in the middle, so that both ends stay readable."""
    if len(text) <= limit:
        return text
    head = (limit - 1) // 2
    return f"{text[:head]}…{text[head + 1 - limit :]}"
