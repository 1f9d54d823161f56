"""What our loop costs: decode steps of the runner against a bare loop over the same model.

Both alternate in short blocks within one process, so that a busy moment hits
both alike. Run by `make bench-overhead`.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from statistics import median
from time import perf_counter_ns

import torch

from profiler.bench.build import build
from profiler.bench.configs import plan_model
from profiler.bench.devices import Device
from profiler.bench.harness import set_threads
from profiler.bench.passes import frozen_garbage
from profiler.bench.scenarios import Bench
from profiler.bench.scenarios.decode import Decode
from profiler.types import RunSpec

ROUNDS = 30
GOAL_SHARE = 0.01
GOAL_NS = 20_000


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
    spec = RunSpec(
        model="llama-small", scenario="decode", prompt_tokens=64, output_tokens=33, threads=1
    )
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
    runner.run()
    bare_generation(bench)
    with frozen_garbage():
        for _ in range(ROUNDS):
            ours.append(median(runner.step_times([runner.run()])))
            bare.append(median(bare_generation(bench)))
    # Neighbours in time are compared, so that drift over the rounds cancels out.
    extra = median(own - hand for own, hand in zip(ours, bare, strict=True))
    allowed = max(GOAL_NS, GOAL_SHARE * median(bare))
    print(f"decode step   ours {median(ours) / 1e6:8.3f} ms   bare {median(bare) / 1e6:8.3f} ms")
    print(
        f"overhead      {extra / 1e3:8.1f} us   allowed {allowed / 1e3:8.1f} us   {len(bare)} pairs"
    )
    met = extra <= allowed
    print("goal met" if met else f"goal missed: overhead above {allowed / 1e3:.1f} us")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
