"""Training: forward, backward and AdamW on the prompt tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from profiler.bench.savings import optimizer_of
from profiler.bench.scenarios.base import Bench, PhaseMark, Stamps, unmarked
from profiler.bench.scenarios.engine import require_finite
from profiler.bench.summary import median, summarise
from profiler.bench.utilisation import flop_metrics
from profiler.types import Metric

LEARNING_RATE = 1e-5
"""Small enough that a measurement of any length leaves the seeded weights well-behaved."""


class Training:
    """A unit is one step; its stamps are (start, forward end, backward end, step end).

    Gradients are dropped inside the optimiser part, after the update.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        bench.model.train()
        self._optimizer = optimizer_of(bench.model, bench.spec, lr=LEARNING_RATE)

    def run(self, phase: PhaseMark = unmarked) -> Stamps:
        device = self._bench.device
        splits = device.splits()
        start = device.now()
        splits.start()
        with phase("forward"):
            loss = self._loss()
        splits.mark()
        with phase("backward"):
            loss.backward()  # type: ignore[no-untyped-call]
        splits.mark()
        with phase("optimizer"):
            self._optimizer.step()
            self._optimizer.zero_grad(set_to_none=True)
        end = device.now()
        return start, *splits.resolve(start), end

    def check(self) -> None:
        """Loss and gradients are finite; the weights stay as they are."""
        loss = self._loss()
        dtype = self._bench.spec.dtype
        require_finite(loss.detach(), "training loss", dtype)
        loss.backward()  # type: ignore[no-untyped-call]
        for name, parameter in self._bench.model.named_parameters():
            if parameter.grad is not None:
                require_finite(parameter.grad, f"gradient of {name}", dtype)
        self._optimizer.zero_grad(set_to_none=True)

    def profile(self, steps: int, phase: PhaseMark, advance: Callable[[], None]) -> list[int]:
        durations = []
        for _ in range(steps + 1):
            unit = self.run(phase)
            durations.append(unit[-1] - unit[0])
            advance()
        return durations[1:]

    def profiled_steps(self, asked: int) -> int:
        return asked

    def step_times(self, units: Sequence[Stamps]) -> list[int]:
        return [unit[-1] - unit[0] for unit in units]

    def metrics(self, units: Sequence[Stamps]) -> list[Metric]:
        spec, device = self._bench.spec, self._bench.device
        times = self.step_times(units)
        seconds = median(times) * 1e-9
        parts = ("forward_time", "backward_time", "optimizer_time")
        split = [
            summarise(
                name,
                [unit[i + 1] - unit[i] for unit in units],
                phase="timed",
                method=device.split_method,
            )
            for i, name in enumerate(parts)
        ]
        samples = spec.batch * spec.ranks
        per_step = {"training_rate": samples * spec.prompt_tokens, "sample_rate": samples}
        rates = [
            summarise(
                name,
                [amount / (time * 1e-9) for time in times],
                value=amount / seconds,
                phase="timed",
                method="amount of one step / median step time",
            )
            for name, amount in per_step.items()
        ]
        whole = summarise("step_time", times, phase="timed", method=device.timing_method)
        flops = flop_metrics(self._bench, times, training=True)
        return [whole, *split, *rates, *flops]

    def _loss(self) -> torch.Tensor:
        inputs = self._bench.inputs
        output = self._bench.model(**inputs, labels=inputs["input_ids"], use_cache=False)
        loss: torch.Tensor = output.loss
        return loss
