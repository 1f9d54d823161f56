"""Lengths of unions and differences of sets of intervals. All times int64 ns."""

from __future__ import annotations

import numpy as np

from profiler.trace.clock import Int64


def merged(ts: Int64, end: Int64) -> tuple[Int64, Int64]:
    """Starts and ends of the disjoint intervals covering the same time, ascending."""
    if not len(ts):
        return ts[:0], end[:0]
    order = np.argsort(ts, kind="stable")
    starts, reach = ts[order], np.maximum.accumulate(end[order])
    first = np.concatenate([[True], starts[1:] > reach[:-1]])
    last = np.concatenate([np.flatnonzero(first)[1:] - 1, [len(starts) - 1]])
    return starts[first], reach[last]


def union_ns(ts: Int64, end: Int64) -> int:
    """Time covered by at least one interval."""
    starts, ends = merged(ts, end)
    return int((ends - starts).sum())


def covered_ns(ts: Int64, end: Int64, by_ts: Int64, by_end: Int64) -> Int64:
    """For each interval the part of it that the disjoint ascending `by` intervals cover."""
    if not len(by_ts):
        return np.zeros(len(ts), np.int64)
    total = np.concatenate([[0], np.cumsum(by_end - by_ts)])

    def before(at: Int64) -> Int64:
        index = np.searchsorted(by_ts, at, side="right")
        inside = np.maximum(by_end[np.maximum(index - 1, 0)] - at, 0)
        return np.where(index > 0, total[index] - inside, 0)

    return np.asarray(before(end) - before(ts), np.int64)
