"""The critical path of one step: which chain of work decided how long it took.

Walks backwards from the last end. What ended last before now, and could have
held the present work up, comes next: for device work its stream's previous
work, the work of another stream it waited for (as the trace states, else work
whose end it started at: inferred, and counted so), or its launch; for a host
call the call before it on its thread, or, if the call blocks, the device
work it waited for. Gaps are charged to what they were spent on.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from profiler.analysis.replay.streams import works_of
from profiler.analysis.replay.waits import recorded_waits
from profiler.analysis.replay.window import Window
from profiler.analysis.report import CriticalPath, PathPart
from profiler.analysis.steps import step_event_rows
from profiler.trace.batch import NONE
from profiler.trace.clock import Int64
from profiler.trace.kinds import DEVICE_CLASSES, Kind
from profiler.trace.link import Structure
from profiler.trace.model import Trace
from profiler.trace.vendors import rules

SAME_TIME_NS = 3_000
"""An end this close before a start on another stream is taken for a wait nobody recorded."""


@dataclass(slots=True)
class _Lane:
    """Work of one stream or the leaf calls of one thread, by end."""

    rows: list[int]
    starts: list[int]
    ends: list[int]

    def before(self, at: int, used: set[int]) -> int:
        """Position of the last unused piece that ends at or before `at`, -1 for none."""
        place = bisect_right(self.ends, at) - 1
        while place >= 0 and self.rows[place] in used:
            place -= 1
        return place


@dataclass(slots=True)
class _Parts:
    total: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    count: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    recorded: int = 0
    inferred: int = 0

    def add(self, kind: str, name: str, ns: int) -> None:
        """Charge `ns` to a part; nothing to charge adds nothing."""
        if ns > 0:
            self.total[kind, name] += ns
            self.count[kind, name] += 1


def critical_path(trace: Trace, structure: Structure) -> CriticalPath | None:
    """The path through the step of median duration; None without steps and device work."""
    steps = step_event_rows(trace)
    if not len(steps) or not len(trace.device.rows):
        return None
    events = trace.events
    order = np.argsort(events.dur[steps], kind="stable")
    step = int(steps[order[(len(order) - 1) // 2]])
    begin, end = int(events.ts[step]), int(events.end[step])
    walk = _Walk(trace, structure, begin=begin, end=end, thread=int(events.track[step]))
    parts, total = walk.run()
    rows = [
        PathPart(kind=kind, name=name, total_ns=ns, count=parts.count[kind, name])
        for (kind, name), ns in parts.total.items()
    ]
    return CriticalPath(
        step=trace.strings[int(events.name[step])],
        total_ns=total,
        parts=sorted(rows, key=lambda row: (-row.total_ns, row.kind, row.name)),
        inferred_edges=parts.inferred,
        recorded_edges=parts.recorded,
    )


class _Walk:
    """One backward walk over the work of one step."""

    def __init__(
        self, trace: Trace, structure: Structure, *, begin: int, end: int, thread: int
    ) -> None:
        self._trace = trace
        self._structure = structure
        self._begin = begin
        self._thread = self._step_thread = thread
        self._parts = _Parts()
        self._used_work: set[int] = set()
        self._used_calls: set[int] = set()
        self._operators: dict[int, tuple[list[int], list[int]]] = {}
        device = trace.device
        launched = structure.launch >= 0
        issue = np.where(launched, trace.events.ts[np.maximum(structure.launch, 0)], device.ts)
        inside = (issue >= begin) & (issue < end) & (device.kind != Kind.WAIT)
        self._work = np.flatnonzero(inside)
        self._last = max([end, *device.end[self._work].tolist()])
        self._streams, self._stream_of = self._lanes()
        self._stated = self._stated_waits(begin, end)
        self._calls = self._host_lanes(begin, end)
        op_ts = trace.events.ts[structure.ops.rows]
        self._in_step = np.asarray((op_ts < end) & (trace.events.end[structure.ops.rows] > begin))
        self._blocking = {
            code for code, text in enumerate(trace.strings) if rules().is_blocking(text)
        }

    def _lanes(self) -> tuple[dict[int, _Lane], dict[int, int]]:
        device = self._trace.device
        key = device.device.astype(np.int64) * (len(self._trace.strings) + 1) + device.stream
        lanes: dict[int, _Lane] = {}
        for stream in np.unique(key[self._work]).tolist():
            rows = self._work[key[self._work] == stream]
            rows = rows[np.argsort(device.end[rows], kind="stable")]
            lanes[stream] = _lane(rows, device.ts[rows], device.end[rows])
        return lanes, dict(zip(self._work.tolist(), key[self._work].tolist(), strict=True))

    def _stated_waits(self, begin: int, end: int) -> dict[int, int]:
        """Work that waited for work of another stream, as the trace states it."""
        track = self._step_thread
        window = Window(begin, end, 1, track, ((begin, end),), "one step")
        works = works_of(self._trace, self._structure, window)
        index = works.index.tolist()
        waits = recorded_waits(self._trace, self._structure, works)
        return {index[wait.target]: index[wait.source] for wait in waits}

    def _host_lanes(self, begin: int, end: int) -> dict[int, _Lane]:
        """Per thread the runtime calls of the step."""
        events = self._trace.events
        mine = (events.kind == Kind.RUNTIME) & (events.ts >= begin) & (events.end <= end)
        rows = np.flatnonzero(mine)
        rows = rows[np.argsort(events.end[rows], kind="stable")]
        track = events.track[rows]
        return {
            code: _lane(r := rows[track == code], events.ts[r], events.end[r])
            for code in np.unique(track).tolist()
        }

    def run(self) -> tuple[_Parts, int]:
        """Walk from the last end to the begin of the step."""
        now, at, on_device = self._last, NONE, False
        found = self._latest_work(now)
        if found != NONE and int(self._trace.device.end[found]) >= now:
            at, on_device = found, True
        while now > self._begin:
            if on_device:
                now, at, on_device = self._through_work(at, now)
            else:
                now, at, on_device = self._through_host(self._thread, now)
        return self._parts, self._last - self._begin

    def _latest_work(self, now: int) -> int:
        best, latest = NONE, -1
        for lane in self._streams.values():
            place = lane.before(now, self._used_work)
            if place >= 0 and lane.ends[place] > latest:
                best, latest = lane.rows[place], lane.ends[place]
        return best

    def _through_work(self, at: int, now: int) -> tuple[int, int, bool]:
        """Charge one piece of device work; go on with what let it start."""
        trace, device = self._trace, self._trace.device
        self._used_work.add(at)
        start = max(int(device.ts[at]), self._begin)
        kind = DEVICE_CLASSES[Kind(int(device.kind[at]))]
        self._parts.add(kind, trace.strings[int(device.name[at])], now - start)
        launch = int(self._structure.launch[at])
        issued = int(trace.events.end[launch]) if launch >= 0 else self._begin
        issued = min(issued, start)
        own = self._streams[self._stream_of[at]]
        place = own.before(start, self._used_work)
        freed = own.ends[place] if place >= 0 else self._begin
        other = self._waited_for(at, start, max(freed, issued))
        if other != NONE:
            end = int(device.end[other])
            self._parts.add("dependency", "gap before work of another stream", start - end)
            return end, other, True
        if freed >= issued and place >= 0:
            self._parts.recorded += 1
            self._parts.add("launch latency", "gap on a busy stream", start - freed)
            return freed, own.rows[place], True
        self._parts.recorded += 1
        self._parts.add("launch latency", "from call to start of work", start - issued)
        if launch >= 0:
            self._thread = int(trace.events.track[launch])
        return issued, NONE, False

    def _waited_for(self, at: int, start: int, ready: int) -> int:
        """Work of another stream that ended after `at` could have started without it, at `ready`.

        Stated by the trace, else inferred from an end just before `start`.
        """
        ends = self._trace.device.end
        stated = self._stated.get(at, NONE)
        known = stated in self._stream_of and stated not in self._used_work
        if known and ready < int(ends[stated]):
            self._parts.recorded += 1
            return stated
        other = self._latest_work(start)
        if other == NONE or int(ends[other]) <= max(ready, start - SAME_TIME_NS - 1):
            return NONE
        self._parts.inferred += 1
        return other

    def _through_host(self, thread: int, now: int) -> tuple[int, int, bool]:
        """Charge host time back to the previous call; a blocking one leads to its device work."""
        trace, events = self._trace, self._trace.events
        lane = self._calls.get(thread)
        place = lane.before(now, self._used_calls) if lane is not None else -1
        if (lane is None or place < 0) and thread != self._step_thread:
            # Before its first call a helper thread waits for the thread of the step.
            self._thread = self._step_thread
            return now, NONE, False
        if lane is None or place < 0:
            self._parts.add("host", self._operator_at(thread, now), now - self._begin)
            return self._begin, NONE, False
        row, start, end = lane.rows[place], lane.starts[place], lane.ends[place]
        self._used_calls.add(row)
        self._parts.add("host", self._operator_at(thread, now), now - end)
        name = int(events.name[row])
        if name in self._blocking:
            work = self._latest_work(end)
            if work != NONE and int(trace.device.end[work]) > start:
                finished = int(trace.device.end[work])
                self._parts.recorded += 1
                self._parts.add("synchronisation", trace.strings[name], end - finished)
                return finished, work, True
        self._parts.add("host", trace.strings[name], end - start)
        return start, NONE, False

    def _operator_at(self, thread: int, at: int) -> str:
        """The innermost operator a thread was in just before `at`."""
        events, ops = self._trace.events, self._structure.ops
        if thread not in self._operators:
            mine = np.flatnonzero(self._in_step & (events.track[ops.rows] == thread))
            starts = events.ts[ops.rows[mine]]
            self._operators[thread] = (mine.tolist(), starts.tolist())
        positions, starts_of = self._operators[thread]
        place = bisect_left(starts_of, at) - 1
        position = positions[place] if place >= 0 else NONE
        while position != NONE:
            row = int(ops.rows[position])
            if int(events.end[row]) >= at:
                return self._trace.strings[int(events.name[row])]
            position = int(ops.parent[position])
        return "(between operators)"


def _lane(rows: Int64, starts: Int64, ends: Int64) -> _Lane:
    return _Lane(rows.tolist(), starts.tolist(), ends.tolist())
