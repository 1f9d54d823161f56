"""Running the graph: all changes at once, one pass over the nodes in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profiler.analysis.replay.change import Change
from profiler.analysis.replay.graph import Graph
from profiler.trace.clock import Int64

Table = npt.NDArray[np.int64]
"""Nodes by changes, ns."""

_LANES = 32

_FEW_LANES = 6
"""Up to here plain numbers, one change after the other, beat rows of numbers."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Start and end of every node (rows) under every change (columns), ns."""

    start: Table
    end: Table

    @property
    def span_ns(self) -> Int64:
        """Last end under each change."""
        if not len(self.end):
            return np.zeros(self.end.shape[1], np.int64)
        return np.asarray(self.end.max(axis=0), np.int64)


def run(graph: Graph, changes: Sequence[Change]) -> Schedule:
    """Replay the graph under each change; an empty change reproduces the measured times."""
    length = _lengths(graph, changes)
    if len(changes) <= _FEW_LANES:
        starts = [_start_of(graph, change, length[:, n]) for n, change in enumerate(changes)]
        start = np.stack(starts, axis=1) if starts else np.empty((graph.nodes, 0), np.int64)
        return Schedule(start, start + length)
    return _rows_of(graph, length, _lags(graph, changes))


def _start_of(graph: Graph, change: Change, length: Int64) -> Int64:
    """Start of every node under one change."""
    edges = graph.edges
    lag = edges.lag.copy()
    lag[change.edges] = change.lags
    # What an edge adds to its source's start: its lag, and the source's length where it
    # counts from the end.
    room = (lag + np.where(edges.from_end, length[edges.source], 0)).tolist()
    first = np.searchsorted(edges.target, np.arange(graph.nodes + 1)).tolist()
    source = edges.source.tolist()
    start = graph.release.tolist()
    for node in graph.order.tolist():
        begin = start[node]
        for edge in range(first[node], first[node + 1]):
            held = start[source[edge]] + room[edge]
            if held > begin:
                begin = held
        start[node] = begin
    return np.array(start, np.int64)


def _rows_of(graph: Graph, length: Table, lags: list[int | Int64]) -> Schedule:
    """All changes at once, a row of starts per node."""
    start = np.empty_like(length)
    end = np.empty_like(start)
    edges = graph.edges
    first = np.searchsorted(edges.target, np.arange(graph.nodes + 1)).tolist()
    source, from_end = edges.source.tolist(), edges.from_end.tolist()
    release = graph.release.tolist()
    begins, ends, long = list(start), list(end), list(length)
    maximum, add = np.maximum, np.add
    for node in graph.order.tolist():
        row = begins[node]
        row.fill(release[node])
        for edge in range(first[node], first[node + 1]):
            before = ends[source[edge]] if from_end[edge] else begins[source[edge]]
            maximum(row, before + lags[edge], out=row)
        add(row, long[node], out=ends[node])
    return Schedule(start, end)


def spans_ns(graph: Graph, changes: Sequence[Change]) -> list[int]:
    """Span of the window under each change; memory stays bounded for many changes."""
    out: list[int] = []
    for at in range(0, len(changes), _LANES):
        out += run(graph, changes[at : at + _LANES]).span_ns.tolist()
    return out


def _lengths(graph: Graph, changes: Sequence[Change]) -> Table:
    length = np.repeat(graph.length[:, None], len(changes), axis=1)
    for lane, change in enumerate(changes):
        length[change.nodes, lane] = change.node_ns
        if len(change.segments):
            node = graph.segment_node[change.segments]
            np.add.at(length[:, lane], node, change.segment_ns - graph.segment_ns[change.segments])
    return np.maximum(length, 0)


def _lags(graph: Graph, changes: Sequence[Change]) -> list[int | Int64]:
    """Lag of each edge: one number, or one per change where changes differ."""
    lags: list[int | Int64] = list(graph.edges.lag.tolist())
    for lane, change in enumerate(changes):
        for edge, lag in zip(change.edges.tolist(), change.lags.tolist(), strict=True):
            row = lags[edge]
            if isinstance(row, int):
                row = lags[edge] = np.full(len(changes), row, np.int64)
            row[lane] = lag
    return lags


def critical_edges(graph: Graph) -> Int64:
    """Edges of the measured critical path: from the last end back, the edge that was tight."""
    edges = graph.edges
    if not graph.nodes:
        return np.empty(0, np.int64)
    value = graph.start[edges.source] + edges.lag
    value += np.where(edges.from_end, graph.length[edges.source], 0)
    tight = value == graph.start[edges.target]
    by_target = dict(zip(edges.target[tight].tolist(), np.flatnonzero(tight).tolist(), strict=True))
    at = int((graph.start + graph.length).argmax())
    path: list[int] = []
    while at in by_target and len(path) <= graph.nodes:
        path.append(by_target[at])
        at = int(edges.source[by_target[at]])
    return np.array(path, np.int64)
