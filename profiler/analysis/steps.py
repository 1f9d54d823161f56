"""Steps of a trace and the phase each one belongs to."""

from __future__ import annotations

import re

import numpy as np

from profiler.analysis.report import StepRow
from profiler.trace.batch import Int32
from profiler.trace.clock import Int64
from profiler.trace.intervals import merged, union_ns
from profiler.trace.kinds import Kind
from profiler.trace.link import Structure
from profiler.trace.model import Trace
from profiler.trace.vendors import rules

_FEWEST_STEPS = 3
_CANDIDATES = 32
_HOST = (Kind.ANNOTATION, Kind.HOST_OP, Kind.MODULE)


def step_event_rows(trace: Trace) -> Int64:
    """Rows of the host events that mark steps, by start.

    `ProfilerStep#n` where the trace has them, else the iteration marks of
    serving engines and trainers, else the marks of our own phases.
    """
    events = trace.events
    host = np.flatnonzero(np.isin(events.kind, np.array(_HOST, np.int8)))
    for rule in ("step", "iteration", "phase"):
        marks = trace.matching(rule)
        rows = host[marks[events.name[host]]]
        if len(rows):
            return _outermost(trace, rows)
    return host[:0]


def _outermost(trace: Trace, rows: Int64) -> Int64:
    """Rows by start without those inside an earlier one (nested marks are one step)."""
    events = trace.events
    rows = rows[np.lexsort((-events.dur[rows], events.ts[rows]))]
    reach = np.maximum.accumulate(events.end[rows])
    inside = np.concatenate([[False], events.end[rows][1:] <= reach[:-1]])
    return np.asarray(rows[~inside], np.int64)


def step_rows(trace: Trace, structure: Structure) -> list[StepRow]:
    """The steps with phases and device time; inferred from repetition where nothing marks them.

    `device_busy_ns` is the union of the device work launched inside the step.
    """
    events = trace.events
    rows = step_event_rows(trace)
    names = [trace.strings[code] for code in events.name[rows].tolist()]
    spans = list(zip(names, events.ts[rows].tolist(), events.end[rows].tolist(), strict=True))
    spans = spans or repetitions(trace, structure)
    phases = _phase_marks(trace, _HOST)
    busy = _device_busy(trace, structure, spans)
    return [
        StepRow(
            name=name,
            start_ns=start - trace.start_ns,
            dur_ns=end - start,
            phase=phase_of_name(name) or _dominant(phases, start, end),
            device_busy_ns=busy[n],
        )
        for n, (name, start, end) in enumerate(spans)
    ]


def _device_busy(
    trace: Trace, structure: Structure, spans: list[tuple[str, int, int]]
) -> list[int | None]:
    device = trace.device
    launched = np.flatnonzero((structure.launch >= 0) & (device.kind != Kind.WAIT))
    if not len(launched):
        return [None] * len(spans)
    issued = trace.events.ts[structure.launch[launched]]
    order = np.argsort(issued, kind="stable")
    work, issued = launched[order], issued[order]
    out: list[int | None] = []
    for _, start, end in spans:
        low, high = np.searchsorted(issued, [start, end]).tolist()
        mine = work[low:high]
        out.append(union_ns(device.ts[mine], device.end[mine]))
    return out


def repetitions(trace: Trace, structure: Structure) -> list[tuple[str, int, int]]:
    """Steps inferred where nothing marks them: (name, start, end) of equal stretches of calls.

    On the thread with the most outermost operators: the rarest operator that
    occurs at least three times and after which the same operators follow each
    time begins a step. Empty when there is none.
    """
    events, ops = trace.events, structure.ops
    roots = ops.rows[ops.parent < 0]
    if len(roots) < _FEWEST_STEPS:
        return []
    track = events.track[roots]
    thread = np.bincount(track).argmax()
    roots = roots[track == thread]
    names = events.name[roots]
    codes, counts = np.unique(names, return_counts=True)
    rare = codes[np.argsort(counts, kind="stable")].tolist()
    for code in rare[:_CANDIDATES]:
        at = np.flatnonzero(names == code)
        if len(at) >= _FEWEST_STEPS and _repeats(names, at):
            starts = events.ts[roots[at]].tolist()
            ends = [*starts[1:], int(events.end[roots[-1]])]
            return [
                (f"repetition#{n}", a, b) for n, (a, b) in enumerate(zip(starts, ends, strict=True))
            ]
    return []


def _repeats(names: Int32, at: Int64) -> bool:
    """Whether the same names follow each of the positions `at` but the last."""
    length = np.diff(at)
    if len(set(length.tolist())) != 1:
        return False
    first = names[at[0] : at[1]]
    return all(np.array_equal(names[a : a + len(first)], first) for a in at[:-1].tolist())


def phase_of_name(name: str) -> str | None:
    """prefill, decode or mixed from the mark of a serving engine; our own `phase: x`; else None."""
    if rules().names["phase"].search(name):
        return name.removeprefix("phase: ")
    found = rules().names["execution_context"].search(name)
    if found:
        context, generation = int(found["context"]), int(found["generation"])
        if context and generation:
            return "mixed"
        return "prefill" if context else "decode" if generation else None
    lowered = name.lower()
    marks = [p for p in ("prefill", "decode") if re.search(rf"(^|[^a-z]){p}", lowered)]
    return marks[0] if len(marks) == 1 else None


def _phase_marks(trace: Trace, kinds: tuple[Kind, ...]) -> list[tuple[int, int, str]]:
    """(start, end, phase) of annotations of these kinds that name a phase."""
    events = trace.events
    rows = np.flatnonzero(np.isin(events.kind, np.array(kinds, np.int8)))
    named = {code: phase_of_mark(s) for code, s in enumerate(trace.strings)}
    is_mark = np.fromiter((phase is not None for phase in named.values()), np.bool_, len(named))
    rows = rows[is_mark[events.name[rows]]]
    columns = (events.ts[rows], events.end[rows], events.name[rows])
    return [
        (ts, end, named[code] or "")
        for ts, end, code in zip(*(c.tolist() for c in columns), strict=True)
    ]


def phase_spans(trace: Trace) -> list[tuple[int, int, str]]:
    """(start, end, phase) of every phase, marks of one phase inside each other once, by start.

    Taken from the marks on the rows of devices where they are recorded (the work of a phase runs
    later than the host says), else from those of the host.
    """
    marks = _phase_marks(trace, (Kind.DEVICE_ANNOTATION,)) or _phase_marks(trace, _HOST)
    out = []
    for phase in dict.fromkeys(phase for _, _, phase in marks):
        mine = np.array([(a, b) for a, b, name in marks if name == phase], np.int64)
        starts, ends = merged(mine[:, 0], mine[:, 1])
        out += [(a, b, phase) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
    return sorted(out)


def phase_of_mark(name: str) -> str | None:
    """The phase an annotation stands for, training phases included."""
    own = phase_of_name(name)
    if own:
        return own
    known = rules().names
    for phase in ("forward", "backward", "optimizer"):
        if known[phase].search(name):
            return phase
    return None


def _dominant(phases: list[tuple[int, int, str]], start: int, end: int) -> str | None:
    """The phase of a step: prefill, decode, or training if it holds training phases."""
    inside = {phase for a, b, phase in phases if a >= start and b <= end}
    if inside & {"backward", "optimizer"}:
        return "training"
    if len(inside) == 1:
        return inside.pop()
    return "mixed" if inside else None
