"""What a device waited for while it was idle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from profiler.analysis.report import IdleRow
from profiler.analysis.timeline import device_key, vendor_free
from profiler.trace.batch import NONE, Bool
from profiler.trace.clock import Int64
from profiler.trace.intervals import covered_ns, merged
from profiler.trace.kinds import Kind
from profiler.trace.link import HOST_KINDS, Structure
from profiler.trace.model import Trace
from profiler.trace.vendors import rules

LAUNCH_LATENCY_NS = 30_000
"""Gaps up to this long with the launch already issued are the cost of launching, not waiting."""

CAUSES = ("input_wait", "sync", "host", "launch_latency", "dependency", "unknown")


@dataclass(frozen=True, slots=True)
class Gaps:
    """Idle stretches of one device: cause (index into `CAUSES`), start, ns, and the work that ended
    each (position in `Trace.device`)."""

    cause: Int64
    start_ns: Int64
    length_ns: Int64
    opener: Int64


def idle_rows(trace: Trace, structure: Structure) -> list[IdleRow]:
    """Idle time per device and cause; per device the causes add up to its idle time.

    Gaps are those of the whole device, not of one stream. The work that ends
    a gap decides: its launch not yet issued when the gap began means the host
    was late (`input_wait` if a data loader ran for most of that, `sync` if a
    blocking call did, else `host`); issued before means `launch_latency` for
    gaps up to 30 µs and `dependency` (another stream, event or peer) above;
    no known launch means `unknown`.
    """
    out = []
    for device, gaps in device_gaps(trace, structure):
        for number, name in enumerate(CAUSES):
            chosen = gaps.cause == number
            if chosen.any():
                total = int(gaps.length_ns[chosen].sum())
                row = IdleRow(device=device, cause=name, total_ns=total, count=int(chosen.sum()))
                out.append(row)
    return out


def device_gaps(
    trace: Trace, structure: Structure, *, vendor: bool = True
) -> Iterator[tuple[str, Gaps]]:
    """Every device that worked, with its gaps: the vendor's own where it writes some (`vendor`)."""
    device = trace.device
    codes = sorted(set(device.device.tolist()), key=lambda code: device_key(trace.strings[code]))
    loader, blocking = _spans(trace, _named(trace, "loader")), _spans(trace, _blocking(trace))
    own = vendor_free(trace) if vendor else None
    for code in codes:
        mine = np.flatnonzero((device.device == code) & (device.kind != Kind.WAIT))
        if len(mine):
            gaps = _gaps(trace, structure, mine, own, loader=loader, blocking=blocking)
            yield trace.strings[code], gaps


def _gaps(
    trace: Trace,
    structure: Structure,
    mine: Int64,
    vendor: tuple[Int64, Int64] | None,
    *,
    loader: tuple[Int64, Int64],
    blocking: tuple[Int64, Int64],
) -> Gaps:
    """The gaps of one device, whose work is `mine`; `vendor` are those its own analysis wrote."""
    device = trace.device
    if vendor is None:
        starts, ends = merged(device.ts[mine], device.end[mine])
        gap_from, gap_to = ends[:-1], starts[1:]
    else:
        gap_from, gap_to = vendor
    following = np.searchsorted(device.ts[mine], gap_to, side="left")
    opener = mine[np.minimum(following, len(mine) - 1)]
    launch = structure.launch[opener]
    issued = np.where(launch >= 0, trace.events.ts[np.maximum(launch, 0)], 0)
    length = gap_to - gap_from
    late = np.clip(issued, gap_from, gap_to)
    host_time = late - gap_from
    cause = np.full(len(length), CAUSES.index("dependency"), np.int64)
    cause[length <= LAUNCH_LATENCY_NS] = CAUSES.index("launch_latency")
    host_late = issued > gap_from
    cause[host_late] = CAUSES.index("host")
    in_sync = covered_ns(gap_from, late, *blocking) * 2 > host_time
    cause[host_late & in_sync] = CAUSES.index("sync")
    in_loader = covered_ns(gap_from, late, *loader) * 2 > host_time
    cause[host_late & in_loader] = CAUSES.index("input_wait")
    cause[launch == NONE] = CAUSES.index("unknown")
    return Gaps(cause, gap_from, length, opener)


def _named(trace: Trace, rule: str) -> Bool:
    events = trace.events
    host = np.isin(events.kind, np.array(HOST_KINDS, np.int8))
    return np.asarray(host & trace.matching(rule)[events.name])


def _blocking(trace: Trace) -> Bool:
    blocking = rules().is_blocking
    named = np.fromiter((blocking(s) for s in trace.strings), np.bool_, len(trace.strings))
    return np.asarray((trace.events.kind == Kind.RUNTIME) & named[trace.events.name])


def _spans(trace: Trace, chosen: Bool) -> tuple[Int64, Int64]:
    return merged(trace.events.ts[chosen], trace.events.end[chosen])
