"""Where the time of each step and each phase goes: parts that add up to it exactly.

Per device compute counts first, then communication that no compute hides, then
copies that neither hides, then idle time by cause; what lies before a device's
first work or after its last in the whole trace is idle by `edge`. Without a
device the host counts: time in operators, collectives beside none, and the time
`between operators`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from profiler.analysis.bounds import SplitRow
from profiler.analysis.host_communication import host_collectives, host_compute
from profiler.analysis.idle import CAUSES, Gaps, device_gaps
from profiler.analysis.report import StepRow
from profiler.analysis.steps import phase_spans
from profiler.trace.clock import Int64
from profiler.trace.intervals import covered_ns, merged
from profiler.trace.kinds import Kind
from profiler.trace.link import Structure
from profiler.trace.model import Trace

MOST_STEPS = 200
"""Steps that are split; the others are counted in their phases only."""

HOST = ""
"""Device of the rows of a trace without device work."""

EDGE, BETWEEN = "edge", "between_operators"


@dataclass(slots=True)
class _Windows:
    """Stretches of time and what they are called; equal names are added up."""

    kind: str
    names: list[str]
    ts: Int64
    end: Int64


def split_rows(trace: Trace, structure: Structure, steps: Sequence[StepRow]) -> list[SplitRow]:
    """Per step (the first `MOST_STEPS`) and per phase, on every device with work."""
    chosen = steps[:MOST_STEPS]
    starts = np.array([trace.start_ns + row.start_ns for row in chosen], np.int64)
    lengths = np.array([row.dur_ns for row in chosen], np.int64)
    phases = phase_spans(trace)
    windows = (
        _Windows("step", [row.name for row in chosen], starts, starts + lengths),
        _Windows(
            "phase",
            [name for _, _, name in phases],
            np.array([start for start, _, _ in phases], np.int64),
            np.array([end for _, end, _ in phases], np.int64),
        ),
    )
    return [row for one in windows if one.names for row in _rows(trace, structure, one)]


def _rows(trace: Trace, structure: Structure, windows: _Windows) -> Iterator[SplitRow]:
    found = False
    for device, gaps in device_gaps(trace, structure, vendor=False):
        found = True
        yield from _added(windows, device, _on_device(trace, device, gaps, windows))
    if not found and not len(trace.device.rows):
        yield from _added(windows, HOST, _on_host(trace, windows))


def _on_device(trace: Trace, name: str, gaps: Gaps, windows: _Windows) -> dict[str, Int64]:
    """Nanoseconds of each part in each window; the parts add up to the window."""
    device = trace.device
    codes = [code for code, text in enumerate(trace.strings) if text == name]
    mine = np.isin(device.device, np.array(codes, np.int64))

    def cover(*kinds: Kind) -> Int64:
        chosen = mine & np.isin(device.kind, np.array(kinds, np.int8))
        spans = merged(device.ts[chosen], device.end[chosen])
        return covered_ns(windows.ts, windows.end, *spans)

    compute = cover(Kind.KERNEL)
    with_comm = cover(Kind.KERNEL, Kind.COMMUNICATION)
    busy = cover(Kind.KERNEL, Kind.COMMUNICATION, Kind.COPY, Kind.FILL)
    parts = {"compute": compute, "comm": with_comm - compute, "copy": busy - with_comm}
    idle = (windows.end - windows.ts) - busy
    for number, cause in enumerate(CAUSES):
        own = gaps.cause == number
        start = gaps.start_ns[own]
        waited = covered_ns(windows.ts, windows.end, start, start + gaps.length_ns[own])
        parts[cause] = waited
        idle = idle - waited
    parts[EDGE] = idle
    return parts


def _on_host(trace: Trace, windows: _Windows) -> dict[str, Int64]:
    """The same of a trace without device work."""
    events = trace.events
    talk = host_collectives(trace)
    ts, end = host_compute(trace)
    compute = covered_ns(windows.ts, windows.end, ts, end)
    both = merged(np.concatenate([ts, events.ts[talk]]), np.concatenate([end, events.end[talk]]))
    busy = covered_ns(windows.ts, windows.end, *both)
    whole = windows.end - windows.ts
    return {"compute": compute, "comm": busy - compute, BETWEEN: whole - busy}


_BUSY = ("compute", "comm", "copy")


def _added(windows: _Windows, device: str, parts: dict[str, Int64]) -> Iterator[SplitRow]:
    """One row per name, in the order in which the names first occur."""
    members: dict[str, list[int]] = defaultdict(list)
    for at, name in enumerate(windows.names):
        members[name].append(at)
    for name, mine in members.items():
        total = {part: int(ns[mine].sum()) for part, ns in parts.items()}
        yield SplitRow(
            kind=windows.kind,
            name=name,
            device=device,
            count=len(mine),
            span_ns=int((windows.end - windows.ts)[mine].sum()),
            compute_ns=total["compute"],
            exposed_comm_ns=total["comm"],
            exposed_copy_ns=total.get("copy", 0),
            idle={part: ns for part, ns in total.items() if part not in _BUSY and ns},
        )
