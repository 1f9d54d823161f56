"""The graph of a window: host stretches and device work as nodes, what waited for what as edges.

Node v starts at the latest of its edges: the start or the end of the edge's
source plus the edge's lag. Host nodes run from one point where the thread
meets something else (a launch, the end of a blocking call, another thread) to
the next; device nodes are pieces of device work. Times are ns from the begin
of the window.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from profiler.analysis.replay.segments import Segments
from profiler.analysis.replay.window import Window
from profiler.trace.batch import Bool
from profiler.trace.clock import Int64

NEVER = np.int64(-(1 << 60))
"""Lag of an edge that holds nothing up."""


class EdgeKind(IntEnum):
    """Why the target waited for the source."""

    PROGRAM = 0
    LAUNCH = 1
    STREAM = 2
    BLOCKING = 3
    ACROSS = 4
    THREAD = 5
    QUEUE = 6


@dataclass(slots=True)
class Edges:
    """Edges by target. `from_end`: the lag counts from the source's end, else from its start."""

    source: Int64
    target: Int64
    lag: Int64
    from_end: Bool
    kind: npt.NDArray[np.int8]
    inferred: Bool

    def __len__(self) -> int:
        return len(self.source)


@dataclass(slots=True)
class Graph:
    """A window ready to replay.

    `start` and `length` are the measured times of nodes; host nodes come
    first (`hosts` of them), node `hosts + i` is the work `works[i]` (index into
    `Trace.device`). `release` is the earliest start of nodes that wait for
    nothing in the window. `segment_ns` is what a segment adds to its node
    (`segment_node`): its duration, but of a call that waited only its own
    cost. `blocking` maps host nodes that end a blocking call to its row in
    `Events`, -1 elsewhere. `dropped` counts orders that the measured times contradict.
    """

    window: Window
    segments: Segments
    segment_node: Int64
    segment_ns: Int64
    works: Int64
    hosts: int
    start: Int64
    length: Int64
    release: Int64
    edges: Edges
    order: Int64
    blocking: Int64
    opaque: Bool
    dropped: int

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.start)

    @property
    def span_ns(self) -> int:
        """Last end of any node: what the measured window took."""
        return int((self.start + self.length).max()) if self.nodes else 0

    @property
    def inferred(self) -> int:
        """Edges that the trace does not state."""
        return int(self.edges.inferred.sum())

    def node_of_work(self, works: Int64) -> Int64:
        """Nodes of pieces of device work (indices into `Trace.device`) that are in the window."""
        at = np.searchsorted(self.works, works)
        at = np.minimum(at, max(len(self.works) - 1, 0))
        inside = self.works[at] == works if len(self.works) else np.zeros(len(works), np.bool_)
        return np.asarray(self.hosts + at[inside], np.int64)
