"""Prefill: the prompt in, the first token of each sequence on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from profiler.bench.scenarios.base import Bench, PhaseMark, Stamps, unmarked
from profiler.bench.scenarios.engine import Engine, check_logits
from profiler.bench.summary import median, summarise
from profiler.bench.utilisation import flop_metrics
from profiler.types import Metric


class Prefill:
    """A unit is one prefill of the whole batch; its stamps are (start, first token on host)."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._engine = Engine(bench)

    @torch.inference_mode()
    def run(self, phase: PhaseMark = unmarked) -> Stamps:
        now = self._bench.device.now
        start = now()
        with phase("prefill"):
            self._engine.prefill()
        return start, now()

    @torch.inference_mode()
    def check(self) -> None:
        check_logits(self._engine)

    def profile(self, steps: int, phase: PhaseMark, advance: Callable[[], None]) -> list[int]:
        durations = []
        for _ in range(steps + 1):
            start, end = self.run(phase)
            durations.append(end - start)
            advance()
        return durations[1:]

    def profiled_steps(self, asked: int) -> int:
        return asked

    def step_times(self, units: Sequence[Stamps]) -> list[int]:
        return [end - start for start, end in units]

    def metrics(self, units: Sequence[Stamps]) -> list[Metric]:
        times = self.step_times(units)
        spec = self._bench.spec
        tokens = spec.batch * spec.prompt_tokens
        method = self._bench.device.timing_method
        return [
            summarise("ttft", times, phase="timed", method=method),
            summarise(
                "prefill_rate",
                [tokens / (time * 1e-9) for time in times],
                value=tokens / (median(times) * 1e-9),
                phase="timed",
                method="prompt tokens of the batch / median time to first token",
            ),
            *flop_metrics(self._bench, times, training=False),
        ]
