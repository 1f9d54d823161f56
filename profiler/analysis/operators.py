"""Tables of host operators by name, by name and shapes, by thread and by module."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.report import ModuleRow, OperatorRow, ShapeRow, ThreadRow
from profiler.trace.batch import NONE, Int32
from profiler.trace.clock import Int64
from profiler.trace.codes import distinct, grouped
from profiler.trace.intervals import union_ns
from profiler.trace.kinds import Kind
from profiler.trace.link import Structure
from profiler.trace.model import Trace
from profiler.trace.nest import Nesting, nearest
from profiler.trace.vendors import rules


@dataclass(slots=True)
class OperatorTimes:
    """Per position of `Structure.ops`: times of that call in ns."""

    host_total: Int64
    host_self: Int64
    device_total: Int64
    device_self: Int64


def operator_times(trace: Trace, structure: Structure) -> OperatorTimes:
    """Host and device times of every operator call."""
    ops = structure.ops
    device_self = np.zeros(len(ops.rows), np.int64)
    linked = structure.op >= 0
    at = structure.op_position[structure.op[linked]]
    np.add.at(device_self, at, trace.device.dur[linked])
    return OperatorTimes(
        host_total=trace.events.dur[ops.rows],
        host_self=ops.self_ns,
        device_total=rolled_up(ops, device_self),
        device_self=device_self,
    )


def rolled_up(nesting: Nesting, own: Int64) -> Int64:
    """Each position's own value plus that of everything inside it."""
    total = own.copy()
    carrying = np.flatnonzero(own)
    values = own[carrying]
    above = nesting.parent[carrying]
    while len(above):
        inside = above >= 0
        above, values = above[inside], values[inside]
        np.add.at(total, above, values)
        above = nesting.parent[above]
    return total


def operator_rows(trace: Trace, structure: Structure, times: OperatorTimes) -> list[OperatorRow]:
    """Operators by name: device self time descending, then host self time."""
    names = trace.events.name[structure.ops.rows].astype(np.int64)
    keys, sums = _grouped(names, len(trace.strings), times)
    canonical = rules().operators
    rows = [
        OperatorRow(
            name=trace.strings[key],
            canonical=canonical.get(trace.strings[key], trace.strings[key]),
            count=n,
            host_total_ns=host,
            host_self_ns=own,
            device_total_ns=device,
            device_self_ns=device_own,
        )
        for key, (n, host, own, device, device_own) in zip(keys, sums, strict=True)
    ]
    return sorted(rows, key=lambda r: (-r.device_self_ns, -r.host_self_ns, r.name))


