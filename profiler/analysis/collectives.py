"""Communication between ranks: calls, bytes, bandwidths, and how much of it was exposed."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from profiler.analysis.host_communication import host_collectives, host_compute
from profiler.analysis.report import CollectiveRow
from profiler.trace.batch import NONE
from profiler.trace.clock import Int64
from profiler.trace.intervals import covered_ns, merged
from profiler.trace.kinds import Kind
from profiler.trace.link import Structure
from profiler.trace.model import Trace

_KINDS = (
    ("all_reduce", r"all_?reduce|multimem|cross_device_reduce|quick_?reduce|one_?shot|two_?shot"),
    ("all_gather", r"all_?gather"),
    ("reduce_scatter", r"reduce_?scatter"),
    ("all_to_all", r"all_?to_?all|alltoall"),
    ("broadcast", r"broadcast"),
    ("reduce", r"reduce"),
    ("send_recv", r"send_?recv|\bsend\b|\brecv\b"),
    ("barrier", r"barrier"),
)
_DTYPE_BYTES = {
    "fp32": 4,
    "fp16": 2,
    "bfp16": 2,
    "bf16": 2,
    "fp64": 8,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
    "float": 4,
    "double": 8,
    "int": 4,
    "long": 8,
    "byte": 1,
    "char": 1,
    "half": 2,
    "bfloat16": 2,
    "bool": 1,
    "short": 2,
}


def collective_kind(name: str) -> str:
    """One word for a collective from its recorded name or its kernel's; the name itself else."""
    lowered = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    for kind, pattern in _KINDS:
        if re.search(pattern, lowered):
            return kind
    return name


def traffic_factor(kind: str, ranks: int) -> float:
    """Bus traffic per payload byte (nccl-tests): 2(n-1)/n, (n-1)/n, else 1."""
    if ranks < 2:
        return 1.0
    share = (ranks - 1) / ranks
    if kind == "all_reduce":
        return 2 * share
    return share if kind in ("all_gather", "reduce_scatter", "all_to_all") else 1.0


@dataclass(slots=True)
class Calls:
    """Collective calls of one trace by start: one entry per device event or library row.

    `group` is the recorded process group or -1, `size` its ranks or -1,
    `payload` bytes or -1, `exposed` the ns during which the device did not compute.
    """

    kind: list[str]
    group: Int64
    size: Int64
    payload: Int64
    ts: Int64
    dur: Int64
    exposed: Int64


def collective_calls(trace: Trace, structure: Structure) -> Calls:
    """All collectives; where a library reports whole ones (HCCL), those instead of their parts.

    Without any on a device, those that the threads of the host run (gloo).
    """
    events = trace.events
    whole = np.flatnonzero(events.kind == Kind.GROUP_COMMUNICATION)
    whole = whole[trace.matching("collective_row")[events.name[whole]]]
    if len(whole):
        rows = whole[np.argsort(events.ts[whole], kind="stable")]
        kinds = [collective_kind(trace.strings[code]) for code in events.name[rows].tolist()]
        exposed = _exposed_of_rows(trace, rows)
    elif len(chosen := np.flatnonzero(trace.device.kind == Kind.COMMUNICATION)):
        rows = trace.device.rows[chosen]
        kinds = _kinds(trace, structure, chosen)
        exposed = _exposed(trace, chosen)
    else:
        rows = host_collectives(trace)
        kinds = [collective_kind(trace.strings[code]) for code in events.name[rows].tolist()]
        exposed = _exposed_on_host(trace, rows)
    return Calls(
        kind=kinds,
        group=events.dense("group")[rows],
        size=events.dense("group_size")[rows],
        payload=_payload_bytes(trace, rows),
        ts=events.ts[rows],
        dur=events.dur[rows],
        exposed=exposed,
    )


