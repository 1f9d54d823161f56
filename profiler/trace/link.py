"""Which host call and which operator each piece of device work belongs to, and by which rule."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from profiler.trace.batch import NONE, Bool, Int32
from profiler.trace.clock import Int64
from profiler.trace.kinds import Kind
from profiler.trace.model import Kinds, Trace
from profiler.trace.nest import Nesting, narrowed, nearest, nest

HOST_KINDS = (Kind.HOST_OP, Kind.RUNTIME, Kind.ANNOTATION, Kind.MODULE)
_FORWARD_BACKWARD = ("fwdbwd", "forward_backward", "async_task_queue")


class Rule(IntEnum):
    """How a piece of device work found its host side; tried in this order."""

    NONE = 0
    CORRELATION = 1
    FLOW = 2
    EXTERNAL_ID = 3


@dataclass(slots=True)
class Structure:
    """Nesting of the host and links from the device to it.

    `host` nests operators, runtime calls, annotations and modules together;
    `ops` operators alone. `position` maps rows of `Events` to positions in
    `host`, `op_position` in `ops` (-1 elsewhere). `launch`, `op` and `rule`
    are aligned with `Trace.device`: rows of `Events` or -1.
    """

    host: Nesting
    ops: Nesting
    position: Int32
    op_position: Int32
    launch: Int64
    op: Int64
    rule: Kinds


def link(trace: Trace) -> Structure:
    """Nest the host events and link every piece of device work to launch and operator."""
    events = trace.events
    host = _nest(trace, HOST_KINDS)
    is_op = np.asarray(events.kind[host.rows] == Kind.HOST_OP)
    if host.crossings:
        ops = _nest(trace, (Kind.HOST_OP,))
    else:
        ops = narrowed(host, is_op, events.dur[host.rows])
    position = _positions(host, len(events))
    launch, rule = _by_correlation(trace)
    _by_flow(trace, launch, rule)
    op = _op_of(launch, host, position, is_op)
    _by_external_id(trace, launch, op, rule)
    _op_by_flow(trace, op, host, position=position, is_op=is_op)
    _name_communication(trace, op)
    return Structure(
        host=host,
        ops=ops,
        position=position,
        op_position=_positions(ops, len(events)),
        launch=launch,
        op=op,
        rule=rule,
    )


def _nest(trace: Trace, kinds: tuple[Kind, ...]) -> Nesting:
    events = trace.events
    rows = np.flatnonzero(np.isin(events.kind, np.array(kinds, np.int8)))
    return nest(
        rows,
        events.track[rows],
        events.ts[rows],
        events.dur[rows],
        tie=events.external_id[rows],
    )


def _positions(nesting: Nesting, n: int) -> Int32:
    position = np.full(n, NONE, np.int32)
    position[nesting.rows] = np.arange(len(nesting.rows), dtype=np.int32)
    return position


def _op_of(launch: Int64, host: Nesting, position: Int32, is_op: Bool) -> Int64:
    """The innermost operator around each launching call; the call itself when it is one."""
    above = nearest(host.parent, is_op) if len(is_op) else host.parent
    op = np.full(len(launch), NONE, np.int64)
    linked = np.flatnonzero(launch >= 0)
    at = position[launch[linked]]
    nested = at >= 0
    linked, at = linked[nested], at[nested]
    own = np.where(is_op[at], at, above[at])
    op[linked] = np.where(own >= 0, host.rows[own], NONE)
    return op


def _by_correlation(trace: Trace) -> tuple[Int64, Kinds]:
    events, device = trace.events, trace.device
    launch = np.full(len(device.rows), NONE, np.int64)
    rule = np.zeros(len(device.rows), np.int8)
    calls = np.flatnonzero((events.kind == Kind.RUNTIME) & (events.correlation >= 0))
    if not len(calls):
        return launch, rule
    ids = events.correlation[calls]
    order = np.argsort(ids, kind="stable")
    calls, ids = calls[order], ids[order]
    wanted = events.correlation[device.rows]
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    hit = (ids[at] == wanted) & (wanted >= 0)
    launch[hit] = calls[at[hit]]
    rule[hit] = Rule.CORRELATION
    return launch, rule


def _by_flow(trace: Trace, launch: Int64, rule: Kinds) -> None:
    """Follow flow arrows from the start of unlinked device work back to a host event."""
    loose = np.flatnonzero(launch == NONE)
    for at, row in _flow_sources(trace, loose):
        launch[at], rule[at] = row, Rule.FLOW


def _op_by_flow(trace: Trace, op: Int64, host: Nesting, *, position: Int32, is_op: Bool) -> None:
    """Operators of work whose launch runs in a process or thread of its own (Ascend)."""
    loose = np.flatnonzero(op == NONE)
    sources = np.full(len(op), NONE, np.int64)
    for at, row in _flow_sources(trace, loose):
        sources[at] = row
    found = _op_of(sources, host, position, is_op)
    op[loose] = found[loose]


def _flow_sources(trace: Trace, loose: Int64) -> list[tuple[int, int]]:
    """(index of device work, host row its flow arrow starts at) where there is one."""
    device, flows = trace.device, trace.flows
    if not len(loose) or not len(flows.ts):
        return []
    skipped = {code for code, s in enumerate(trace.strings) if s in _FORWARD_BACKWARD}
    wanted = np.isin(flows.ts, device.ts[loose]) | flows.begin
    columns = (flows.category, flows.id, flows.track, flows.ts, flows.begin)
    begins: dict[tuple[int, int], tuple[int, int]] = {}
    ends: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for category, flow, track, ts, begin in zip(
        *(c[wanted].tolist() for c in columns), strict=True
    ):
        if category in skipped:
            continue
        if begin:
            begins.setdefault((category, flow), (track, ts))
        else:
            ends.setdefault((track, ts), []).append((category, flow))
    if not ends:
        return []
    starting = _host_starts(trace)
    out = []
    tracks = trace.events.track[device.rows[loose]].tolist()
    for at, track, ts in zip(loose.tolist(), tracks, device.ts[loose].tolist(), strict=True):
        arrows = ends.get((track, ts), ())
        rows = (starting.get(begins.get(arrow, (NONE, NONE))) for arrow in arrows)
        row = next((row for row in rows if row is not None), None)
        if row is not None:
            out.append((at, row))
    return out


def _name_communication(trace: Trace, op: Int64) -> None:
    """Kernels launched by a communication operator are communication, whatever their name."""
    device = trace.device
    marks = trace.matching("communication_op")
    linked = np.flatnonzero((op >= 0) & (device.kind == Kind.KERNEL))
    moved = linked[marks[trace.events.name[op[linked]]]]
    device.kind[moved] = Kind.COMMUNICATION
    trace.events.kind[device.rows[moved]] = Kind.COMMUNICATION


def _host_starts(trace: Trace) -> dict[tuple[int, int], int]:
    """Host rows by (track, start); of equal starts the shortest, which is the innermost."""
    events = trace.events
    rows = np.flatnonzero(np.isin(events.kind, np.array((Kind.HOST_OP, Kind.RUNTIME), np.int8)))
    rows = rows[np.argsort(-events.dur[rows], kind="stable")]
    keys = zip(events.track[rows].tolist(), events.ts[rows].tolist(), strict=True)
    return dict(zip(keys, rows.tolist(), strict=True))


def _by_external_id(trace: Trace, launch: Int64, op: Int64, rule: Kinds) -> None:
    """For work without an operator so far: the operator that carries the same external id."""
    events, device = trace.events, trace.device
    ops = np.flatnonzero((events.kind == Kind.HOST_OP) & (events.external_id > 0))
    loose = np.flatnonzero((op == NONE) & (events.external_id[device.rows] > 0))
    if not len(ops) or not len(loose):
        return
    order = np.argsort(events.external_id[ops], kind="stable")
    ids = events.external_id[ops][order]
    wanted = events.external_id[device.rows[loose]]
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    hit = ids[at] == wanted
    op[loose[hit]] = ops[order[at[hit]]]
    fresh = loose[hit]
    rule[fresh[launch[fresh] == NONE]] = Rule.EXTERNAL_ID
