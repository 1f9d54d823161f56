"""How long every built-in model takes in all three scenarios under the quick template.

Each run is a fresh process, as a worker starts it, so loading the libraries
counts. Prints a table of seconds, model by scenario; the goal is ten minutes
for all of them. Run by `make bench-models` on an idle machine; `--models`
takes only some, and the goal then shrinks with their share of the runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from profiler import spec as specs
from profiler.bench.templates import SHIPPED, expand
from profiler.catalog import BUILTIN
from profiler.metrics import HEADLINE
from profiler.types import SCENARIOS, Result, RunSpec

GOAL_S = 600.0
TRACE = "trace.json.gz"


def quick_runs(models: Sequence[str]) -> tuple[RunSpec, ...]:
    """The runs of the quick template for `models`, those it leaves out as well."""
    template = SHIPPED["quick"]
    return expand(replace(template, axes=template.axes | {"model": list(models)}))


def seconds_of(spec: RunSpec, folder: Path) -> float:
    """Wall time of one run from process start to published result; ends the script if it fails."""
    spec_file, out = folder / "spec.json", folder / "out"
    spec_file.write_bytes(specs.canonical(spec))
    command = [sys.executable, "-m", "profiler", "run", str(spec_file), "--out", str(out)]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    took = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{done.stderr[-4000:]}\ngoal missed: {spec.model} {spec.scenario} failed")
    result = msgspec.json.decode((out / "result.json").read_bytes(), type=Result)
    if HEADLINE[spec.scenario] not in {metric.name for metric in result.metrics}:
        sys.exit(f"goal missed: {spec.model} {spec.scenario} has no headline metric")
    if not (out / TRACE).exists():
        sys.exit(f"goal missed: {spec.model} {spec.scenario} left no trace")
    return took


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=list(BUILTIN), choices=list(BUILTIN))
    models: list[str] = parser.parse_args().models
    runs = quick_runs(models)
    print(f"{len(runs)} runs of the quick template, load {os.getloadavg()}")
    print(f"{'seconds':<20}" + "".join(f"{scenario:>10}" for scenario in SCENARIOS), flush=True)
    total = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            print(f"{model:<20}", end="", flush=True)
            for spec in (spec for spec in runs if spec.model == model):
                took = seconds_of(spec, Path(folder))
                total += took
                print(f"{took:10.1f}", end="", flush=True)
            print(flush=True)
    allowed = GOAL_S * len(models) / len(BUILTIN)
    print(f"{'total':<20}{total:10.1f} of {allowed:.0f} s allowed, load {os.getloadavg()}")
    met = total <= allowed
    print("goal met" if met else f"goal missed: {total:.0f} s for {len(models)} models")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
