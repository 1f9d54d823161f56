"""Nesting of intervals on host threads and the time each one spends itself."""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass

import numpy as np

from profiler.trace.batch import Bool, Int32
from profiler.trace.clock import Int64

_CHUNK = 1 << 17


@dataclass(slots=True)
class Nesting:
    """A forest over `rows`, which are in (track, start, longest first) order.

    `parent` holds positions in `rows`, -1 for roots; the parent of an interval
    is the nearest earlier one of its track that contains it whole. `self_ns`
    is the time in which an interval is the most recently started open one, so
    the sum over a track is the length of the union of its intervals.
    `crossings` counts intervals that leave the one they started in.
    """

    rows: Int64
    parent: Int64
    self_ns: Int64
    crossings: int


def nest(rows: Int64, track: Int32, ts: Int64, dur: Int64, tie: Int64) -> Nesting:
    """Nest the given rows; columns are aligned with `rows`, `tie` orders equal intervals."""
    order = np.lexsort((rows, tie, -dur, ts, track))
    rows, track, ts, dur = rows[order], track[order], ts[order], dur[order]
    end = ts + dur
    parent, crossed = _parents(track, ts, end)
    self_ns = dur - _sum_by(parent, dur)
    for track_code in np.unique(track[crossed]).tolist():
        members = np.flatnonzero(track == track_code)
        self_ns[members] = _owned(ts[members], end[members])
    return Nesting(rows, parent, self_ns, len(crossed))


def _sum_by(parent: Int64, values: Int64) -> Int64:
    """Sum of `values` over the children of each position, exact in int64."""
    out = np.zeros(len(parent), np.int64)
    child = parent >= 0
    np.add.at(out, parent[child], values[child])
    return out


def _parents(track: Int32, ts: Int64, end: Int64) -> tuple[Int64, Int64]:
    """Parent positions by a stack, and the positions of intervals that cross another."""
    parents: list[int] = []
    crossed: list[int] = []
    stack: list[int] = []
    ends: list[int] = []
    current = -1
    at = 0
    for low in range(0, len(ts), _CHUNK):
        part = slice(low, low + _CHUNK)
        columns = zip(track[part].tolist(), ts[part].tolist(), end[part].tolist(), strict=True)
        for thread, start, stop in columns:
            if thread != current:
                current = thread
                stack.clear()
                ends.clear()
            crossing = False
            while ends and ends[-1] < stop:
                if ends.pop() > start:
                    crossing = True
                stack.pop()
            if crossing:
                crossed.append(at)
            parents.append(stack[-1] if stack else -1)
            stack.append(at)
            ends.append(stop)
            at += 1
    return np.array(parents, np.int64), np.array(crossed, np.int64)


def _owned(ts: Int64, end: Int64) -> Int64:
    """Time in which each interval is the latest-started open one (for crossing intervals)."""
    owned = np.zeros(len(ts), np.int64)
    times = np.unique(np.concatenate([ts, end])).tolist()
    starts, ends = ts.tolist(), end.tolist()
    open_ones: list[int] = []
    following = 0
    for now, until in itertools.pairwise(times):
        while following < len(starts) and starts[following] <= now:
            heapq.heappush(open_ones, -following)
            following += 1
        while open_ones and ends[-open_ones[0]] <= now:
            heapq.heappop(open_ones)
        if open_ones:
            owned[-open_ones[0]] += until - now
    return owned


def nearest(parent: Int64, wanted: Bool) -> Int64:
    """For each position its nearest ancestor for which `wanted` holds, -1 without one."""
    found = parent.copy()
    active = np.flatnonzero(found >= 0)
    while len(active):
        active = active[~wanted[found[active]]]
        found[active] = parent[found[active]]
        active = active[found[active] >= 0]
    return found


def depths(parent: Int64) -> Int64:
    """Number of ancestors of each position; `parent` may point anywhere but in circles."""
    depth = np.zeros(len(parent), np.int64)
    active = np.flatnonzero(parent >= 0)
    above = parent[active]
    while len(active):
        depth[active] += 1
        above = parent[above]
        keep = above >= 0
        active, above = active[keep], above[keep]
    return depth
