"""What would be different: new durations, work that is gone, waits that are gone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from profiler.analysis.replay.graph import NEVER, EdgeKind, Graph
from profiler.trace.clock import Int64

_NOTHING: Int64 = np.empty(0, np.int64)


def _nothing() -> Int64:
    return _NOTHING


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the schedule.

    `nodes`/`node_ns`: device nodes and their new durations; `segments`/
    `segment_ns`: segments of host threads and what they take then;
    `edges`/`lags`: edges with another lag (`NEVER` removes one).
    """

    label: str
    nodes: Int64 = field(default_factory=_nothing)
    node_ns: Int64 = field(default_factory=_nothing)
    segments: Int64 = field(default_factory=_nothing)
    segment_ns: Int64 = field(default_factory=_nothing)
    edges: Int64 = field(default_factory=_nothing)
    lags: Int64 = field(default_factory=_nothing)

    @property
    def empty(self) -> bool:
        """Whether it changes nothing."""
        return not (len(self.nodes) or len(self.segments) or len(self.edges))


def device(graph: Graph, label: str, works: Int64, new_ns: Int64) -> Change:
    """Device work (indices into `Trace.device`) with new durations; what is outside is ignored."""
    inside = np.isin(works, graph.works)
    return Change(label, nodes=graph.node_of_work(works[inside]), node_ns=new_ns[inside])


def gone(graph: Graph, label: str, works: Int64) -> Change:
    """Device work that no longer exists: no duration, and no wait for what came before it."""
    nodes = graph.node_of_work(works[np.isin(works, graph.works)])
    into = np.flatnonzero(np.isin(graph.edges.target, nodes))
    kinds = graph.edges.kind[into]
    lags = np.where(kinds == EdgeKind.LAUNCH, NEVER, np.minimum(graph.edges.lag[into], 0))
    return Change(label, nodes=nodes, node_ns=np.zeros(len(nodes), np.int64), edges=into, lags=lags)


def host(label: str, segments: Int64, new_ns: Int64) -> Change:
    """Segments of host threads with new times."""
    return Change(label, segments=segments, segment_ns=new_ns)


def unblocked(graph: Graph, label: str, rows: Int64) -> Change:
    """Blocking calls (rows of `Events`) that no longer wait for the device."""
    ends = np.flatnonzero(np.isin(graph.blocking, rows))
    waits = (EdgeKind.BLOCKING, EdgeKind.QUEUE)
    edges = np.flatnonzero(np.isin(graph.edges.target, ends) & np.isin(graph.edges.kind, waits))
    return Change(label, edges=edges, lags=np.full(len(edges), NEVER))


def combined(label: str, changes: Iterable[Change]) -> Change:
    """All changes together; of several new times for one thing the shortest holds, once."""
    made = list(changes)
    nodes, node_ns = _least([(c.nodes, c.node_ns) for c in made])
    segments, segment_ns = _least([(c.segments, c.segment_ns) for c in made])
    edges, lags = _least([(c.edges, c.lags) for c in made])
    return Change(label, nodes, node_ns, segments, segment_ns, edges, lags)


def _least(pairs: list[tuple[Int64, Int64]]) -> tuple[Int64, Int64]:
    keys = np.concatenate([k for k, _ in pairs] or [_NOTHING])
    values = np.concatenate([v for _, v in pairs] or [_NOTHING])
    order = np.lexsort((values, keys))
    keys, values = keys[order], values[order]
    first = np.concatenate([[True], keys[1:] != keys[:-1]]) if len(keys) else np.zeros(0, np.bool_)
    return keys[first], values[first]
