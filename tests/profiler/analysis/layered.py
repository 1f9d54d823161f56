"""Traces of a small model whose operators a test chooses, for comparing two of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from profiler.analysis.stepprofile import StepProfile, profile_of_trace
from tests.profiler.trace.build import TraceBuilder

STEP_US = 1000.0
DEFAULT_US = 20.0


@dataclass(frozen=True, kw_only=True)
class Layered:
    """`operators` run in order in `model.layers.N.mlp` of every layer of every step.

    `device_us` and `host_us` hold times by operator, a list gives one per
    step; an operator `a>b` runs `b` inside `a`. Without a device the host does
    the work. A step takes `step_us` whatever its operators take. `graph` adds a
    graph launch of two kernels, `unlinked` a kernel without a launch.
    """

    operators: Sequence[str] = ("aten::linear>aten::addmm", "aten::silu", "aten::mul")
    device_us: Mapping[str, float | Sequence[float]] = field(default_factory=dict)
    host_us: Mapping[str, float] = field(default_factory=dict)
    steps: int = 4
    step_us: float = STEP_US
    layers: int = 2
    device: bool = True
    graph: bool = False
    unlinked: bool = False
    marked: bool = True
    modules: bool = True
    launch: str = "cudaLaunchKernel"

    def profile(self, folder: Path, name: str = "trace") -> StepProfile:
        """The profile of the trace, by way of a file."""
        return profile_of_trace(self.build().write(folder / f"{name}.json"))

    def build(self) -> TraceBuilder:
        """All events."""
        made = TraceBuilder()
        for step in range(self.steps):
            self._step(made, step, 10_000 + step * self.step_us)
        return made

    def _step(self, made: TraceBuilder, step: int, at: float) -> None:
        if self.marked:
            made.mark(f"ProfilerStep#{step}", at, self.step_us)
        now = at + 5
        for layer in range(self.layers):
            start = now
            for operator in self.operators:
                now = self._operator(made, operator, step, now + 2)
            if self.modules:
                made.mark(f"module: model.layers.{layer}.mlp", start, now - start + 1)
            now += 10
        if self.graph:
            correlation = self._next(made)
            made.launch(correlation, now, 3, name="cudaGraphLaunch")
            made.kernel("inside", now + 5, 30, correlation=correlation)
            made.kernel("inside", now + 40, 20, correlation=correlation)
        if self.unlinked:
            made.kernel("lost", at + 900, 7)

    def _operator(self, made: TraceBuilder, operator: str, step: int, at: float) -> float:
        outer, _, inner = operator.rpartition(">")
        chosen = self.device_us.get(inner, DEFAULT_US)
        device = chosen if isinstance(chosen, int | float) else chosen[step]
        host = self.host_us.get(inner, 8.0 if self.device else 30.0)
        if outer:
            made.op(outer, at, host + 2)
        made.op(inner, at + 1, host)
        if self.device:
            correlation = self._next(made)
            made.launch(correlation, at + 2, 3, name=self.launch)
            made.kernel(f"kernel of {inner}", at + 8, device, correlation=correlation)
        return at + max(host + 3, device + 9 if self.device else 0)

    @staticmethod
    def _next(made: TraceBuilder) -> int:
        made.next_id += 1
        return made.next_id
