"""How each device's time splits, and what each of its streams did."""

from __future__ import annotations

import numpy as np

from profiler.analysis.report import DeviceTimeline, StreamRow
from profiler.trace.batch import Bool
from profiler.trace.clock import Int64
from profiler.trace.intervals import union_ns
from profiler.trace.kinds import Kind
from profiler.trace.model import DeviceWork, Trace

VENDOR_COMPUTE = "Computing"
VENDOR_COMM = "Communication"
VENDOR_EXPOSED = "Communication(Not Overlapped)"
VENDOR_FREE = "Free"


def timelines(trace: Trace) -> list[DeviceTimeline]:
    """One row per device, by device name.

    Definitions as in TraceLens' timeline identity: exposed_comm = comm minus
    compute, exposed_copy = copies and fills minus compute and comm, busy =
    union of all three, idle = span - busy. Waits of a stream for an event or
    a peer are no work. Where the vendor's own overlap rows are in the trace
    (Ascend), they are used instead and `source` says so.
    """
    vendor = _vendor_timeline(trace)
    if vendor is not None:
        return [vendor]
    device = trace.device
    codes = sorted(set(device.device.tolist()), key=lambda code: device_key(trace.strings[code]))
    return [
        _timeline(device, np.asarray(device.device == code), trace.strings[code]) for code in codes
    ]


def device_key(name: str) -> tuple[int, str]:
    """Devices in numeric order where they are numbers."""
    return (int(name), "") if name.isdecimal() and len(name) < 19 else (2**62, name)


def _timeline(device: DeviceWork, mine: Bool, name: str) -> DeviceTimeline:
    kind, ts, end = device.kind[mine], device.ts[mine], device.end[mine]

    def union(*kinds: Kind) -> int:
        chosen = np.isin(kind, np.array(kinds, np.int8))
        return union_ns(ts[chosen], end[chosen])

    comm = union(Kind.COMMUNICATION)
    compute = union(Kind.KERNEL)
    compute_or_comm = union(Kind.KERNEL, Kind.COMMUNICATION)
    busy = union(Kind.KERNEL, Kind.COMMUNICATION, Kind.COPY, Kind.FILL)
    work = kind != Kind.WAIT
    span = int(end[work].max() - ts[work].min()) if work.any() else 0
    exposed = compute_or_comm - compute
    return DeviceTimeline(
        device=name,
        span_ns=span,
        busy_ns=busy,
        idle_ns=span - busy,
        compute_ns=compute,
        comm_ns=comm,
        copy_ns=union(Kind.COPY, Kind.FILL),
        exposed_comm_ns=exposed,
        exposed_copy_ns=busy - compute_or_comm,
        overlap_ratio=(comm - exposed) / comm if comm else None,
        wait_ns=union(Kind.WAIT),
    )


def _vendor_timeline(trace: Trace) -> DeviceTimeline | None:
    events = trace.events
    rows = np.flatnonzero(events.kind == Kind.VENDOR_TIMELINE)
    if not len(rows) or not len(trace.device.rows):
        return None
    names = [trace.strings[code] for code in events.name[rows].tolist()]
    total = dict.fromkeys((VENDOR_COMPUTE, VENDOR_COMM, VENDOR_EXPOSED, VENDOR_FREE), 0)
    for name, dur in zip(names, events.dur[rows].tolist(), strict=True):
        if name in total:
            total[name] += dur
    span = int(events.end[rows].max() - events.ts[rows].min())
    comm, exposed = total[VENDOR_COMM], total[VENDOR_EXPOSED]
    wait = trace.device.kind == Kind.WAIT
    return DeviceTimeline(
        device=trace.strings[int(trace.device.device[0])],
        span_ns=span,
        busy_ns=span - total[VENDOR_FREE],
        idle_ns=total[VENDOR_FREE],
        compute_ns=total[VENDOR_COMPUTE],
        comm_ns=comm,
        copy_ns=0,
        exposed_comm_ns=exposed,
        exposed_copy_ns=0,
        overlap_ratio=(comm - exposed) / comm if comm else None,
        wait_ns=union_ns(trace.device.ts[wait], trace.device.end[wait]),
        source="vendor overlap analysis",
    )


def vendor_free(trace: Trace) -> tuple[Int64, Int64] | None:
    """Starts and ends of the idle intervals the vendor's own analysis recorded, if it did."""
    events = trace.events
    rows = np.flatnonzero(events.kind == Kind.VENDOR_TIMELINE)
    if not len(rows) or VENDOR_FREE not in trace.strings:
        return None
    rows = rows[events.name[rows] == trace.strings.index(VENDOR_FREE)]
    rows = rows[np.argsort(events.ts[rows], kind="stable")]
    return events.ts[rows], events.end[rows]


def stream_rows(trace: Trace) -> list[StreamRow]:
    """Sum and union of durations per (device, stream), by device and stream."""
    device = trace.device
    pair = device.device.astype(np.int64) * (len(trace.strings) + 1) + device.stream
    out = []
    for key in np.unique(pair).tolist():
        mine = pair == key
        ts, end = device.ts[mine], device.end[mine]
        row = StreamRow(
            device=trace.strings[key // (len(trace.strings) + 1)],
            stream=trace.strings[key % (len(trace.strings) + 1)],
            events=int(mine.sum()),
            total_ns=int(device.dur[mine].sum()),
            union_ns=union_ns(ts, end),
        )
        out.append(row)
    return sorted(out, key=lambda row: (device_key(row.device), device_key(row.stream)))
