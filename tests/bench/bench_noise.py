"""How far apart two runs of the same thing are: A/A over fresh processes.

Each pair launches the same decode run twice, one after the other; the figure
is the noise floor of `profiler.analysis.noise` over the launches' median gaps
between tokens. Run by `make bench-noise` on an idle machine; `PAIRS` sets how
many, `MODEL` of which built-in model. The usual one stays in the cache of one
core and runs on one thread: a larger one waits for memory, and on a host that
is shared its figure is that of the neighbours. What disturbed a launch, by its own
account, is printed beside it; how much a fixed loop of arithmetic varied
before every launch says whether the machine was idle at all: a neighbour on
the same core slows it without any load or stolen time to be seen.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import quantiles
from time import perf_counter_ns

import msgspec

from profiler.analysis.noise import ENOUGH_PAIRS, noise_floor
from profiler.types import Result

GOAL_SHARE = 0.02
SPEC = {
    "model": os.environ.get("MODEL", "llama-tiny"),
    "scenario": "decode",
    "prompt_tokens": 64,
    "output_tokens": 33,
    "iterations": 60,
    "threads": 1,
    "warmup": 5,
    "warmup_max": 20,
    "profiled_steps": 0,
}


def launch(folder: Path) -> tuple[float, tuple[str, ...]]:
    """Median gap between tokens in ns of one fresh process, and what it warned of."""
    spec = folder / "spec.json"
    spec.write_text(json.dumps(SPEC))
    out = folder / "out"
    command = [sys.executable, "-m", "profiler", "run", str(spec), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stderr[-4000:]}\na launch failed with exit code {done.returncode}")
    result = msgspec.json.decode((out / "result.json").read_bytes(), type=Result)
    gap = next(metric.value for metric in result.metrics if metric.name == "itl")
    return gap, result.warnings


def loops_ns() -> list[int]:
    """Times in ns of a fixed loop of arithmetic, repeated for about a fifth of a second."""
    times = []
    for _ in range(100):
        begin = perf_counter_ns()
        sum(range(100_000))
        times.append(perf_counter_ns() - begin)
    return times


def main() -> int:
    pairs = int(os.environ.get("PAIRS", "20"))
    medians: list[float] = []
    loops: list[int] = []
    print(f"{pairs} pairs of launches, load {os.getloadavg()}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for pair in range(1, pairs + 1):
            loops += loops_ns()
            (first, said), (second, also_said) = launch(Path(folder)), launch(Path(folder))
            medians += [first, second]
            print(
                f"pair {pair:2d}   {first / 1e6:8.3f} ms   {second / 1e6:8.3f} ms   "
                f"{abs(second - first) / first:7.2%}   {'; '.join({*said, *also_said})}",
                flush=True,
            )
    noise = noise_floor(medians)
    print(
        f"median absolute difference {noise.typical:.2%}, worst {noise.worst:.2%}, of {pairs} "
        f"pairs, load {os.getloadavg()}"
    )
    fifths = quantiles(loops, n=5)
    print(
        f"a fixed loop took {fifths[3] / fifths[0] - 1:.1%} longer in its slow than its quick fifth"
    )
    if noise.few:
        print(f"goal missed: {pairs} pairs tell little, at least {ENOUGH_PAIRS} are needed")
        return 1
    met = noise.typical < GOAL_SHARE
    print("goal met" if met else f"goal missed: {noise.typical:.2%} is not below 2 %")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
