"""The profiled phase: a bounded number of steps under torch.profiler, written as a Chrome trace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from profiler.bench.devices import Device
from profiler.bench.marks import module_marks, phase_mark
from profiler.bench.scenarios.base import Scenario

EVENTS_LIMIT = 2_000_000
EVENTS_PER_MODULE = 60
"""Generous events of one module in one training step; bounds the trace before it is recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """Durations in ns of the profiled steps, and what the recording could not do as asked."""

    step_ns: tuple[int, ...]
    note: str


def bounded_steps(scenario: Scenario, model: torch.nn.Module, asked: int) -> int:
    """How many of `asked` steps to record so that the trace stays within `EVENTS_LIMIT` events."""
    modules = sum(1 for _ in model.modules())
    fitting = max(1, EVENTS_LIMIT // (modules * EVENTS_PER_MODULE))
    return min(scenario.profiled_steps(asked), fitting)


def capture(
    scenario: Scenario, model: torch.nn.Module, *, device: Device, asked: int, path: Path
) -> Capture:
    """Profile up to `asked` steps of `scenario` into the gzipped Chrome trace `path`.

    Shapes are recorded, each step is a `ProfilerStep#n`, module calls and
    phases are marked. A first step warms the profiler up and is not recorded.
    """
    steps = bounded_steps(scenario, model, asked)
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=steps, repeat=1)
    activities = device.activities()
    with (
        module_marks(model),
        torch.profiler.profile(
            activities=activities, schedule=schedule, record_shapes=True, acc_events=True
        ) as profile,
    ):
        durations = scenario.profile(steps, phase_mark, profile.step)
    profile.export_chrome_trace(str(path))
    notes = []
    if steps < asked:
        notes.append(f"{steps} of {asked} steps recorded to keep the trace small")
    if not device.is_cpu and len(activities) == 1:
        notes.append(f"torch has no profiler activity for {device.kind}: host side only")
    return Capture(step_ns=tuple(durations), note="; ".join(notes))
