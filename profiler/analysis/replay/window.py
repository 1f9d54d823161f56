"""Which part of a trace is replayed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.steps import repetitions, step_event_rows
from profiler.trace.kinds import Kind
from profiler.trace.link import HOST_KINDS, Structure
from profiler.trace.model import Trace

EVENT_LIMIT = 50_000
"""Host events and device work that are replayed at most: of longer traces some steps."""


@dataclass(frozen=True, slots=True)
class Window:
    """The time from `begin_ns` to `end_ns` (clock of the file) with `steps` steps in it.

    `track` is the thread that runs the steps; `bounds` are the steps' (start, end).
    """

    begin_ns: int
    end_ns: int
    steps: int
    track: int
    bounds: tuple[tuple[int, int], ...]
    name: str

    @property
    def marked(self) -> bool:
        """Whether steps were found; otherwise the whole trace is one step."""
        return bool(self.bounds)


def window_of(trace: Trace, structure: Structure) -> Window | None:
    """All steps, or some around the median one of a long trace; the whole trace without marks.

    None for a trace without any host event or device work.
    """
    events = trace.events
    host = np.flatnonzero(np.isin(events.kind, np.array(HOST_KINDS, np.int8)))
    rows = step_event_rows(trace)
    if len(rows):
        bounds = list(zip(events.ts[rows].tolist(), events.end[rows].tolist(), strict=True))
        track = int(events.track[rows[0]])
    else:
        bounds = [(a, b) for _, a, b in repetitions(trace, structure)]
        track = _busiest(trace)
    if not bounds:
        return _whole(trace, host, track)
    bounds = [(a, b) for a, b in bounds if b > a] or bounds
    whole = len(bounds)
    bounds = _some(bounds, len(host) + len(trace.device.rows))
    begin, end = bounds[0][0], max(b for _, b in bounds)
    name = "one step" if len(bounds) == 1 else f"{len(bounds)} steps"
    name = name if len(bounds) == whole else f"{name} of {whole}"
    return Window(begin, end, len(bounds), track, tuple(bounds), name)


def _some(bounds: list[tuple[int, int]], events: int) -> list[tuple[int, int]]:
    """Consecutive steps around the median one, as many as the limit allows, at least one."""
    wanted = max(1, EVENT_LIMIT * len(bounds) // max(1, events))
    if wanted >= len(bounds):
        return bounds
    ordered = sorted(range(len(bounds)), key=lambda n: bounds[n][1] - bounds[n][0])
    middle = ordered[(len(ordered) - 1) // 2]
    first = min(max(0, middle - wanted // 2), len(bounds) - wanted)
    return bounds[first : first + wanted]


def _whole(
    trace: Trace, host: np.ndarray[tuple[int], np.dtype[np.int64]], track: int
) -> Window | None:
    events, device = trace.events, trace.device
    starts = [int(x.min()) for x in (events.ts[host], device.ts) if len(x)]
    ends = [int(x.max()) for x in (events.end[host], device.end) if len(x)]
    if not starts:
        return None
    end = int(events.end[host].max()) if len(host) else max(ends)
    return Window(min(starts), max(end, min(starts)), 1, track, (), "the whole trace")


def _busiest(trace: Trace) -> int:
    """The thread with the most runtime calls, without any the one with the most operators."""
    events = trace.events
    for kind in (Kind.RUNTIME, Kind.HOST_OP):
        rows = np.flatnonzero(events.kind == kind)
        if len(rows):
            return int(np.bincount(events.track[rows]).argmax())
    return 0
