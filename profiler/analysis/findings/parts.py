"""A graph with the frames that own its parts: what a change of some frames means for the graph."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profiler.analysis.replay.change import Change, combined, device, gone, host, unblocked
from profiler.analysis.replay.graph import Graph
from profiler.trace.batch import Bool, Int32
from profiler.trace.clock import Int64
from profiler.trace.nest import nearest

Numbers = Int64 | npt.NDArray[np.floating]


class Parts:
    """Host frames as a forest, and which of them own segments and works of the graph.

    `parent` gives per frame the one around it, -1 for none, `rows` what
    `Graph.blocking` calls it. `source` gives per work of the graph the frame
    that launched it, -1 where unknown; `work_ns` and `work_kind` are aligned with it.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        parent: Int32,
        rows: Int64,
        source: Int64,
        work_ns: Int64,
        work_kind: Int64,
    ) -> None:
        self.graph, self.parent, self.rows = graph, parent, rows
        self.source, self.work_ns, self.work_kind = source, work_ns, work_kind

    @property
    def steps(self) -> int:
        """Steps in the window, at least one."""
        return max(1, self.graph.window.steps)

    @property
    def step_ns(self) -> int:
        """Mean time of a step in the window."""
        return self.graph.span_ns // self.steps

    @property
    def on_device(self) -> bool:
        """Whether any device work is in the window; otherwise the host is what runs operators."""
        return bool(len(self.graph.works))

    def per_step(self, ns: float) -> int:
        """A total of the window per step."""
        return round(ns / self.steps)

    def frames(self, positions: Int64) -> Bool:
        """A mask over all frames for some of them."""
        out = np.zeros(len(self.parent), np.bool_)
        out[positions] = True
        return out

    def inside(self, frames: Bool) -> Bool:
        """The frames and everything in them."""
        if not len(frames):
            return frames
        return np.asarray(frames | (nearest(self.parent, frames) >= 0))

    def segments_of(self, frames: Bool) -> Int64:
        """Segments of the graph whose innermost frame is one of these."""
        owner = self.graph.segments.owner
        chosen = np.zeros(len(owner), np.bool_)
        known = owner >= 0
        chosen[known] = frames[owner[known]]
        return np.flatnonzero(chosen)

    def works_of(self, frames: Bool) -> Int64:
        """Works (positions in `Graph.works`) launched inside these frames."""
        known = self.source >= 0
        chosen = np.zeros(len(self.source), np.bool_)
        chosen[known] = frames[self.source[known]]
        return np.flatnonzero(chosen)

    def scaled(self, label: str, frames: Bool, factor: float) -> Change:
        """Everything these frames do takes `factor` times as long: device work, else host time."""
        if self.on_device:
            works = self.works_of(frames)
            return self.with_work_ns(label, works, self.work_ns[works] * factor)
        return self.with_host(label, frames, factor)

    def with_host(self, label: str, frames: Bool, factor: float) -> Change:
        """The host's own time in these frames becomes `factor` times what it is."""
        mine = self.segments_of(frames)
        return host(label, mine, (self.graph.segment_ns[mine] * factor).astype(np.int64))

    def with_work_ns(self, label: str, works: Int64, ns: Numbers) -> Change:
        """Works (positions in `Graph.works`) with new durations."""
        return device(self.graph, label, self.graph.works[works], np.asarray(ns).astype(np.int64))

    def without(self, label: str, frames: Bool) -> Change:
        """These frames never ran: their work, their host time and their waits are gone."""
        works = self.graph.works[self.works_of(frames)]
        idle = self.with_host(label, frames, 0.0)
        free = unblocked(self.graph, label, self.rows[frames].astype(np.int64))
        return combined(label, [gone(self.graph, label, works), idle, free])
