"""How far apart two runs of the same thing are: A/A over fresh processes.

Each pair launches the same decode run twice, one after the other; the figure
is the median over pairs of |a1 - a2| / a1 of the launches' median times per
token. Run by `make bench-noise` on an idle machine; `PAIRS` sets how many.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import msgspec

from profiler.types import Result

GOAL_SHARE = 0.02
SPEC = {
    "model": "llama-small",
    "scenario": "decode",
    "prompt_tokens": 64,
    "output_tokens": 33,
    "iterations": 8,
    "warmup": 5,
    "warmup_max": 20,
    "profiled_steps": 0,
}


def launch(folder: Path) -> float:
    """Median time per token in ns of one fresh process."""
    spec = folder / "spec.json"
    spec.write_text(json.dumps(SPEC))
    out = folder / "out"
    subprocess.run(
        [sys.executable, "-m", "profiler", "run", str(spec), "--out", str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    result = msgspec.json.decode((out / "result.json").read_bytes(), type=Result)
    return next(metric.value for metric in result.metrics if metric.name == "itl")


def main() -> int:
    pairs = int(os.environ.get("PAIRS", "20"))
    differences = []
    with tempfile.TemporaryDirectory() as folder:
        for pair in range(1, pairs + 1):
            first, second = launch(Path(folder)), launch(Path(folder))
            differences.append(abs(first - second) / first)
            print(
                f"pair {pair:2d}   {first / 1e6:8.3f} ms   {second / 1e6:8.3f} ms   "
                f"{differences[-1] * 100:6.2f} %",
                flush=True,
            )
    noise = median(differences)
    print(
        f"median absolute difference {noise * 100:.2f} % of {pairs} pairs, load {os.getloadavg()}"
    )
    met = noise < GOAL_SHARE
    print("goal met" if met else f"goal missed: {noise * 100:.2f} % is not below 2 %")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
