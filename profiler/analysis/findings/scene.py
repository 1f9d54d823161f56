"""Everything a finding looks at, computed once: frames, segments, works, intervals, modules."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from profiler.analysis.findings.parts import Parts
from profiler.analysis.findings.types import Past
from profiler.analysis.operators import module_path
from profiler.analysis.replay.graph import EdgeKind, Graph
from profiler.analysis.replay.recording import Recording
from profiler.analysis.report import RankSet, Report
from profiler.analysis.roofline.peaks import Peaks
from profiler.analysis.roofline.table import Roofline
from profiler.trace.batch import NONE, Bool
from profiler.trace.clock import Int64
from profiler.trace.kinds import Kind
from profiler.trace.link import Structure
from profiler.trace.model import Trace
from profiler.trace.nest import nearest
from profiler.trace.vendors import rules

_NUMBERS = re.compile(r"(?<=\.)\d+(?=\.|$)")
_SHOWN_MODULES = 8


@dataclass(slots=True)
class Intervals:
    """Host time between consecutive launches of a thread.

    `segment` gives per segment of the graph its interval, -1 before the first
    launch; `ns` the host's own time in an interval; `work` the work (position
    in `Graph.works`) whose launch ends it, -1 for the last of a thread.
    """

    segment: Int64
    ns: Int64
    work: Int64


class Scene(Parts):
    """A trace with its graph and roofline, seen from the findings."""

    def __init__(
        self,
        trace: Trace,
        structure: Structure,
        graph: Graph,
        roof: Roofline,
        *,
        report: Report | None = None,
        peaks: Peaks | None = None,
        past: Past | None = None,
        ranks: RankSet | None = None,
        dtype: str | None = None,
        recording: Recording | None = None,
    ) -> None:
        works = graph.works
        super().__init__(
            graph,
            parent=structure.host.parent,
            rows=structure.host.rows.astype(np.int64),
            source=_sources(structure, works),
            work_ns=trace.device.dur[works],
            work_kind=trace.device.kind[works].astype(np.int64),
        )
        self.trace, self.structure, self.roof = trace, structure, roof
        self.report, self.past, self.ranks, self.dtype = report, past, ranks, dtype
        self.peaks = peaks if peaks is not None and peaks.usable else None
        self.recording = recording
        self.unusable_peaks = peaks is not None and not peaks.usable

    @cached_property
    def names(self) -> list[str]:
        """Name of the frame at each position of `Structure.host`."""
        codes = self.trace.events.name[self.structure.host.rows].tolist()
        return [self.trace.strings[code] for code in codes]

    @cached_property
    def kinds(self) -> Int64:
        """Kind of the frame at each position of `Structure.host`."""
        return self.trace.events.kind[self.structure.host.rows].astype(np.int64)

    def named(self, pattern: re.Pattern[str]) -> Bool:
        """Positions of `Structure.host` with a matching name."""
        found = np.fromiter((pattern.search(s) is not None for s in self.trace.strings), np.bool_)
        return np.asarray(found[self.trace.events.name[self.structure.host.rows]])

    def ruled(self, rule: str) -> Bool:
        """Positions of `Structure.host` whose name matches a rule of `vendors.toml`."""
        return self.named(rules().names[rule])

    def work_names(self, works: Int64) -> list[str]:
        """Names of works (positions in `Graph.works`)."""
        codes = self.trace.device.name[self.graph.works[works]].tolist()
        return [self.trace.strings[code] for code in codes]

    @cached_property
    def module_of(self) -> Int64:
        """Per position of `Structure.host` the position of its module, -1 without one."""
        is_module = np.asarray(self.kinds == Kind.MODULE)
        inner = nearest(self.structure.host.parent, is_module)
        return np.where(is_module, np.arange(len(inner)), inner)

    def modules(self, positions: Int64) -> tuple[str, ...]:
        """Modules of frames, most frequent first, layer numbers folded into `*`."""
        found = self.module_of[positions[positions >= 0]]
        at, counts = np.unique(found[found >= 0], return_counts=True)
        paths: Counter[str] = Counter()
        for position, count in zip(at.tolist(), counts.tolist(), strict=True):
            paths[self.module_name(position)] += count
        return tuple(path for path, _ in paths.most_common(_SHOWN_MODULES))

    def module_name(self, position: int) -> str:
        """Path of a module with layer numbers folded into `*`."""
        return folded(self.names[position])

    @cached_property
    def ops(self) -> Int64:
        """Per position of `Structure.ops` the position in `Structure.host`."""
        return np.asarray(self.structure.position[self.structure.ops.rows], np.int64)

    def in_window(self, positions: Int64) -> Int64:
        """Those positions of `Structure.host` that start inside the window."""
        ts = self.trace.events.ts[self.structure.host.rows[positions]]
        window = self.graph.window
        return positions[(ts >= window.begin_ns) & (ts < window.end_ns)]

    def step_of(self, position: int) -> int:
        """Number of the step in which a frame starts."""
        starts = [a for a, _ in self.graph.window.bounds] or [self.graph.window.begin_ns]
        at = int(self.trace.events.ts[self.structure.host.rows[position]])
        return bisect_right(starts, at) - 1

    def bytes_at(self, position: int) -> int:
        """Least traffic of the operator at a position of `Structure.host`; 0 where not counted."""
        at = int(self.structure.op_position[self.structure.host.rows[position]])
        number = int(self.roof.signature[at]) if at >= 0 else NONE
        return self.roof.costs[number].size_bytes if number >= 0 else 0

    @cached_property
    def tight(self) -> Int64:
        """Per node the kind of the edge that held it up in the measured run, -1 for none."""
        graph, edges = self.graph, self.graph.edges
        value = graph.start[edges.source] + edges.lag
        value += np.where(edges.from_end, graph.length[edges.source], 0)
        held = value == graph.start[edges.target]
        out = np.full(graph.nodes, NONE, np.int64)
        out[edges.target[held]] = edges.kind[held]
        return out

    @cached_property
    def late(self) -> Bool:
        """Works that started late because the host launched them late: the device was idle."""
        graph = self.graph
        start = graph.start[graph.hosts :]
        end = start + graph.length[graph.hosts :]
        reach = np.concatenate([[np.iinfo(np.int64).min], np.maximum.accumulate(end)[:-1]])
        by_start = np.argsort(start, kind="stable")
        ordered_end = np.maximum.accumulate(end[by_start]) if len(end) else end
        reach[by_start[1:]] = ordered_end[:-1]
        held = self.tight[graph.hosts :] == EdgeKind.LAUNCH
        return np.asarray(held & (start > reach))

    @cached_property
    def intervals(self) -> Intervals:
        """Host time between launches, per thread."""
        graph, events = self.graph, self.trace.events
        launch = self.structure.launch[graph.works]
        works = np.flatnonzero(launch >= 0)
        works = works[events.ts[launch[works]] >= graph.window.begin_ns]
        rows, first = np.unique(launch[works], return_index=True)
        works = works[first]
        order = np.lexsort((events.ts[rows], events.track[rows]))
        rows, works = rows[order], works[order]
        track = events.track[rows].astype(np.int64)
        width = graph.window.end_ns - min(graph.window.begin_ns, 0) + 1
        key = track * width + events.ts[rows]
        parts = graph.segments
        at = np.searchsorted(key, parts.track * width + parts.ts, side="right") - 1
        outside = (at < 0) | (track[np.maximum(at, 0)] != parts.track) if len(rows) else at < 0
        segment = np.where(outside, NONE, at)
        ns = np.zeros(len(rows), np.int64)
        np.add.at(ns, segment[segment >= 0], graph.segment_ns[segment >= 0])
        follows = np.concatenate([track[1:] == track[:-1], [False]]) if len(rows) else track == 0
        work = np.where(follows, np.roll(works, -1), NONE)
        return Intervals(segment, ns, work)

    @cached_property
    def launch_ns(self) -> int:
        """What one launch costs the host at best here: 10th percentile of the intervals."""
        ns = self.intervals.ns
        ns = ns[(ns > 0) & (ns < 200_000)]
        return int(np.percentile(ns, 10)) if len(ns) else 5_000

    def python_after(self, positions: Int64) -> Int64:
        """Segments outside of operators that begin where one of these frames ends."""
        parts, rows = self.graph.segments, self.structure.host.rows[positions]
        ends = zip(
            self.trace.events.track[rows].tolist(),
            self.trace.events.end[rows].tolist(),
            strict=True,
        )
        wanted = set(ends)
        starts = zip(parts.track.tolist(), parts.ts.tolist(), strict=True)
        at = np.array([n for n, key in enumerate(starts) if key in wanted], np.int64)
        owner = parts.owner[at]
        working = np.isin(self.kinds[np.maximum(owner, 0)], (Kind.HOST_OP, Kind.RUNTIME))
        return np.asarray(at[~((owner >= 0) & working)], np.int64)

    def host_ns(self, segments: Int64) -> int:
        """Host time of segments as the graph counts it."""
        return int(self.graph.segment_ns[segments].sum())


def folded(name: str) -> str:
    """Path of a module frame with layer numbers folded into `*`."""
    return _NUMBERS.sub("*", module_path(name))


def _sources(structure: Structure, works: Int64) -> Int64:
    """Per work of the graph the position of its launching call, else operator, else -1."""
    launch, op = structure.launch[works], structure.op[works]
    row = np.where(launch >= 0, launch, op)
    at = np.where(row >= 0, structure.position[np.maximum(row, 0)], NONE)
    return np.asarray(at, np.int64)


def top_names(names: Iterable[str], limit: int = 5) -> list[str]:
    """Most frequent names."""
    return [name for name, _ in Counter(names).most_common(limit)]