def shape_rows(trace: Trace, structure: Structure, times: OperatorTimes) -> list[ShapeRow]:
    """Operators by name, input shapes and types; empty when shapes were not recorded."""
    events, rows = trace.events, structure.ops.rows
    if not len(events.sparse["shapes"].rows):
        return []
    names = events.name[rows].astype(np.int64)
    shapes = events.dense("shapes")[rows]
    dtypes = events.dense("dtypes")[rows]
    size = len(trace.strings) + 1
    combined, index = np.unique((shapes + 1) * size + dtypes + 1, return_inverse=True)
    places = len(trace.strings) * len(combined)
    keys, sums = _grouped(names * len(combined) + index, places, times)
    texts = [*trace.strings, ""]
    out = []
    for key, (n, host, own, device, device_own) in zip(keys, sums, strict=True):
        pair = int(combined[key % len(combined)])
        row = ShapeRow(
            name=trace.strings[key // len(combined)],
            shapes=texts[pair // size - 1],
            dtypes=texts[pair % size - 1],
            count=n,
            host_total_ns=host,
            host_self_ns=own,
            device_total_ns=device,
            device_self_ns=device_own,
        )
        out.append(row)
    return sorted(out, key=lambda r: (-r.device_self_ns, -r.host_self_ns, r.name, r.shapes))


def _grouped(
    keys: Int64, size: int, times: OperatorTimes
) -> tuple[list[int], list[tuple[int, int, int, int, int]]]:
    """Keys in [0, size) in use, and per key the calls and the sums of their times."""
    unique, inverse = grouped(keys, size)
    columns = [np.bincount(inverse, minlength=len(unique))]
    for values in (times.host_total, times.host_self, times.device_total, times.device_self):
        total = np.zeros(len(unique), np.int64)
        np.add.at(total, inverse, values)
        columns.append(total)
    sums = list(zip(*(column.tolist() for column in columns), strict=True))
    return unique.tolist(), sums


def thread_rows(trace: Trace, structure: Structure) -> list[ThreadRow]:
    """Host threads with operators; operators' self times add up to the union exactly."""
    ops = structure.ops
    tracks = trace.events.track[ops.rows]
    out: list[ThreadRow] = []
    codes = distinct(tracks)
    for code in sorted(codes, key=lambda c: _natural(trace.tracks[c].pid, trace.tracks[c].tid)):
        mine = np.flatnonzero(tracks == code)
        roots = ops.rows[mine[ops.parent[mine] < 0]]
        track = trace.tracks[code]
        row = ThreadRow(
            thread=len(out),
            pid=track.pid,
            tid=track.tid,
            name=track.thread or track.process,
            events=len(mine),
            union_ns=union_ns(trace.events.ts[roots], trace.events.end[roots]),
            operators_self_ns=int(ops.self_ns[mine].sum()),
        )
        out.append(row)
    return out


def _natural(*texts: str) -> tuple[tuple[int, str], ...]:
    """A sort key with numbers in numeric order."""
    return tuple((int(t), "") if t.isdecimal() and len(t) < 19 else (2**62, t) for t in texts)


def module_rows(trace: Trace, structure: Structure, module_of: Int32) -> list[ModuleRow]:
    """Modules by path; `module_of` gives per position of `host` its module's position.

    Device time counts for a module and all modules around it, backward work
    for the module of its forward operator.
    """
    host = structure.host
    is_module = trace.events.kind[host.rows] == Kind.MODULE
    at = np.flatnonzero(is_module)
    if not len(at):
        return []
    inner = module_of[at]
    dur = trace.events.dur[host.rows]
    inside = np.zeros(len(host.rows), np.int64)
    nested = inner >= 0
    np.add.at(inside, inner[nested], dur[at[nested]])
    device = _module_device(trace, structure, module_of)
    totals: dict[str, list[int]] = {}
    for position in at.tolist():
        path = module_path(trace.strings[int(trace.events.name[host.rows[position]])])
        row = totals.setdefault(path, [0, 0, 0, 0])
        row[0] += 1
        row[1] += int(dur[position])
        row[2] += int(dur[position] - inside[position])
        row[3] += int(device[position])
    rows = [
        ModuleRow(path=p, count=n, host_total_ns=t, host_self_ns=s, device_total_ns=d)
        for p, (n, t, s, d) in totals.items()
    ]
    return sorted(rows, key=lambda r: (-r.device_total_ns, -r.host_self_ns, r.path))


def _module_device(trace: Trace, structure: Structure, module_of: Int32) -> Int64:
    """Device time per module position, its inner modules included."""
    linked = np.flatnonzero(structure.op >= 0)
    at = structure.position[structure.op[linked]]
    module = module_of[at]
    keep = module >= 0
    above, values = module[keep], trace.device.dur[linked[keep]]
    total = np.zeros(len(structure.host.rows), np.int64)
    while len(above):
        np.add.at(total, above, values)
        above = module_of[above]
        inside = above >= 0
        above, values = above[inside], values[inside]
    return total


def module_path(name: str) -> str:
    """`module: a.b.c` as `a.b.c`."""
    return name.removeprefix("module: ")


def module_positions(trace: Trace, structure: Structure, forward: Int32) -> Int32:
    """Per position of `host` the position of the module it belongs to, -1 for none.

    The nearest enclosing module; where there is none, the module of the
    forward operator that `forward` (positions or -1) names for its
    outermost backward operator.
    """
    host = structure.host
    is_module = np.asarray(trace.events.kind[host.rows] == Kind.MODULE)
    module = nearest(host.parent, is_module)
    backward = np.asarray(forward >= 0)
    if is_module.any() and backward.any():
        root = nearest(host.parent, backward)
        root = np.where(backward, np.arange(len(root), dtype=np.int32), root)
        loose = np.flatnonzero((module == NONE) & (root >= 0))
        module[loose] = module[forward[root[loose]]]
    return module
