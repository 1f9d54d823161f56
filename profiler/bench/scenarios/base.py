"""What the harness knows about a scenario."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import torch

from profiler.bench.cost import Cost
from profiler.bench.devices import Device
from profiler.types import Metric, RunSpec

Stamps = tuple[int, ...]
"""Stamps of one unit in nanoseconds, in order; what each one means is the scenario's."""

PhaseMark = Callable[[str], AbstractContextManager[object]]
"""Called with a phase name; the context it returns spans that phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What a scenario works on.

    `inputs` holds what every forward call gets, prompts included; `cost` is
    None where FLOPs and bytes of the model cannot be told. The key-value cache
    is spread over `cache_parts` ranks.
    """

    spec: RunSpec
    model: torch.nn.Module
    inputs: dict[str, torch.Tensor]
    vocabulary: int
    device: Device
    cost: Cost | None
    cache_parts: int = 1


class Scenario(Protocol):
    """One kind of workload; a new one is a file beside this and a line in the registry."""

    def __init__(self, bench: Bench) -> None: ...

    def run(self) -> Stamps:
        """One unit (one prefill, one generation, one training step), unmarked and unprofiled."""
        ...

    def check(self) -> None:
        """Correctness smoke: raises `NonFiniteError` or `AssertionError` on wrong output."""
        ...

    def profile(self, steps: int, phase: PhaseMark, advance: Callable[[], None]) -> list[int]:
        """Run a warm-up step and `steps` more, `advance` after each; their durations in ns."""
        ...

    def profiled_steps(self, asked: int) -> int:
        """How many steps `profile` can run when `asked` are wanted."""
        ...

    def step_times(self, units: Sequence[Stamps]) -> list[int]:
        """Durations in ns of what `profile` calls a step, from timed units."""
        ...

    def metrics(self, units: Sequence[Stamps]) -> list[Metric]:
        """The metrics of the timed units, of which there is at least one."""
        ...


def unmarked(name: str) -> AbstractContextManager[object]:
    """The phase mark of timed code: none."""
    return contextlib.nullcontext()
