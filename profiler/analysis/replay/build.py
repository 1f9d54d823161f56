"""Builds the graph of a window from a trace."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from profiler.analysis.replay.calibrate import calibrated, nominal_lags
from profiler.analysis.replay.graph import NEVER, EdgeKind, Edges, Graph
from profiler.analysis.replay.segments import Segments, segments
from profiler.analysis.replay.streams import Works, works_of
from profiler.analysis.replay.threads import Burst, bursts
from profiler.analysis.replay.waits import (
    OWN_COST_NS,
    SAME_TIME_NS,
    Blocked,
    blocked_calls,
    inferred_waits,
    recorded_waits,
)
from profiler.analysis.replay.window import Window, window_of
from profiler.trace.batch import NONE, Bool
from profiler.trace.clock import Int64
from profiler.trace.kinds import Kind
from profiler.trace.link import Structure
from profiler.trace.model import Trace
from profiler.trace.vendors import rules

_LONGEST_TIE = 500

_DONE, _BEGIN, _END, _JOIN, _LAUNCH, _FORK = range(6)


@dataclass(slots=True)
class _Points:
    """Points where host threads meet something else; one host node begins at each."""

    track: list[int] = field(default_factory=list)
    time: list[int] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    ref: list[int] = field(default_factory=list)

    def add(self, track: int, time: int, kind: int, ref: int = NONE) -> None:
        self.track.append(track)
        self.time.append(time)
        self.kind.append(kind)
        self.ref.append(ref)


def _no_points() -> Int64:
    return np.empty(0, np.int64)


@dataclass(slots=True)
class _Arcs:
    """Edges while they are collected."""

    source: list[int] = field(default_factory=list)
    target: list[int] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    from_end: list[bool] = field(default_factory=list)
    inferred: list[bool] = field(default_factory=list)

    def add(
        self, source: int, target: int, kind: int, *, from_end: bool = True, inferred: bool
    ) -> None:
        self.source.append(source)
        self.target.append(target)
        self.kind.append(kind)
        self.from_end.append(from_end)
        self.inferred.append(inferred)


def build(trace: Trace, structure: Structure, window: Window | None = None) -> Graph | None:
    """The graph of `window` (all steps by default); None where nothing happened in the trace."""
    window = window or window_of(trace, structure)
    if window is None:
        return None
    works = works_of(trace, structure, window)
    blocked = blocked_calls(trace, structure, works, window)
    parts = segments(trace, structure, window, _zero_launches(structure, works))
    builder = _Builder(
        trace=trace,
        structure=structure,
        window=window,
        works=works,
        blocked=blocked,
        parts=parts,
        threads=bursts(trace, structure, parts, window.track),
    )
    return builder.graph()


def _zero_launches(structure: Structure, works: Works) -> Bool:
    marks = np.zeros(len(structure.host.rows), np.bool_)
    launches = np.unique(works.launch[works.launch >= 0])
    at = structure.position[launches]
    marks[at[at >= 0]] = True
    return marks


@dataclass(slots=True, kw_only=True)
class _Builder:
    trace: Trace
    structure: Structure
    window: Window
    works: Works
    blocked: list[Blocked]
    parts: Segments
    threads: list[Burst]
    _arcs: _Arcs = field(default_factory=_Arcs)
    _dropped: int = 0
    _contradicted: int = 0
    _track: Int64 = field(default_factory=_no_points)
    _time: Int64 = field(default_factory=_no_points)
    _kind: Int64 = field(default_factory=_no_points)
    _ref: Int64 = field(default_factory=_no_points)
    _at: dict[tuple[int, int, int, int], int] = field(default_factory=dict)

    def graph(self) -> Graph:
        """Nodes, then edges, then lags that reproduce the measured starts."""
        self._place_points()
        segment_ns, segment_node = self._segment_times()
        hosts = len(self._time)
        base = self.window.begin_ns
        length = np.zeros(hosts + len(self.works), np.int64)
        np.add.at(length, segment_node, segment_ns)
        length[hosts:] = self.works.end - self.works.ts
        start = np.concatenate([self._time, self.works.ts]) - base
        release = np.full(len(start), NEVER)
        self._host_edges()
        self._device_edges(hosts)
        edges = self._checked(start, length)
        loose = self._loose(edges, start, length)
        for wait in inferred_waits(self.works, loose):
            self._arcs.add(hosts + wait.source, hosts + wait.target, EdgeKind.ACROSS, inferred=True)
        edges = self._checked(start, length)
        order = _order(edges, start)
        edges = self._forward(edges, order)
        bare = np.ones(len(start), np.bool_)
        bare[edges.target] = False
        release[bare] = start[bare]
        return Graph(
            window=self.window,
            segments=self.parts,
            segment_node=segment_node,
            segment_ns=segment_ns,
            works=self.works.index,
            hosts=hosts,
            start=start,
            length=length,
            release=release,
            edges=calibrated(edges, start, length),
            order=order,
            blocking=self._blocking_rows(),
            opaque=self.works.opaque,
            dropped=self._dropped,
        )

    def _place_points(self) -> None:
        events, window = self.trace.events, self.window
        points = _Points()
        for track in np.unique(self.parts.track).tolist():
            first = int(self.parts.ts[self.parts.track == track][0])
            points.add(track, first, _BEGIN)
        launches = np.unique(self.works.launch[self.works.launch >= 0])
        for row in launches.tolist():
            if events.ts[row] >= window.begin_ns:
                points.add(int(events.track[row]), int(events.ts[row]), _LAUNCH, row)
        for number, one in enumerate(self.blocked):
            points.add(int(events.track[one.row]), int(events.end[one.row]), _END, number)
        for number, burst in enumerate(self.threads):
            segment = burst.segment
            begin = int(self.parts.ts[segment])
            points.add(window.track, begin, _FORK, number)
            points.add(burst.track, burst.begin_ns, _BEGIN, number)
            if burst.joined:
                points.add(window.track, begin + int(self.parts.dur[segment]), _JOIN, number)
                points.add(burst.track, burst.end_ns, _DONE, number)
        self._sorted_points(points)

    def _sorted_points(self, points: _Points) -> None:
        columns = (points.track, points.time, points.kind, points.ref)
        track, time, kind, ref = (np.array(c, np.int64) for c in columns)
        order = np.lexsort((ref, kind, time, track))
        self._track, self._time = track[order], time[order]
        self._kind, self._ref = kind[order], ref[order]
        parts = (self._track.tolist(), self._kind.tolist(), self._ref.tolist())
        found = zip(*parts, self._time.tolist(), strict=True)
        self._at = {point: n for n, point in enumerate(found)}

    def _find(self, track: int, kind: int, ref: int, time: int) -> int:
        return self._at[track, kind, ref, time]

    def _segment_times(self) -> tuple[Int64, Int64]:
        """What each segment adds to its node, and that node."""
        parts = self.parts
        points = _keys(self._track, self._time, self.window)
        begins = _keys(parts.track, parts.ts, self.window)
        node = np.searchsorted(points, begins, side="right") - 1
        ns = parts.dur.copy()
        for one in self.blocked:
            if one.waited:
                self._shorten(one, begins, ns)
        for burst in self.threads:
            self._give_way(burst, ns)
        return ns, node

    def _shorten(self, one: Blocked, begins: Int64, ns: Int64) -> None:
        """Of a call that waited only its own cost counts as host time, at its beginning."""
        events = self.trace.events
        track = np.full(2, events.track[one.row], np.int64)
        times = np.array([events.ts[one.row], events.end[one.row]], np.int64)
        low, high = np.searchsorted(begins, _keys(track, times, self.window)).tolist()
        left = self._own_cost(one)
        for at in range(low, high):
            ns[at] = min(int(ns[at]), left)
            left -= int(ns[at])

    def _own_cost(self, one: Blocked) -> int:
        """What the call would take with nothing to wait for; at most 10 µs."""
        events = self.trace.events
        same = events.dur[events.name == events.name[one.row]]
        ended = max(int(self.works.end[at]) for at in one.works)
        rest = max(0, int(events.end[one.row]) - ended) if not one.queue else OWN_COST_NS
        return min(int(events.dur[one.row]), int(same.min()), OWN_COST_NS, max(rest, 1_000))

    def _give_way(self, burst: Burst, ns: Int64) -> None:
        """A thread that starts and waits for another spends its own time before and after."""
        parts = self.parts
        if burst.joined:
            ns[burst.segment] = 0
        before = np.flatnonzero(
            (parts.track == burst.track) & (parts.ts + parts.dur == burst.begin_ns)
        )
        if len(before) and parts.owner[before[0]] == NONE:
            ns[before[0]] = 0

    def _host_edges(self) -> None:
        arcs, program = self._arcs, int(EdgeKind.PROGRAM)
        same = np.flatnonzero(self._track[1:] == self._track[:-1])
        for at in same.tolist():
            arcs.add(at, at + 1, program, inferred=False)
        for number, burst in enumerate(self.threads):
            track, segment = self.window.track, burst.segment
            begin = int(self.parts.ts[segment])
            fork = self._find(track, _FORK, number, begin)
            target = self._find(burst.track, _BEGIN, number, burst.begin_ns)
            guessed = not burst.recorded
            arcs.add(fork, target, EdgeKind.THREAD, from_end=False, inferred=guessed)
            if burst.joined:
                done = self._find(burst.track, _DONE, number, burst.end_ns)
                until = begin + int(self.parts.dur[segment])
                join = self._find(track, _JOIN, number, until)
                arcs.add(done, join, EdgeKind.THREAD, from_end=False, inferred=guessed)

    def _device_edges(self, hosts: int) -> None:
        events, works, arcs = self.trace.events, self.works, self._arcs
        points = np.flatnonzero(self._kind == _LAUNCH)
        at = dict(zip(self._ref[points].tolist(), points.tolist(), strict=True))
        launch = int(EdgeKind.LAUNCH)
        for place, row in enumerate(works.launch.tolist()):
            if row in at:
                arcs.add(at[row], hosts + place, launch, from_end=False, inferred=False)
        stream = int(EdgeKind.STREAM)
        for source, target in self._stream_pairs():
            arcs.add(hosts + source, hosts + target, stream, inferred=False)
        for wait in recorded_waits(self.trace, self.structure, works):
            arcs.add(hosts + wait.source, hosts + wait.target, EdgeKind.ACROSS, inferred=False)
        for number, one in enumerate(self.blocked):
            track, time = int(events.track[one.row]), int(events.end[one.row])
            target = self._find(track, _END, number, time)
            kind = EdgeKind.QUEUE if one.queue else EdgeKind.BLOCKING
            for work in one.works:
                arcs.add(hosts + work, target, kind, from_end=not one.queue, inferred=one.inferred)

    def _stream_pairs(self) -> list[tuple[int, int]]:
        """Work and the one before it on its stream; overlapping ones have no order (counted)."""
        works, out = self.works, []
        for stream in range(int(works.stream.max()) + 1 if len(works) else 0):
            mine = np.flatnonzero(works.stream == stream)
            mine = mine[np.lexsort((works.end[mine], works.ts[mine]))]
            ends = works.end[mine]
            overlap = np.flatnonzero(ends[:-1] > works.ts[mine[1:]])
            self._dropped += len(overlap)
            source = mine[:-1].copy()
            by_end = mine[np.argsort(ends, kind="stable")]
            ordered = works.end[by_end]
            for at in overlap.tolist():
                place = int(np.searchsorted(ordered, works.ts[mine[at + 1]], side="right")) - 1
                source[at] = by_end[place] if place >= 0 else NONE
            pairs = zip(source.tolist(), mine[1:].tolist(), strict=True)
            out += [(a, b) for a, b in pairs if a not in (NONE, b)]
        return out

    def _checked(self, start: Int64, length: Int64) -> Edges:
        """Edges with lags no larger than measured; those that time contradicts are dropped."""
        arcs = self._arcs
        source, target = np.array(arcs.source, np.int64), np.array(arcs.target, np.int64)
        from_end = np.array(arcs.from_end, np.bool_)
        kind, guessed = np.array(arcs.kind, np.int8), np.array(arcs.inferred, np.bool_)
        room = start[target] - start[source] - np.where(from_end, length[source], 0)
        lag = np.minimum(nominal_lags(kind, source, target, room), room)
        keep = room >= 0
        self._contradicted = int((~keep).sum())
        return Edges(
            source[keep], target[keep], lag[keep], from_end[keep], kind[keep], guessed[keep]
        )

    def _loose(self, edges: Edges, start: Int64, length: Int64) -> Bool:
        """Works that start later than everything known about them explains."""
        hosts = len(self._time)
        value = start[edges.source] + np.where(edges.from_end, length[edges.source], 0) + edges.lag
        latest = np.full(len(start), NEVER)
        np.maximum.at(latest, edges.target, value)
        late = start[hosts:] - latest[hosts:]
        return np.asarray((late > SAME_TIME_NS) & (latest[hosts:] > NEVER))

    def _forward(self, edges: Edges, order: Int64) -> Edges:
        """Edges that follow the order; at equal times a few may not, they are dropped."""
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        keep = place[edges.source] < place[edges.target]
        self._dropped += self._contradicted + int((~keep).sum())
        return Edges(
            edges.source[keep],
            edges.target[keep],
            edges.lag[keep],
            edges.from_end[keep],
            edges.kind[keep],
            edges.inferred[keep],
        )

    def _blocking_rows(self) -> Int64:
        out = np.full(len(self._time), NONE, np.int64)
        for at in np.flatnonzero(self._kind == _END).tolist():
            out[at] = self.blocked[int(self._ref[at])].row
        return out


def _keys(track: Int64, time: Int64, window: Window) -> Int64:
    """Numbers that sort by (track, time); all times lie in the window."""
    width = window.end_ns - window.begin_ns + 2
    return track * width + np.clip(time - window.begin_ns, 0, width - 1)


def _order(edges: Edges, start: Int64) -> Int64:
    """Nodes by start; at equal times after everything they wait for."""
    same = np.flatnonzero(start[edges.source] == start[edges.target])
    source, target = edges.source[same], edges.target[same]
    rank = np.zeros(len(start), np.int64)
    for _ in range(_LONGEST_TIE):
        before = rank[source] + 1
        if (rank[target] >= before).all():
            break
        np.maximum.at(rank, target, before)
    return np.asarray(np.lexsort((np.arange(len(start)), rank, start)), np.int64)


def launch_calls(trace: Trace) -> Bool:
    """Per row of `Events` whether it is a runtime call that puts work on a device."""
    named = np.fromiter(map(rules().is_launch, trace.strings), np.bool_, len(trace.strings))
    return np.asarray((trace.events.kind == Kind.RUNTIME) & named[trace.events.name])
