"""What our loop costs: decode steps of the runner against a bare loop over the same model.

Both alternate in short blocks within one process, in an order that turns with
each round, so that a busy moment hits both alike. The goal is met only when
the overhead with its error lies below what is allowed: on a busy machine
nothing is proved. Run by `make bench-overhead`; `ROUNDS` sets how many, `MODEL` of which
model: the usual one is small, as the cost is that of a step and hides in the noise of long ones.
"""

from __future__ import annotations

import os
import sys
from itertools import pairwise
from statistics import median, quantiles
from time import perf_counter_ns

import torch

from profiler.bench.build import build
from profiler.bench.configs import plan_model
from profiler.bench.depth import MEDIAN_ERROR
from profiler.bench.devices import Device
from profiler.bench.harness import set_threads
from profiler.bench.passes import frozen_garbage
from profiler.bench.scenarios import Bench
from profiler.bench.scenarios.decode import Decode
from profiler.types import RunSpec

MODEL = os.environ.get("MODEL", "llama-tiny")
ROUNDS = int(os.environ.get("ROUNDS", "40"))
GOAL_SHARE = 0.01
GOAL_NS = 20_000
ERRORS = 2.0
"""Standard errors by which the overhead must stay below what is allowed."""


def bare_generation(bench: Bench) -> list[int]:
    """Step times of a hand-written greedy loop: no classes, no marks, one look per step."""
    model, steps = bench.model, bench.spec.output_tokens - 1
    stamps = []
    with torch.inference_mode():
        output = model(**bench.inputs, use_cache=True, logits_to_keep=1)
        token = output.logits[:, -1:].argmax(dim=-1)
        token.tolist()
        stamps.append(perf_counter_ns())
        for _ in range(steps):
            output = model(input_ids=token, cache=output.cache, use_cache=True, logits_to_keep=1)
            token = output.logits[:, -1:].argmax(dim=-1)
            token.tolist()
            stamps.append(perf_counter_ns())
    return [later - earlier for earlier, later in pairwise(stamps)]


def main() -> int:
    spec = RunSpec(model=MODEL, scenario="decode", prompt_tokens=64, output_tokens=33, threads=1)
    set_threads(spec.threads)
    device = Device(spec.device, perf_counter_ns)
    built = build(plan_model(spec), spec, device)
    bench = Bench(
        spec=spec,
        model=built.model,
        inputs=built.inputs,
        vocabulary=built.vocabulary,
        device=device,
        cost=built.cost,
    )
    runner = Decode(bench)
    ours: list[float] = []
    bare: list[float] = []

    def measure_ours() -> None:
        ours.append(median(runner.step_times([runner.run()])))

    def measure_bare() -> None:
        bare.append(median(bare_generation(bench)))

    runner.run()
    bare_generation(bench)
    with frozen_garbage():
        for turn in range(ROUNDS):
            order = (measure_ours, measure_bare)
            for measure in order if turn % 2 else reversed(order):
                measure()
    # Neighbours in time are compared, so that drift over the rounds cancels out.
    return verdict([own - hand for own, hand in zip(ours, bare, strict=True)], bare, ours)


def verdict(extra: list[float], bare: list[float], ours: list[float]) -> int:
    """Print the table and whether the goal is met; the exit code."""
    overhead, error = median(extra), ERRORS * median_error(extra)
    allowed = max(GOAL_NS, GOAL_SHARE * median(bare))
    print(f"decode step   ours {median(ours) / 1e6:8.3f} ms   bare {median(bare) / 1e6:8.3f} ms")
    print(
        f"overhead      {overhead / 1e3:8.1f} +- {error / 1e3:.1f} us   allowed "
        f"{allowed / 1e3:8.1f} us   {len(bare)} pairs, load {os.getloadavg()}"
    )
    if overhead + error <= allowed:
        print("goal met")
        return 0
    if overhead <= allowed:
        print("goal missed: the machine is too busy to tell; nothing is proved")
        return 1
    print(f"goal missed: overhead above {allowed / 1e3:.1f} us")
    return 1


def median_error(values: list[float]) -> float:
    """Standard error of the median by the interquartile range."""
    low, _, high = quantiles(values, n=4)
    return float(MEDIAN_ERROR * (high - low) / len(values) ** 0.5)


if __name__ == "__main__":
    sys.exit(main())
