"""How long ranks talk to each other in a step, read from the traces of the profiled phase.

On a device its communication kernels count, on the CPU what gloo's threads
run. Exposed is the part during which the rank computes nothing: no kernel on
the device, no operator of torch on the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from profiler.analysis.host_communication import host_collectives, host_compute
from profiler.analysis.steps import step_event_rows
from profiler.bench.summary import summarise
from profiler.trace.clock import Int64
from profiler.trace.intervals import covered_ns, merged
from profiler.trace.kinds import Kind
from profiler.trace.model import Trace
from profiler.trace.normalise import normalise
from profiler.trace.read import read
from profiler.types import Metric

UNSEEN = "communication not measured: the traces of the profiled phase show no collective"


@dataclass(frozen=True, slots=True)
class Talk:
    """Communication of one rank in one step, in ns; `exposed_ns` is part of `total_ns`."""

    total_ns: int
    exposed_ns: int


def talk_of(path: Path) -> list[Talk]:
    """Communication in every step of the trace `path`; empty when it shows none at all."""
    trace = normalise(read(path))
    talking, computing = _spans(trace)
    if not len(talking[0]):
        return []
    rows = step_event_rows(trace)
    events = trace.events
    return [
        _within(talking, computing, start, end)
        for start, end in zip(events.ts[rows].tolist(), events.end[rows].tolist(), strict=True)
    ]


def talk_metrics(of_ranks: Sequence[Sequence[Talk]]) -> tuple[Metric, ...]:
    """Total and exposed communication of each step, of the rank with most; none if unseen."""
    steps = list(zip(*of_ranks, strict=False))
    if not steps:
        return ()
    totals = [[talk.total_ns for talk in step] for step in steps]
    exposed = [[talk.exposed_ns for talk in step] for step in steps]
    return _metric("communication_time", totals), _metric("exposed_communication_time", exposed)


def _metric(name: str, steps: Sequence[Sequence[int]]) -> Metric:
    return summarise(
        name,
        [max(step) for step in steps],
        phase="profiled",
        method=f"collectives in the trace of each of {len(steps[0])} ranks, the rank with most; "
        f"least of any: {min(map(min, steps))} ns",
    )


def _spans(trace: Trace) -> tuple[tuple[Int64, Int64], tuple[Int64, Int64]]:
    """When this rank communicates and when it computes, as disjoint intervals."""
    device = trace.device
    talks = device.kind == Kind.COMMUNICATION
    if talks.any():
        kernel = device.kind == Kind.KERNEL
        return (
            merged(device.ts[talks], device.end[talks]),
            merged(device.ts[kernel], device.end[kernel]),
        )
    events, gloo = trace.events, host_collectives(trace)
    return merged(events.ts[gloo], events.end[gloo]), host_compute(trace)


def _within(
    talking: tuple[Int64, Int64], computing: tuple[Int64, Int64], start: int, end: int
) -> Talk:
    """The parts of `talking` between `start` and `end`, all of it and outside `computing`."""
    ts, to = np.clip(talking[0], start, end), np.clip(talking[1], start, end)
    total = int((to - ts).sum())
    return Talk(total, total - int(covered_ns(ts, to, *computing).sum()))
