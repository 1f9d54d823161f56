"""Blocking host calls and what they waited for; waits between streams."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np

from profiler.analysis.replay.streams import Lane, Works, lanes_of
from profiler.analysis.replay.window import Window
from profiler.trace.batch import NONE, Bool
from profiler.trace.clock import Int64
from profiler.trace.kinds import Kind
from profiler.trace.link import Structure
from profiler.trace.model import Trace
from profiler.trace.vendors import rules

QUEUE_FULL = 1000
"""Launches ahead of the device at which a launching call has to wait for a free slot."""

OWN_COST_NS = 10_000
"""A blocking call takes at most this when there is nothing to wait for."""

SAME_TIME_NS = 5_000
"""An end this close before a start on another stream is taken for a wait."""

_WHOLE_DEVICE = ("Device", "Ctx", "Free", "Malloc", "HostAlloc")


@dataclass(frozen=True, slots=True)
class Blocked:
    """A blocking call (row of `Events`) and the works (positions in `Works`) it waited for.

    `waited` says whether one of them ended inside the call; `queue` whether
    it waited for a slot in the launch queue, so for a start, not an end.
    """

    row: int
    works: tuple[int, ...]
    waited: bool
    queue: bool
    inferred: bool


def blocked_calls(
    trace: Trace, structure: Structure, works: Works, window: Window
) -> list[Blocked]:
    """Every host call of the window that waited, or could have waited, for the device."""
    if not len(works):
        return []
    lanes = lanes_of(works)
    events = trace.events
    inside = (events.ts >= window.begin_ns) & (events.end <= window.end_ns) & (events.dur > 0)
    named = np.fromiter(map(rules().is_blocking, trace.strings), np.bool_, len(trace.strings))
    rows = np.flatnonzero(inside & (events.kind == Kind.RUNTIME) & named[events.name])
    said = _recorded_streams(trace, works)
    out = [_synchronised(trace, works, row, lanes=lanes, said=said) for row in rows.tolist()]
    taken = set(rows.tolist())
    out += [one for one in _own_copies(trace, works) if one.row not in taken]
    out += _full_queue(trace, works, taken | {one.row for one in out})
    return out


def _recorded_streams(trace: Trace, works: Works) -> dict[int, int]:
    """Correlation of a stream synchronisation -> stream number, where the trace states it."""
    events = trace.events
    rows = np.flatnonzero((events.kind == Kind.SYNC) & (events.correlation >= 0))
    if not len(rows):
        return {}
    names = [trace.strings[code] for code in events.name[rows].tolist()]
    streams = events.dense("stream")[rows].tolist()
    by_code = dict(
        zip(trace.device.stream[works.index].tolist(), works.stream.tolist(), strict=True)
    )
    ids = events.correlation[rows].tolist()
    return {
        ids[n]: by_code[stream]
        for n, stream in enumerate(streams)
        if stream in by_code and names[n].startswith("Stream Sync")
    }


def _synchronised(
    trace: Trace, works: Works, row: int, *, lanes: list[Lane], said: dict[int, int]
) -> Blocked:
    events = trace.events
    begin, end = int(events.ts[row]), int(events.end[row])
    name = trace.strings[int(events.name[row])]
    last: dict[int, int] = {}
    for stream, lane in enumerate(lanes):
        place = bisect_right(lane.issued, begin) - 1
        if place >= 0 and int(works.end[lane.latest[place]]) <= end:
            last[stream] = lane.latest[place]
    stated = said.get(int(events.correlation[row]))
    if any(mark in name for mark in _WHOLE_DEVICE):
        chosen = tuple(last.values())
    elif stated is not None and stated in last:
        chosen = (last[stated],)
    else:
        chosen = tuple(sorted(last.values(), key=lambda at: int(works.end[at]))[-1:])
    waited = any(int(works.end[at]) > begin for at in chosen)
    guessed = len(lanes) > 1 and stated is None and len(chosen) == 1 and not waited
    return Blocked(row, chosen, waited=waited, queue=False, inferred=guessed)


def _own_copies(trace: Trace, works: Works) -> list[Blocked]:
    """Copies whose call returned only after the copy was done (pageable memory, item())."""
    copies = np.flatnonzero((works.launch >= 0) & (trace.device.kind[works.index] == Kind.COPY))
    done = works.end[copies] <= trace.events.end[works.launch[copies]]
    return [
        Blocked(int(works.launch[at]), (at,), waited=True, queue=False, inferred=False)
        for at in copies[done].tolist()
    ]


def _full_queue(trace: Trace, works: Works, taken: set[int]) -> list[Blocked]:
    """Launching calls that waited because the launch queue was full."""
    out = []
    for stream in range(int(works.stream.max()) + 1):
        mine = np.flatnonzero((works.stream == stream) & (works.launch >= 0))
        calls = works.launch[mine]
        begun = np.searchsorted(np.sort(works.ts[mine]), trace.events.ts[calls], side="right")
        issued = np.sort(trace.events.ts[calls])
        ahead = np.searchsorted(issued, trace.events.ts[calls], side="right") - begun
        slow = np.flatnonzero((ahead >= QUEUE_FULL) & (trace.events.dur[calls] > 3 * OWN_COST_NS))
        by_start = mine[np.argsort(works.ts[mine], kind="stable")]
        starts = works.ts[by_start].tolist()
        for place in slow.tolist():
            row = int(calls[place])
            at = bisect_right(starts, int(trace.events.end[row])) - 1
            if at >= 0 and row not in taken and starts[at] > int(trace.events.ts[row]):
                taken.add(row)
                one = int(by_start[at])
                out.append(Blocked(row, (one,), waited=True, queue=True, inferred=True))
    return out


@dataclass(frozen=True, slots=True)
class Wait:
    """Work `target` waited for the end of `source` on another stream (positions in `Works`)."""

    source: int
    target: int
    inferred: bool


def recorded_waits(trace: Trace, structure: Structure, works: Works) -> list[Wait]:
    """Waits between streams that the trace states: `Stream Wait Event` with both ends known."""
    events = trace.events
    rows = np.flatnonzero((events.kind == Kind.SYNC) & (events.correlation >= 0))
    if not len(rows) or not len(works):
        return []
    calls = _calls_by_correlation(trace)
    record = events.dense("wait_correlation")[rows].tolist()
    streams = events.dense("stream")[rows].tolist()
    sources = _stream_code(trace, events.dense("wait_stream")[rows])
    number = dict(
        zip(trace.device.stream[works.index].tolist(), works.stream.tolist(), strict=True)
    )
    lanes = lanes_of(works)
    out = []
    for n, own in enumerate(events.correlation[rows].tolist()):
        wait_call, record_call = calls.get(own), calls.get(record[n])
        here, there = number.get(streams[n]), number.get(sources[n])
        if wait_call is None or record_call is None or here is None or there is None:
            continue
        found = _wait(works, lanes, (here, wait_call), (there, record_call))
        if found is not None:
            out.append(found)
    return out


def _wait(
    works: Works, lanes: list[Lane], here: tuple[int, int], there: tuple[int, int]
) -> Wait | None:
    """The first work launched after the wait, held up by the last one before the record."""
    before = bisect_right(lanes[there[0]].issued, there[1]) - 1
    mine = np.flatnonzero(works.stream == here[0])
    mine = mine[np.argsort(works.issued[mine], kind="stable")]
    after = bisect_left(works.issued[mine].tolist(), here[1])
    if before < 0 or after >= len(mine) or here[0] == there[0]:
        return None
    source, target = lanes[there[0]].latest[before], int(mine[after])
    if works.end[source] > works.ts[target]:
        return None
    return Wait(source, target, inferred=False)


def _calls_by_correlation(trace: Trace) -> dict[int, int]:
    events = trace.events
    rows = np.flatnonzero((events.kind == Kind.RUNTIME) & (events.correlation >= 0))
    return dict(zip(events.correlation[rows].tolist(), events.ts[rows].tolist(), strict=True))


def _stream_code(trace: Trace, numbers: Int64) -> list[int]:
    """Codes of stream names for stream numbers; -1 for what no work runs on."""
    code = {text: at for at, text in enumerate(trace.strings)}
    return [code.get(str(number), NONE) for number in numbers.tolist()]


def inferred_waits(works: Works, loose: Bool) -> list[Wait]:
    """For works that nothing known explains: work of another stream that ended just before.

    `loose` marks them. The source is the latest end within 5 µs before the start.
    """
    order = np.argsort(works.end, kind="stable")
    ends = works.end[order]
    out = []
    for target in np.flatnonzero(loose).tolist():
        start = int(works.ts[target])
        place = int(np.searchsorted(ends, start, side="right")) - 1
        while place >= 0 and start - int(ends[place]) <= SAME_TIME_NS:
            source = int(order[place])
            if works.stream[source] != works.stream[target] and (
                works.device[source] == works.device[target]
            ):
                out.append(Wait(source, target, inferred=True))
                break
            place -= 1
    return out
