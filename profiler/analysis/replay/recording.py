"""The replayed steps without what recording them cost.

A profiler slows what it watches: it writes down every operator and every mark
when they begin and when they end, on the thread that runs them, and works
between two steps. Where the same step was also timed without a profiler, both
can be taken out of the graph: time outside of phase marks belongs to no timed
step, and the rest of the difference is spread over the records, each as dear as
the next of its kind. What the record of an operator costs lies outside of its
frame, half before its start and half after its end, so it is taken from the
segments there; half of what a mark costs lies inside. No segment becomes shorter
than nothing.

How dear a record can be is read off the trace: between the start of an operator
and that of the first one inside lies little else. Where that does not explain the
timed step, code between records ran slower too, as the recorder had taken its
place in the caches: the same share of every segment's first `COLD_NS` is taken
out. Device work stays as recorded. What even that cannot explain is left in, and
`left` says how much it is.
"""

from __future__ import annotations

from collections.abc import Callable
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

NESTED = 100
"""Operators inside of operators that it takes to read the cost of a record off the trace."""

LOW = 0.1
"""Quantile of the gaps around nested operators: with hardly more in them than a record."""

COLD_NS = 20_000
"""Code that ran as long is in the caches again."""

COLDEST = 0.9
"""At most this share of it is taken for the recorder's; nothing runs in no time."""

WEIGHTS = {Kind.HOST_OP: 1.0, Kind.PYTHON: 1.0, Kind.MODULE: 12.0, Kind.ANNOTATION: 12.0}
"""Cost of a record in those of an operator's: marks are made by Python hooks. Processor time with
torch 2.13: 0.6 to 2 µs for an operator with its shapes, 12 µs for a mark."""

WITHIN = {Kind.MODULE: 0.5, Kind.ANNOTATION: 0.5}
"""Part of a mark's cost that lies inside of its own frame: half of 11 µs around an empty module,
torch 2.13. An operator's record takes its time before it starts and after it ended."""

_GRID = 9

Weights = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What was taken out, per step. `timed_ns` is the step without a profiler, `recorded_ns` with.

    `between_ns` is the profiler's own time between steps, `event_ns` the cost
    of one record of an operator, `cold` the share of the code between records
    that is the caches'; `step_ns` is the step that is left.
    """

    recorded_ns: int
    timed_ns: int
    step_ns: int
    between_ns: int
    event_ns: float
    cold: float

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
    most = _most_ns(trace, structure)

    def taken(event_ns: float, cold: float = 0.0) -> Change:
        return _change(graph, outside, weights * event_ns, cold)

    event = _fitting(graph, timed_ns * steps, np.linspace(0.0, most, _GRID), taken)
    cold = 0.0
    if event >= most:
        shares = np.linspace(0.0, COLDEST, _GRID)
        cold = _fitting(graph, timed_ns * steps, shares, lambda share: taken(most, share))
    (between,) = spans_ns(graph, [taken(0.0)])
    made = _rebuilt(graph, taken(event, cold))
    return made, Recording(
        recorded_ns=round(recorded),
        timed_ns=round(timed_ns),
        step_ns=round(made.span_ns / steps),
        between_ns=round((graph.span_ns - between) / steps),
        event_ns=event,
        cold=cold,
    )


def _fitting(
    graph: Graph,
    wanted_ns: float,
    grid: npt.NDArray[np.float64],
    taken: Callable[[float], Change],
) -> float:
    """The value between those of the grid at which the window takes the wanted time."""
    spans = np.array(spans_ns(graph, [taken(value) for value in grid.tolist()]))
    return float(np.interp(-wanted_ns, -spans, grid))


def _most_ns(trace: Trace, structure: Structure) -> float:
    """What a record of an operator can cost at most, by the gaps around nested ones.

    From the start of an operator to that of the first inside, and from the end
    of the last inside to its own. `MOST_NS` where too few are nested.
    """
    host, events = structure.host, trace.events
    is_op = events.kind[host.rows] == Kind.HOST_OP
    inner = np.flatnonzero(is_op & (host.parent >= 0))
    inner = inner[is_op[host.parent[inner]]]
    if len(inner) < NESTED:
        return MOST_NS
    around = host.parent[inner]
    start, end = events.ts[host.rows], events.end[host.rows]
    first = np.full(len(host.rows), np.iinfo(np.int64).max)
    last = np.full(len(host.rows), np.iinfo(np.int64).min)
    np.minimum.at(first, around, start[inner])
    np.maximum.at(last, around, end[inner])
    outer = np.unique(around)
    gaps = (first[outer] - start[outer], end[outer] - last[outer])
    return min(MOST_NS, sum(float(np.quantile(gap, LOW)) for gap in gaps))


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
    outside, inside = np.zeros(len(rows)), np.zeros(len(rows))
    for kind, cost in WEIGHTS.items():
        mine = events.kind[rows] == kind
        within = WITHIN.get(kind, 0.0)
        outside[mine], inside[mine] = cost * (1 - within) / 2, cost * within / 2
    parts, window = graph.segments, graph.window
    width = window.end_ns - window.begin_ns + 2

    def keys(track: Int64, time: Int64) -> Int64:
        return np.asarray(
            track * width + np.clip(time - window.begin_ns, -1, width - 2) + 1, np.int64
        )

    begins: Int64 = keys(parts.track, parts.ts)
    out = np.zeros(len(parts.ts))
    track, ts, end = events.track[rows].astype(np.int64), events.ts[rows], events.end[rows]
    asked = (ts >= window.begin_ns) & (ts < window.end_ns) & (outside > 0)
    first = np.searchsorted(begins, keys(track, ts))
    after = np.searchsorted(begins, keys(track, end))
    places = ((first - 1, outside), (first, inside), (after - 1, inside), (after, outside))
    for at, weight in places:
        known = asked & (at >= 0) & (at < len(begins))
        known[known] &= parts.track[at[known]] == track[known]
        np.add.at(out, at[known], weight[known])
    return out


def _change(graph: Graph, outside: Int64, record_ns: Weights, cold: float) -> Change:
    ns = np.maximum(graph.segment_ns - record_ns, 0)
    ns = (ns - cold * np.minimum(ns, COLD_NS)).astype(np.int64)
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
