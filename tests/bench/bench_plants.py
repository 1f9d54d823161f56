"""Slowdowns planted in a small Llama on the processor, measured and profiled by our runner.

Each plant runs with and without, alternating, each in a fresh process as any
run does. Goals: the matching finding is among the first two, and taking the
plant out wins what it predicts within 25 %. What is won is the difference of
the profiled steps, what is predicted the finding's share of them: the fastest
run of either side counts, as other programs only ever slow one down. The
timed steps, which no profiler slows, are printed beside. `--repeats` sets how
many runs either side has.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from profiler.analysis.ingest import ingest  # noqa: E402 - found from the root
from profiler.analysis.known import Known  # noqa: E402
from profiler.analysis.report import Report  # noqa: E402
from profiler.metrics import HEADLINE  # noqa: E402
from profiler.units import change, duration, share  # noqa: E402

NEAR = 0.25
TOP = 2


@dataclass(frozen=True, kw_only=True)
class Plant:
    """What is planted, how it is run, and the kind of finding that should name it."""

    title: str
    kinds: tuple[str, ...]
    planted: str
    without: str
    spec: dict[str, object]


PREFILL = {"scenario": "prefill", "batch": 1, "prompt_tokens": 64}
DECODE = {"scenario": "decode", "batch": 1, "prompt_tokens": 16, "output_tokens": 12}
PLANTS = (
    Plant(
        title="python loop in RMSNorm",
        kinds=("host_overhead",),
        planted="loop_norm",
        without="plain",
        spec=PREFILL,
    ),
    Plant(
        title="fp32 cast around a linear",
        kinds=("redundant_copy",),
        planted="cast_linear",
        without="wide",
        spec=PREFILL | {"prompt_tokens": 2, "dtype": "bfloat16"},
    ),
    Plant(
        title="cache grown by cat",
        kinds=("redundant_copy",),
        planted="plain",
        without="kept_cache",
        spec=DECODE | {"batch": 8, "prompt_tokens": 1000},
    ),
    Plant(
        title="item() in the sampling loop",
        # On a processor nothing waits: what it costs is Python and dispatch.
        kinds=("host_overhead", "sync_point"),
        planted="item_loop",
        without="plain",
        spec=DECODE,
    ),
)


@dataclass(frozen=True, kw_only=True)
class Ran:
    """One run: its report, its profiled and its timed step."""

    report: Report
    profiled_ns: float
    timed_ns: float


def run(plant: Plant, factory: str, folder: Path, steps: int) -> Ran:
    """Measure and profile one factory's model by the runner; raises where the run fails."""
    spec = {
        "model": "small-llama",
        "factory": f"tests/bench/plants.py:{factory}",
        "iterations": steps,
        "profiled_steps": steps,
        "threads": 1,
    }
    (folder / "spec.json").write_bytes(msgspec.json.encode(spec | plant.spec))
    out = folder / factory
    command = [sys.executable, "-m", "profiler", "run", str(folder / "spec.json"), "--out"]
    done = subprocess.run([*command, str(out)], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{plant.title}: the run of {factory} failed\n{done.stderr[-2000:]}")
    result = msgspec.json.decode((out / "result.json").read_bytes())
    wanted = HEADLINE[str(plant.spec["scenario"])]
    timed_ns = next(m["value"] for m in result["metrics"] if m["name"] == wanted)
    traces = [next(out.glob("trace*.json*"))]
    report = ingest(traces, None, known=Known(step_ns=timed_ns))
    return Ran(
        report=report,
        profiled_ns=statistics.median(row.dur_ns for row in report.steps),
        timed_ns=timed_ns,
    )


def missed_by(plant: Plant, repeats: int, steps: int) -> list[str]:
    """Run one plant with and without, print its line, and say which goals it misses."""
    planted, without = [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            planted.append(run(plant, plant.planted, Path(folder), steps))
            without.append(run(plant, plant.without, Path(folder), steps))
    best = min(planted, key=lambda one: one.timed_ns)
    kinds = [row.kind for row in best.report.findings]
    place = next((n for n, kind in enumerate(kinds, 1) if kind in plant.kinds), 0)
    finding = best.report.findings[place - 1] if place else None
    gain_ns = (finding.recoverable_ns_per_step or 0) if finding else 0
    won_ns = best.timed_ns - min(one.timed_ns for one in without)
    error = gain_ns / won_ns - 1 if won_ns > 0 else None
    profiled = min(one.profiled_ns for one in planted)
    profiled_won_ns = profiled - min(one.profiled_ns for one in without)
    expected_ns = (finding.share if finding else 0.0) * profiled
    profiled_error = expected_ns / profiled_won_ns - 1 if profiled_won_ns > 0 else None
    pricing = best.report.pricing
    print(
        f"{plant.title:28} {place or '-':>5} {duration(best.timed_ns):>9} "
        f"{duration(pricing.step_ns if pricing else None):>9} {duration(profiled):>9} "
        f"{duration(max(0.0, won_ns)):>9} {duration(gain_ns):>9} {change(error):>8} "
        f"{change(profiled_error):>8} {os.getloadavg()[0]:5.1f}",
        flush=True,
    )
    missed = []
    if not 0 < place <= TOP:
        missed.append(f"{plant.title} is not in the top two ({', '.join(kinds[:3]) or 'nothing'})")
    if error is None or abs(error) > NEAR:
        missed.append(f"{plant.title} is off by {change(error)}, goal {share(NEAR)}")
    return missed


def main() -> int:
    """Run all plants, print the table, say whether the goals are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10, help="timed and profiled steps of a run")
    parser.add_argument("--only", help="only plants with this in their title")
    options = parser.parse_args()
    print(
        f"{'planted':28} {'place':>5} {'timed':>9} {'priced':>9} {'profiled':>9} {'won':>9} "
        f"{'found':>9} {'error':>8} {'profiled':>8} {'load':>5}"
    )
    missed: list[str] = []
    for plant in PLANTS:
        if options.only is None or options.only in plant.title:
            missed += missed_by(plant, options.repeats, options.steps)
    print(f"goal missed: {'; '.join(missed)}" if missed else "goal met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
