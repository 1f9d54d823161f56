"""Times of a trace as integer nanoseconds, whatever way the writer spelled microseconds."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

import numpy as np
import numpy.typing as npt

from profiler.trace.schema import Scalar

Int64 = npt.NDArray[np.int64]

NO_TIME = np.iinfo(np.int64).min
"""Stands for a time that is absent or no number."""

_WHOLE_LIMIT = 9_223_372_036_854_775
_DOUBLE_LIMIT = 2.0**43
"""Above it a double no longer holds microseconds with three exact decimals."""

_NEARLY_HALF = 1e-4


class NeedsExactTimes(Exception):
    """The block has fractional times beyond what a double can hold; decode them as text."""


def to_ns(values: Sequence[Scalar], *, lossy: bool = False) -> Int64:
    """Microseconds (int, float or decimal text) as int64 nanoseconds, rounded half to even.

    Raises `NeedsExactTimes` when a float is too large to be exact, unless `lossy`.
    """
    if not values:
        return np.empty(0, np.int64)
    array = np.array(values)
    kind = array.dtype.kind
    if kind == "i" and np.abs(array).max() <= _WHOLE_LIMIT:
        return np.asarray(array * 1000, dtype=np.int64)
    if kind == "f" and np.isfinite(array).all():
        if np.abs(array).max() < _DOUBLE_LIMIT:
            return _doubles_to_ns(array, values)
        if not lossy and any(isinstance(v, float) and abs(v) >= _DOUBLE_LIMIT for v in values):
            raise NeedsExactTimes
    return np.fromiter((_one(v) for v in values), np.int64, len(values))


def _doubles_to_ns(array: npt.NDArray[np.float64], values: Sequence[Scalar]) -> Int64:
    """Exact for every double that is the nearest one to a decimal with few digits."""
    # The product of a large float would be rounded once more; its parts are exact.
    whole = np.floor(array)
    part = (array - whole) * 1000.0
    ns = np.asarray((whole * 1000.0).astype(np.int64) + np.rint(part).astype(np.int64))
    for at in np.flatnonzero(np.abs(part - np.floor(part) - 0.5) < _NEARLY_HALF).tolist():
        ns[at] = _one(values[at])
    return ns


def text_to_ns(text: str) -> int:
    """Decimal text in microseconds as nanoseconds; `NO_TIME` when it is no number."""
    try:
        scaled = (Decimal(text) * 1000).quantize(Decimal(1), rounding=ROUND_HALF_EVEN)
        value = int(scaled)
    except (InvalidOperation, ValueError, OverflowError):
        return int(NO_TIME)
    return value if abs(value) <= _WHOLE_LIMIT * 1000 else int(NO_TIME)


def _one(value: Scalar) -> int:
    if isinstance(value, bool) or value is None:
        return int(NO_TIME)
    return text_to_ns(value if isinstance(value, str) else repr(value))
