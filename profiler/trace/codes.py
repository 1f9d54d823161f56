"""Distinct values of columns of small codes, without sorting or hashing the column."""

from __future__ import annotations

import numpy as np

from profiler.trace.batch import NONE, Int32
from profiler.trace.clock import Int64

_MOST_PLACES = 1 << 22


def distinct(codes: Int32) -> list[int]:
    """The codes in use, ascending; `NONE` comes first where it occurs."""
    if not len(codes):
        return []
    # Index NONE marks the place behind the largest code.
    seen = np.zeros(int(codes.max()) + 2, np.bool_)
    seen[codes] = True
    found: list[int] = np.flatnonzero(seen[:-1]).tolist()
    return [NONE, *found] if seen[NONE] else found


def grouped(keys: Int64, size: int) -> tuple[Int64, Int64]:
    """Distinct keys in [0, size), ascending, and for each key its place among them."""
    if size > _MOST_PLACES:
        found, places = np.unique(keys, return_inverse=True)
        return found, places
    seen = np.zeros(size, np.bool_)
    seen[keys] = True
    found = np.flatnonzero(seen)
    place = np.empty(size, np.int64)
    place[found] = np.arange(len(found))
    return found, place[keys]


def ordered(values: Int64) -> Int64:
    """Distinct values, ascending; for columns with few repeats."""
    out = np.sort(values)
    return out[np.concatenate([[True], out[1:] != out[:-1]])] if len(out) else out
