"""Small real workloads and a clock whose every look is known."""

from __future__ import annotations

from itertools import cycle
from time import perf_counter_ns

import msgspec

from profiler.bench.build import build
from profiler.bench.configs import plan_model
from profiler.bench.devices import Clock, Device
from profiler.bench.scenarios import Bench
from profiler.types import Metric, Result, RunSpec, Scenario

GAPS_NS = (3_000_000, 5_000_000, 7_000_000, 11_000_000, 13_000_000)


class FakeClock:
    """Every look at the clock moves it on by the next of `gaps`; `looks` counts them."""

    def __init__(self, gaps: tuple[int, ...] = GAPS_NS) -> None:
        self._gaps = cycle(gaps)
        self.now_ns = 0
        self.looks = 0

    def __call__(self) -> int:
        self.now_ns += next(self._gaps)
        self.looks += 1
        return self.now_ns


def small_spec(scenario: Scenario = "prefill", **fields: object) -> RunSpec:
    """A run of a moment: two short sequences through the tiny Llama on one thread."""
    small: dict[str, object] = {
        "model": "llama-tiny",
        "batch": 2,
        "prompt_tokens": 16,
        "output_tokens": 5,
        "iterations": 3,
        "warmup": 1,
        "profiled_steps": 2,
        "threads": 1,
    }
    return msgspec.convert({"scenario": scenario} | small | fields, RunSpec)


def cpu(clock: Clock = perf_counter_ns) -> Device:
    """The CPU as a device."""
    return Device("cpu", clock)


def small_bench(
    scenario: Scenario = "prefill", clock: Clock = perf_counter_ns, **fields: object
) -> Bench:
    """The model and inputs of `small_spec`, on the CPU."""
    spec = small_spec(scenario, **fields)
    # Building looks at a clock of its own.
    built = build(plan_model(spec), spec, cpu())
    return Bench(
        spec=spec,
        model=built.model,
        inputs=built.inputs,
        vocabulary=built.vocabulary,
        device=Device(spec.device, clock),
        cost=built.cost,
    )


def by_name(result: Result) -> dict[str, Metric]:
    """The metrics of a result by name."""
    return {metric.name: metric for metric in result.metrics}
