"""The replayed steps without what recording them cost.

A profiler slows what it watches: it writes down every operator and every mark
when they begin and when they end, on the thread that runs them, and works
between two steps. Where the same step was also timed without a profiler, both
can be taken out of the graph: time outside of phase marks belongs to no timed
step, and the rest of the difference is spread over the records, each as dear as
the next of its kind. What a record costs lies outside of the frame it is about,
half before its start and half after its end, so it is taken from the segments
there; no segment becomes shorter than nothing.

Device work stays as recorded. Where the timed step is shorter than the records
can explain, the rest (caches, memory the allocator had to fetch anew) is left
in, and `left` says how much that is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from profiler.analysis.replay.change import Change, host
from profiler.analysis.replay.graph import Graph
from profiler.analysis.replay.schedule import run, spans_ns
from profiler.trace.clock import Int64
from profiler.trace.kinds import Kind
from profiler.trace.link import Structure
from profiler.trace.model import Trace

NOTICED = 1.02
"""Recorded over timed step from which recording is worth taking out."""

MOST_NS = 5_000
"""A record of one operator is never dearer; what that leaves has another cause."""

WEIGHTS = {Kind.HOST_OP: 1.0, Kind.PYTHON: 1.0, Kind.MODULE: 12.0, Kind.ANNOTATION: 12.0}
"""Cost of a record in those of an operator's: marks are made by Python hooks. Processor time with
torch 2.13: 0.6 to 2 µs for an operator with its shapes, 12 µs for a mark."""

_GRID = 9

Weights = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What was taken out, per step. `timed_ns` is the step without a profiler, `recorded_ns` with.

    `between_ns` is the profiler's own time between steps, `event_ns` the cost
    of one record of an operator; `step_ns` is the step that is left.
    """

    recorded_ns: int
    timed_ns: int
    step_ns: int
    between_ns: int
    event_ns: float

    @property
    def left(self) -> float:
        """The step that is left over the timed one: 1 where recording explains all."""
        return self.step_ns / self.timed_ns


def without_recording(
    trace: Trace, structure: Structure, graph: Graph, timed_ns: float
) -> tuple[Graph, Recording] | None:
    """The graph as it is without a profiler, when a step then takes `timed_ns`.

    None where recording made no difference worth the name.
    """
    steps = max(1, graph.window.steps)
    recorded = graph.span_ns / steps
    if timed_ns <= 0 or recorded < NOTICED * timed_ns:
        return None
    outside = _outside_phases(trace, structure, graph)
    weights = _records(trace, structure, graph)
    bare = _change(graph, outside, weights, 0.0)
    grid = np.linspace(0.0, MOST_NS, _GRID)
    spans = np.array(spans_ns(graph, [_change(graph, outside, weights, c) for c in grid]))
    event = float(np.interp(-timed_ns * steps, -spans, grid))
    (between,) = spans_ns(graph, [bare])
    made = _rebuilt(graph, _change(graph, outside, weights, event))
    return made, Recording(
        recorded_ns=round(recorded),
        timed_ns=round(timed_ns),
        step_ns=round(made.span_ns / steps),
        between_ns=round((graph.span_ns - between) / steps),
        event_ns=event,
    )


def _outside_phases(trace: Trace, structure: Structure, graph: Graph) -> Int64:
    """Segments of the stepping thread outside of every phase mark; none without such marks."""
    parts, host_rows = graph.segments, structure.host.rows
    events = trace.events
    marks = trace.matching("phase")[events.name[host_rows]]
    rows = host_rows[marks & (events.track[host_rows] == graph.window.track)]
    if not len(rows):
        return np.empty(0, np.int64)
    rows = rows[np.argsort(events.ts[rows], kind="stable")]
    starts, ends = events.ts[rows], np.maximum.accumulate(events.end[rows])
    at = np.searchsorted(starts, parts.ts, side="right") - 1
    inside = (at >= 0) & (parts.ts < ends[np.maximum(at, 0)])
    return np.flatnonzero(~inside & (parts.track == graph.window.track))


def _records(trace: Trace, structure: Structure, graph: Graph) -> Weights:
    """Per segment what recording took of it, in records of one operator."""
    events, rows = trace.events, structure.host.rows
    weight = np.zeros(len(rows))
    for kind, cost in WEIGHTS.items():
        weight[events.kind[rows] == kind] = cost / 2
    parts, window = graph.segments, graph.window
    width = window.end_ns - window.begin_ns + 2

    def keys(track: Int64, time: Int64) -> Int64:
        return np.asarray(
            track * width + np.clip(time - window.begin_ns, -1, width - 2) + 1, np.int64
        )

    begins: Int64 = keys(parts.track, parts.ts)
    out = np.zeros(len(parts.ts))
    track, ts, end = events.track[rows].astype(np.int64), events.ts[rows], events.end[rows]
    inside = (ts >= window.begin_ns) & (ts < window.end_ns) & (weight > 0)
    before = np.searchsorted(begins, keys(track, ts)) - 1
    after = np.searchsorted(begins, keys(track, end))
    for at in (before, after):
        known = inside & (at >= 0) & (at < len(begins))
        known[known] &= parts.track[at[known]] == track[known]
        np.add.at(out, at[known], weight[known])
    return out


def _change(graph: Graph, outside: Int64, weights: Weights, event_ns: float) -> Change:
    ns = np.maximum(graph.segment_ns - weights * event_ns, 0).astype(np.int64)
    ns[outside] = 0
    changed = np.flatnonzero(ns != graph.segment_ns)
    return host("without recording", changed, ns[changed])


def _rebuilt(graph: Graph, change: Change) -> Graph:
    """The graph after a change of segments, as if it had been measured so."""
    schedule = run(graph, [change])
    ns = graph.segment_ns.copy()
    ns[change.segments] = change.segment_ns
    start = schedule.start[:, 0]
    return replace(
        graph, segment_ns=ns, start=start, length=schedule.end[:, 0] - schedule.start[:, 0]
    )
