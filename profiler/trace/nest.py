"""Nesting of intervals on host threads and the time each one spends itself."""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass

import numpy as np

from profiler.trace.batch import Bool, Int32
from profiler.trace.clock import Int64


@dataclass(slots=True)
class Nesting:
    """A forest over `rows`, which are in (track, start, longest first) order.

    `parent` holds positions in `rows`, -1 for roots; the parent of an interval
    is the nearest earlier one of its track that contains it whole. `self_ns`
    is the time in which an interval is the most recently started open one, so
    the sum over a track is the length of the union of its intervals.
    `crossings` counts intervals that leave the one they started in.
    """

    rows: Int32
    parent: Int32
    self_ns: Int64
    crossings: int


def nest(rows: Int64, track: Int32, ts: Int64, dur: Int64, *, tie: Int64) -> Nesting:
    """Nest the given rows; columns are aligned with `rows`, `tie` orders equal intervals."""
    order = nesting_order(track, ts, dur, tie)
    track, ts = track[order], ts[order]
    end = ts + dur[order]
    rows_in_order = rows[order].astype(np.int32)
    del order, rows
    parent, crossed = _parents(track, ts, end)
    self_ns = _self_ns(parent, track, ts, end, crossed=crossed)
    return Nesting(rows_in_order, parent, self_ns, len(crossed))


def narrowed(nesting: Nesting, keep: Bool, dur: Int64) -> Nesting:
    """The nesting of the positions where `keep` holds, for a nesting without crossings.

    `dur` is aligned with `nesting.rows`.
    """
    above = nearest(nesting.parent, keep)
    place = np.cumsum(keep, dtype=np.int32) - np.int32(1)
    kept = above[keep]
    parent = np.where(kept >= 0, place[kept], np.int32(-1))
    own = dur[keep] - _sum_by(parent, dur[keep])
    return Nesting(nesting.rows[keep], parent, own, 0)


def nesting_order(track: Int32, ts: Int64, dur: Int64, tie: Int64) -> Int64:
    """Positions by (track, start, longest first, tie, position)."""
    if not len(ts):
        return np.empty(0, np.int64)
    since = ts - ts.min()
    if int(since.max()) >= 1 << 50 or int(track.max()) >= 1 << 12:
        return np.asarray(np.lexsort((tie, -dur, ts, track)), np.int64)
    key = track.astype(np.int64) << 50 | since
    order = np.argsort(key, kind="stable")
    key = key[order]
    same = key[1:] == key[:-1]
    tied = np.flatnonzero(np.concatenate([same, [False]]) | np.concatenate([[False], same]))
    members = order[tied]
    order[tied] = members[np.lexsort((tie[members], -dur[members], key[tied]))]
    return order


def _sum_by(parent: Int32, values: Int64) -> Int64:
    """Sum of `values` over the children of each position, exact in int64."""
    out = np.zeros(len(parent), np.int64)
    child = parent >= 0
    np.add.at(out, parent[child], values[child])
    return out


def _self_ns(parent: Int32, track: Int32, ts: Int64, end: Int64, *, crossed: Int64) -> Int64:
    dur = end - ts
    self_ns = dur - _sum_by(parent, dur)
    for code in np.unique(track[crossed]).tolist():
        members = np.flatnonzero(track == code)
        self_ns[members] = _owned(ts[members], end[members])
    return self_ns


def _parents(track: Int32, ts: Int64, end: Int64) -> tuple[Int32, Int64]:
    """Parent positions, and the positions of intervals that cross another one.

    The parent is the nearest earlier position of the track with an end at or
    after one's own. All positions search at once: from the position before,
    each jumps to where its candidate has got to, so that distances double.
    """
    size = len(ts)
    candidate = np.arange(-1, size - 1, dtype=np.int32)
    candidate[np.flatnonzero(track[1:] != track[:-1]) + 1] = -1
    crossing = np.zeros(size, np.bool_)
    active = np.flatnonzero(candidate >= 0).astype(np.int32)
    while len(active):
        at = candidate[active]
        shorter = end[at] < end[active]
        active, at = active[shorter], at[shorter]
        crossing[active[end[at] > ts[active]]] = True
        candidate[active] = candidate[at]
        active = active[candidate[active] >= 0]
    return candidate, np.flatnonzero(crossing)


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


def nearest(parent: Int32, wanted: Bool) -> Int32:
    """For each position its nearest ancestor for which `wanted` holds, -1 without one."""
    if not wanted.any():
        return np.full(len(parent), -1, np.int32)
    found = parent.copy()
    active = np.flatnonzero(found >= 0).astype(np.int32)
    while len(active):
        active = active[~wanted[found[active]]]
        found[active] = parent[found[active]]
        active = active[found[active] >= 0]
    return found


def depths(parent: Int32) -> Int32:
    """Number of ancestors of each position; `parent` may point anywhere but in circles."""
    depth = np.zeros(len(parent), np.int32)
    active = np.flatnonzero(parent >= 0).astype(np.int32)
    above = parent[active]
    while len(active):
        depth[active] += 1
        above = parent[above]
        keep = above >= 0
        active, above = active[keep], above[keep]
    return depth
