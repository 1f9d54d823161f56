"""Steps of a trace and the phase each one belongs to."""

from __future__ import annotations

import re

import numpy as np

from profiler.analysis.report import StepRow
from profiler.trace.clock import Int64
from profiler.trace.kinds import Kind
from profiler.trace.model import Trace
from profiler.trace.vendors import rules

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


def step_rows(trace: Trace) -> list[StepRow]:
    """The steps with their phases; empty when nothing marks them."""
    rows = step_event_rows(trace)
    phases = _phase_marks(trace)
    out = []
    for row in rows.tolist():
        name = trace.strings[int(trace.events.name[row])]
        ts, dur = int(trace.events.ts[row]), int(trace.events.dur[row])
        step = StepRow(
            name=name,
            start_ns=ts - trace.start_ns,
            dur_ns=dur,
            phase=phase_of_name(name) or _dominant(phases, ts, ts + dur),
        )
        out.append(step)
    return out


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


def _phase_marks(trace: Trace) -> list[tuple[int, int, str]]:
    """(start, end, phase) of annotations that name a phase."""
    events = trace.events
    rows = np.flatnonzero(np.isin(events.kind, np.array(_HOST, np.int8)))
    named = {code: phase_of_mark(s) for code, s in enumerate(trace.strings)}
    is_mark = np.fromiter((phase is not None for phase in named.values()), np.bool_, len(named))
    rows = rows[is_mark[events.name[rows]]]
    columns = (events.ts[rows], events.end[rows], events.name[rows])
    return [
        (ts, end, named[code] or "")
        for ts, end, code in zip(*(c.tolist() for c in columns), strict=True)
    ]


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
    if inside & {"forward", "backward", "optimizer"} and "backward" in inside:
        return "training"
    if len(inside) == 1:
        return inside.pop()
    return "mixed" if inside else None
