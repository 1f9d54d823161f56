"""The wall time of the steps split without rest: every instant counts for one thing.

On a device: compute counts first, then communication no compute hides, then
copies that neither hides, then idle time by cause. Where several kernels run
at once, an instant counts for the one that reached it first. Without a device
the thread of the steps counts, then the other threads in what it leaves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from profiler.analysis.idle import idle_rows
from profiler.analysis.matching import folded
from profiler.analysis.operators import module_path
from profiler.trace.batch import NONE, Bool, Int32
from profiler.trace.clock import Int64
from profiler.trace.intervals import covered_ns, merged
from profiler.trace.kinds import Kind
from profiler.trace.link import Structure
from profiler.trace.model import DeviceWork, Trace
from profiler.trace.nest import Nesting, nearest

EDGE = "before the first and after the last work"
BETWEEN = "between operators"
OUTSIDE = "between the steps"


@dataclass(slots=True)
class DeviceSplit:
    """`shown` per piece of device work, `idle` by cause, ns; they add up to the window.

    `rest` is what vendors' own idle rows leave over (0 otherwise).
    """

    shown: Int64
    idle: dict[str, int]
    rest: int


def split_device(trace: Trace, structure: Structure, start_ns: int, end_ns: int) -> DeviceSplit:
    """Split [start, end) of the device that works longest."""
    device = trace.device
    works = np.asarray(device.kind != Kind.WAIT)
    works &= (device.ts < end_ns) & (device.end > start_ns)
    busiest = _busiest(device, works)
    mine = np.flatnonzero(works & (device.device == busiest))
    ts, end = np.maximum(device.ts[mine], start_ns), np.minimum(device.end[mine], end_ns)
    shown = np.zeros(len(device.rows), np.int64)
    for kinds in ((Kind.KERNEL,), (Kind.COMMUNICATION,), (Kind.COPY, Kind.FILL)):
        chosen = np.isin(device.kind[mine], np.array(kinds, np.int8))
        earlier = shown[mine] > 0
        shown[mine[chosen]] = owned(ts[chosen], end[chosen], *merged(ts[earlier], end[earlier]))
    idle = _idle(trace, structure, mine, ts, end)
    window, busy = end_ns - start_ns, int(shown.sum())
    first, last = (int(ts.min()), int(end.max())) if len(mine) else (start_ns, start_ns)
    idle[EDGE] = window - (last - first)
    return DeviceSplit(shown, idle, window - busy - sum(idle.values()))


def _busiest(device: DeviceWork, works: Bool) -> int:
    codes = device.device[works]
    if not len(codes):
        return NONE
    return int(np.bincount(codes, device.dur[works]).argmax())


def owned(ts: Int64, end: Int64, by_ts: Int64, by_end: Int64) -> Int64:
    """Per interval the time no earlier started one covers, nor the disjoint ascending `by`.

    The sum is the length of the union less what `by` covers of it.
    """
    out = np.zeros(len(ts), np.int64)
    if not len(ts):
        return out
    order = np.argsort(ts, kind="stable")
    starts, ends = ts[order], end[order]
    reach = np.concatenate([[starts[0]], np.maximum.accumulate(ends)[:-1]])
    fresh = np.minimum(np.maximum(starts, reach), ends)
    out[order] = (ends - fresh) - covered_ns(fresh, ends, by_ts, by_end)
    return out


def _idle(trace: Trace, structure: Structure, mine: Int64, ts: Int64, end: Int64) -> dict[str, int]:
    """Idle time by cause between the first and last of the clipped pieces of work `mine`."""
    if not len(mine):
        return {}
    device = trace.device
    inside = DeviceWork(
        rows=device.rows[mine],
        kind=device.kind[mine],
        name=device.name[mine],
        device=device.device[mine],
        stream=device.stream[mine],
        ts=ts,
        dur=end - ts,
    )
    seen = replace(trace, device=inside)
    links = replace(structure, launch=structure.launch[mine], op=structure.op[mine])
    return {row.cause: row.total_ns for row in idle_rows(seen, links)}


@dataclass(slots=True)
class HostSplit:
    """`shown` per position of `Structure.ops`, and the time outside of operators by where it is.

    The latter has a value per step. All of it in ns; together it is the window.
    """

    shown: Int64
    between: dict[str, Int64]


def split_host(
    trace: Trace, structure: Structure, starts: Int64, end_ns: int, *, track: int | None
) -> HostSplit:
    """Split the steps that begin at `starts`, the last up to `end_ns`, of the host.

    The thread `track` counts first, then the others. What no operator covers counts for the
    innermost module that `track` is in, layers together.
    """
    owner, ts, end = clipped(segments(trace, structure.ops), int(starts[0]), end_ns)
    shown = np.zeros(len(structure.ops.rows), np.int64)
    tracks = trace.events.track[structure.ops.rows[owner]]
    if track is None and len(tracks):
        track = int(np.bincount(tracks, end - ts).argmax())
    main = np.asarray(tracks == track)
    np.add.at(shown, owner[main], owned(ts[main], end[main], ts[:0], ts[:0]))
    rest = owned(ts[~main], end[~main], *merged(ts[main], end[main]))
    np.add.at(shown, owner[~main], rest)
    covered = merged(ts, end)
    between = _between(trace, structure.host, starts, end_ns, track=track, by=covered)
    outside = np.diff(starts, append=end_ns) - sum(between.values(), _covered(*covered, starts))
    return HostSplit(shown, {n: ns for n, ns in {**between, OUTSIDE: outside}.items() if ns.any()})


def _covered(ts: Int64, end: Int64, starts: Int64) -> Int64:
    """Per step what disjoint stretches cover; one belongs to the step in which it begins."""
    out = np.zeros(len(starts), np.int64)
    np.add.at(out, np.searchsorted(starts, ts, side="right") - 1, end - ts)
    return out


def _between(
    trace: Trace,
    host: Nesting,
    starts: Int64,
    end_ns: int,
    *,
    track: int | None,
    by: tuple[Int64, Int64],
) -> dict[str, Int64]:
    """Time of the thread `track` that the disjoint ascending `by` leave, by module, per step."""
    events = trace.events
    owner, ts, end = clipped(segments(trace, host), int(starts[0]), end_ns)
    mine = np.asarray(events.track[host.rows[owner]] == track)
    owner, ts, free = owner[mine], ts[mine], owned(ts[mine], end[mine], *by)
    is_module = np.asarray(events.kind[host.rows] == Kind.MODULE)
    around = np.where(is_module, np.arange(len(is_module)), nearest(host.parent, is_module))[owner]
    module = np.where(around >= 0, events.name[host.rows[around]], NONE)
    step = np.searchsorted(starts, ts, side="right") - 1
    out: dict[str, Int64] = {}
    for code in np.unique(module).tolist():
        place = f"{folded(module_path(trace.strings[code]))}: " if code >= 0 else ""
        sums = out.setdefault(f"{place}{BETWEEN}", np.zeros(len(starts), np.int64))
        chosen = module == code
        np.add.at(sums, step[chosen], free[chosen])
    return out


def clipped(
    found: tuple[Int32, Int64, Int64], start_ns: int, end_ns: int
) -> tuple[Int32, Int64, Int64]:
    """Stretches of time as far as they lie in [start, end)."""
    owner, ts, end = found
    keep = (ts < end_ns) & (end > start_ns)
    return owner[keep], np.maximum(ts[keep], start_ns), np.minimum(end[keep], end_ns)


def segments(trace: Trace, ops: Nesting) -> tuple[Int32, Int64, Int64]:
    """Stretches of time in which one interval of a nesting is the innermost of its thread.

    Position in the nesting, start and end of each stretch. At a boundary
    ends come before starts, inner ends before outer ones and outer starts
    before inner ones; what is open after the last of them owns what follows.
    """
    events = trace.events
    at = np.flatnonzero(events.dur[ops.rows] > 0).astype(np.int32)
    rows = ops.rows[at]
    times = np.concatenate([events.ts[rows], events.end[rows]])
    owner = np.concatenate([at, ops.parent[at]]).astype(np.int32)
    track = np.tile(events.track[rows], 2)
    starts = np.repeat([True, False], len(at))
    inner = np.concatenate([at, -at])
    order = np.lexsort((inner, starts, times, track))
    times, owner, track = times[order], owner[order], track[order]
    length = np.append(np.diff(times), 0)
    if len(track):
        length[np.flatnonzero(np.diff(track))] = 0
    found = np.flatnonzero((owner >= 0) & (length > 0))
    return owner[found], times[found], times[found] + length[found]
