"""Nesting and interval arithmetic against slow and obvious versions."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profiler.trace.clock import Int64
from profiler.trace.intervals import covered_ns, merged, union_ns
from profiler.trace.nest import Nesting, depths, narrowed, nearest, nest

Interval = tuple[int, int, int]
INTERVALS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 12)))


def nested(items: list[Interval]) -> Nesting:
    track, ts, dur = columns(items)
    return nest(np.arange(len(items)), track.astype(np.int32), ts, dur, tie=np.arange(len(items)))


def columns(items: list[Interval]) -> tuple[Int64, Int64, Int64]:
    table = np.array(items, np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


def parent_of(items: list[Interval], order: list[int], place: int) -> int:
    """Nearest earlier interval of the track that contains the whole one at `place`."""
    track, ts, dur = items[order[place]]
    for before in range(place - 1, -1, -1):
        other, start, length = items[order[before]]
        if other == track and start <= ts and ts + dur <= start + length:
            return before
    return -1


@given(INTERVALS)
def test_it_finds_the_nearest_containing_interval(items: list[Interval]) -> None:
    found = nested(items)
    order = found.rows.tolist()
    assert found.parent.tolist() == [parent_of(items, order, n) for n in range(len(items))]


@given(INTERVALS)
def test_it_orders_by_track_start_and_length(items: list[Interval]) -> None:
    order = nested(items).rows.tolist()
    keys = [(items[n][0], items[n][1], -items[n][2], n) for n in order]
    assert keys == sorted(keys)


@given(INTERVALS)
def test_it_splits_the_union_into_self_times(items: list[Interval]) -> None:
    found = nested(items)
    track, ts, dur = columns(items)
    assert (found.self_ns >= 0).all()
    for code in set(track.tolist()):
        mine = track == code
        own = found.self_ns[track[found.rows] == code]
        assert own.sum() == union_ns(ts[mine], (ts + dur)[mine])


@given(INTERVALS)
def test_it_counts_crossings_only_where_intervals_cross(items: list[Interval]) -> None:
    crossing = any(
        a[0] == b[0] and a[1] < b[1] < a[1] + a[2] < b[1] + b[2] for a in items for b in items
    )
    assert (nested(items).crossings > 0) == crossing


@given(INTERVALS, st.integers(2, 4))
def test_it_narrows_like_nesting_the_rest_alone(items: list[Interval], modulus: int) -> None:
    found = nested(items)
    if found.crossings:
        return
    keep = np.asarray(found.rows % modulus == 0)
    _, _, dur = columns(items)
    less = narrowed(found, keep, dur[found.rows])
    alone = nested([item for n, item in enumerate(items) if n % modulus == 0])
    assert less.parent.tolist() == alone.parent.tolist()
    assert less.self_ns.tolist() == alone.self_ns.tolist()


@given(INTERVALS)
def test_it_walks_up_to_the_nearest_wanted_ancestor(items: list[Interval]) -> None:
    found = nested(items)
    wanted = np.asarray(found.rows % 2 == 0)
    for place, answer in enumerate(nearest(found.parent, wanted).tolist()):
        at = int(found.parent[place])
        while at >= 0 and not wanted[at]:
            at = int(found.parent[at])
        assert answer == at


@given(INTERVALS)
def test_it_counts_ancestors(items: list[Interval]) -> None:
    found = nested(items)
    level = depths(found.parent)
    for place, parent in enumerate(found.parent.tolist()):
        assert level[place] == (level[parent] + 1 if parent >= 0 else 0)


@given(INTERVALS, INTERVALS)
def test_it_measures_cover_like_counting_moments(
    items: list[Interval], others: list[Interval]
) -> None:
    _, ts, dur = columns(items)
    _, by, length = columns(others)
    moments = {
        t for b, n in zip(by.tolist(), length.tolist(), strict=True) for t in range(b, b + n)
    }
    cover = covered_ns(ts, ts + dur, *merged(by, by + length)).tolist()
    for start, size, part in zip(ts.tolist(), dur.tolist(), cover, strict=True):
        assert part == sum(t in moments for t in range(start, start + size))


@given(INTERVALS)
def test_it_never_makes_a_union_longer_than_the_sum(items: list[Interval]) -> None:
    _, ts, dur = columns(items)
    starts, ends = merged(ts, ts + dur)
    assert union_ns(ts, ts + dur) <= dur.sum()
    assert (starts[1:] > ends[:-1]).all()
