"""The profiled phase: a bounded number of steps under torch.profiler, written as a Chrome trace."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

import torch

from profiler.bench.fit import available_bytes
from profiler.bench.marks import module_marks, phase_mark
from profiler.bench.scenarios.base import Bench, Scenario
from profiler.trace.heap import stocked
from profiler.types import ProfileOption

STOCK_BYTES = 1 << 30
"""Enough for ten steps with 64 MiB of large tensors in each, or four of a small training step."""

EVENTS_LIMIT = 2_000_000
EVENTS_PER_MODULE = 60
STACKS_FACTOR = 10
"""Generous events of one module in one training step; bounds the trace before it is recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """Durations in ns of the profiled steps, and what the recording could not do as asked."""

    step_ns: tuple[int, ...]
    note: str


def bounded_steps(scenario: Scenario, bench: Bench, options: frozenset[ProfileOption]) -> int:
    """How many of the asked steps to record so that the trace stays within `EVENTS_LIMIT`."""
    modules = sum(1 for _ in bench.model.modules())
    per_step = modules * EVENTS_PER_MODULE * (STACKS_FACTOR if "stacks" in options else 1)
    fitting = max(1, EVENTS_LIMIT // per_step)
    return min(scenario.profiled_steps(bench.spec.profiled_steps), fitting)


def _heap(bench: Bench) -> contextlib.AbstractContextManager[None]:
    """On the CPU a stock of pages, as a profiler keeps large tensors from using theirs again."""
    if not bench.device.is_cpu:
        return contextlib.nullcontext()
    free = available_bytes(bench.device) or 0
    return stocked(min(STOCK_BYTES, free // (4 * bench.spec.ranks)))


def capture(
    scenario: Scenario, bench: Bench, path: Path, *, options: frozenset[ProfileOption]
) -> Capture:
    """Profile the spec's steps of `scenario` into the gzipped Chrome trace `path`.

    Each step is a `ProfilerStep#n`, phases are marked, and module calls with
    the option `modules`. A first step warms the profiler up and is not recorded.
    """
    steps = bounded_steps(scenario, bench, options)
    device, asked = bench.device, bench.spec.profiled_steps
    activities = device.activities()
    profile = torch.profiler.profile(
        activities=activities,
        schedule=torch.profiler.schedule(wait=0, warmup=1, active=steps, repeat=1),
        record_shapes="shapes" in options,
        with_flops="flops" in options,
        profile_memory="memory" in options,
        with_stack="stacks" in options,
        acc_events=True,
    )
    marks = module_marks(bench.model) if "modules" in options else contextlib.nullcontext()
    with _heap(bench), marks, profile:
        durations = scenario.profile(steps, phase_mark, profile.step)
    profile.export_chrome_trace(str(path))
    notes = []
    if steps < asked:
        notes.append(f"{steps} of {asked} steps recorded to keep the trace small")
    if not device.is_cpu and len(activities) == 1:
        notes.append(f"torch has no profiler activity for {device.kind}: host side only")
    return Capture(step_ns=tuple(durations), note="; ".join(notes))