def collective_rows(trace: Trace, structure: Structure) -> list[CollectiveRow]:
    """Collectives by kind and group size, by total time descending."""
    calls = collective_calls(trace, structure)
    groups: dict[tuple[str, int], list[int]] = {}
    for at, key in enumerate(zip(calls.kind, calls.size.tolist(), strict=True)):
        groups.setdefault(key, []).append(at)
    rows = []
    for (kind, size), members in groups.items():
        mine = np.array(members)
        total = int(calls.dur[mine].sum())
        known = bool((calls.payload[mine] >= 0).all())
        volume = int(calls.payload[mine].sum()) if known else None
        algbw = volume / total * 1e9 if volume and total else None
        row = CollectiveRow(
            name=kind,
            group_size=size if size > 0 else None,
            count=len(members),
            bytes=volume,
            total_ns=total,
            exposed_ns=int(calls.exposed[mine].sum()),
            algbw=algbw,
            busbw=algbw * traffic_factor(kind, size) if algbw and size > 0 else None,
        )
        rows.append(row)
    return sorted(rows, key=lambda r: (-r.total_ns, r.name, r.group_size or 0))


def _kinds(trace: Trace, structure: Structure, chosen: Int64) -> list[str]:
    """The recorded collective name, else the kernel's name, else the launching operator's."""
    said = trace.events.dense("collective")[trace.device.rows[chosen]].tolist()
    out = []
    for at, code in zip(chosen.tolist(), said, strict=True):
        text = trace.strings[code if code != NONE else int(trace.device.name[at])]
        kind = collective_kind(text)
        op = int(structure.op[at])
        if kind == text and op != NONE:
            own = trace.strings[int(trace.events.name[op])]
            kind = collective_kind(own) if collective_kind(own) != own else kind
        out.append(kind)
    return out


def _payload_bytes(trace: Trace, rows: Int64) -> Int64:
    """Payload of each call: the larger of in and out elements times the element size."""
    counts = [trace.events.dense(c)[rows] for c in ("in_elements", "out_elements", "count")]
    elements = np.maximum.reduce(counts)
    names = trace.events.dense("message_dtype")[rows].tolist()
    sizes = np.array([_element_bytes(trace.strings[n]) if n != NONE else 0 for n in names])
    return np.where((elements >= 0) & (sizes > 0), elements * sizes, NONE)


def _exposed_of_rows(trace: Trace, rows: Int64) -> Int64:
    """The part of library rows that no compute row of the vendor's analysis covers."""
    events, device = trace.events, trace.device
    compute = events.kind == Kind.VENDOR_TIMELINE
    names = {code for code, s in enumerate(trace.strings) if s == "Computing"}
    compute &= np.isin(events.name, np.array([*names, NONE]))
    if compute.any():
        spans = merged(events.ts[compute], events.end[compute])
    else:
        kernel = device.kind == Kind.KERNEL
        spans = merged(device.ts[kernel], device.end[kernel])
    return events.dur[rows] - covered_ns(events.ts[rows], events.end[rows], *spans)


def _exposed_on_host(trace: Trace, rows: Int64) -> Int64:
    """The part of collectives of the host's threads during which no thread computes."""
    if not len(rows):
        return rows
    ts, end = trace.events.ts[rows], trace.events.end[rows]
    return (end - ts) - covered_ns(ts, end, *host_compute(trace))


def _element_bytes(dtype: str) -> int:
    """Bytes of one element of a torch scalar type name; 0 when unknown."""
    lowered = dtype.lower().removeprefix("c10::")
    if "float8" in lowered:
        return 1
    return _DTYPE_BYTES.get(lowered, 0)


def _exposed(trace: Trace, chosen: Int64) -> Int64:
    """The part of each communication during which its device did not compute."""
    device = trace.device
    out = np.zeros(len(chosen), np.int64)
    for code in np.unique(device.device[chosen]).tolist():
        mine = device.device[chosen] == code
        compute = (device.device == code) & (device.kind == Kind.KERNEL)
        spans = merged(device.ts[compute], device.end[compute])
        ts, end = device.ts[chosen[mine]], device.end[chosen[mine]]
        out[mine] = (end - ts) - covered_ns(ts, end, *spans)
    return out
