"""First token and time per token beside a hand-written loop and beside optimum-benchmark.

One small Llama with seeded weights is saved to a folder. Then, round by round
and each in a fresh process, the same batch, prompt length and output length
are timed by our runner, by a hand-written synchronised loop over the same
library, and by optimum-benchmark in an environment of its own, which is made
on first use (`--no-peer` leaves it out). The hand-written loop also runs in
the peer's environment, which tells its older libraries from its method.

Goal: our median first token and time per token lie within 3 % of the
hand-written loop's, as the median over rounds. Why the peer differs is told
in docs/measuring.md. Run by `make bench-peer` on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import msgspec
import torch
from safetensors.torch import save_file

from profiler.bench.build import build
from profiler.bench.configs import plan_model
from profiler.bench.devices import Device
from profiler.catalog import BUILTIN
from profiler.types import Result, RunSpec

GOAL_SHARE = 0.03
PEER = ("optimum-benchmark==0.6.0", "torch==2.13.0", "transformers==4.57.6")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
PEER_HOME = CACHE / "daybreak" / "bench-optimum-benchmark-0.6.0"

HAND = """
import json, sys, time
import torch, transformers
folder, work = sys.argv[1], json.loads(sys.argv[2])
torch.set_num_threads(work["threads"])
model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
shape = (work["batch"], work["prompt"])
ids = torch.randint(model.config.vocab_size, shape, generator=torch.Generator().manual_seed(0))
first, per_token = [], []
with torch.inference_mode():
    for unit in range(work["warmup"] + work["iterations"]):
        start = time.perf_counter_ns()
        output = model(input_ids=ids, use_cache=True, logits_to_keep=1)
        token = output.logits[:, -1:].argmax(dim=-1)
        token.tolist()
        begin = time.perf_counter_ns()
        for _ in range(work["output"] - 1):
            held = getattr(output, "cache", None)
            cache = {"past_key_values": output.past_key_values} if held is None else {"cache": held}
            output = model(input_ids=token, use_cache=True, logits_to_keep=1, **cache)
            token = output.logits[:, -1:].argmax(dim=-1)
            token.tolist()
        end = time.perf_counter_ns()
        if unit >= work["warmup"]:
            first.append(begin - start)
            per_token.append((end - begin) / (work["output"] - 1))
print(json.dumps([first, per_token]))
"""

OPTIMUM = """
import json, sys
from optimum_benchmark import (
    Benchmark, BenchmarkConfig, InferenceConfig, InlineConfig, PyTorchConfig)
folder, work = sys.argv[1], json.loads(sys.argv[2])
scenario = InferenceConfig(
    iterations=work["iterations"], duration=0, warmup_runs=work["warmup"],
    input_shapes={"batch_size": work["batch"], "sequence_length": work["prompt"]},
    generate_kwargs={"max_new_tokens": work["output"], "min_new_tokens": work["output"]})
# The two thread options of 0.6.0 are swapped: this one sets torch.set_num_threads.
backend = PyTorchConfig(
    model=folder, task="text-generation", library="transformers", model_type="llama",
    device="cpu", torch_dtype="float32", inter_op_num_threads=work["threads"])
report = Benchmark.launch(BenchmarkConfig(
    name="peer", scenario=scenario, launcher=InlineConfig(), backend=backend))
gaps = work["output"] - 1
print(json.dumps([
    [value * 1e9 for value in report.prefill.latency.values],
    [value * 1e9 / gaps for value in report.decode.latency.values],
    report.per_token.latency.mean * 1e9, report.per_token.latency.count]))
"""


@dataclass(frozen=True)
class Work:
    """What every side does."""

    batch: int
    prompt: int
    output: int
    iterations: int
    warmup: int
    threads: int

    def text(self) -> str:
        return json.dumps(self.__dict__)


@dataclass(frozen=True)
class Timing:
    """Medians of one launch, in ns."""

    first: float
    per_token: float
    note: str = ""


Side = Callable[[Path, Work], Timing]


def peer_python() -> str:
    """The interpreter of the peer's environment, which is made if it is not there yet."""
    python = PEER_HOME / "bin" / "python"
    probe = [str(python), "-c", "import optimum_benchmark"]
    if not python.exists() or subprocess.run(probe, capture_output=True).returncode:
        print(f"making the peer's environment in {PEER_HOME} ...", flush=True)
        venv.create(PEER_HOME, clear=True, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", *PEER], check=True)
    return str(python)


def save_model(folder: Path, model: str) -> None:
    """A checkpoint folder with seeded weights that both versions of the library read."""
    spec = RunSpec(model=model, scenario="decode", threads=1)
    built = build(plan_model(spec), spec, Device("cpu", lambda: 0))
    weights = {name: tensor.contiguous() for name, tensor in built.model.state_dict().items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = BUILTIN[model].read_config() | {"torch_dtype": "float32", "rope_theta": 10_000.0}
    (folder / "config.json").write_text(json.dumps(config))


def child(command: list[str], threads: int) -> str:
    """The last line that a fresh process prints; its own output is shown when it fails."""
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "LOG_TO_FILE": "0"}
    environment = os.environ | offline | {"OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}\n{command[0]} failed")
    return done.stdout.strip().splitlines()[-1]


def ours(folder: Path, work: Work) -> Timing:
    """One launch of the runner."""
    spec = {
        "model": "peer-llama",
        "checkpoint": str(folder),
        "scenario": "decode",
        "batch": work.batch,
        "prompt_tokens": work.prompt,
        "output_tokens": work.output,
        "iterations": work.iterations,
        "warmup": work.warmup,
        "threads": work.threads,
        "profiled_steps": 0,
    }
    with tempfile.TemporaryDirectory() as scratch:
        spec_file, out = Path(scratch) / "spec.json", Path(scratch) / "out"
        spec_file.write_text(json.dumps(spec))
        command = [sys.executable, "-m", "profiler", "run", str(spec_file), "--out", str(out)]
        child(command, work.threads)
        result = msgspec.json.decode((out / "result.json").read_bytes(), type=Result)
    values = {metric.name: metric.value for metric in result.metrics}
    return Timing(values["ttft"], values["tpot"])


def by_hand(python: str) -> Side:
    """The hand-written loop under `python`."""

    def launch(folder: Path, work: Work) -> Timing:
        command = [python, "-c", HAND, str(folder), work.text()]
        first, per_token = json.loads(child(command, work.threads))
        return Timing(median(first), median(per_token))

    return launch


def optimum(python: str) -> Side:
    """One launch of optimum-benchmark under `python`."""

    def launch(folder: Path, work: Work) -> Timing:
        command = [python, "-c", OPTIMUM, str(folder), work.text()]
        first, per_token, listed, count = json.loads(child(command, work.threads))
        expected = work.iterations * (work.output - 1)
        note = (
            f"its per_token list: {count} gaps of {expected} real ones, mean {listed / 1e6:.2f} ms"
        )
        return Timing(median(first), median(per_token), note)

    return launch


def measured(
    sides: dict[str, Side], rounds: int, work: Work, model: str
) -> dict[str, list[Timing]]:
    """Every side once a round, in an order that moves on by one each round."""
    found: dict[str, list[Timing]] = {name: [] for name in sides}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        save_model(folder, model)
        for turn in range(rounds):
            names = list(sides)
            order = names[turn % len(names) :] + names[: turn % len(names)]
            for name in order:
                found[name].append(sides[name](folder, work))
                line(f"round {turn + 1}  {name}", found[name][-1])
    return found


def line(name: str, timing: Timing) -> None:
    first, per_token = (f"{ns / 1e6:9.3f} ms" for ns in (timing.first, timing.per_token))
    print(f"{name:<34} first {first}   per token {per_token}   {timing.note}", flush=True)


def difference(found: list[Timing], reference: list[Timing], field: str) -> float:
    """Median over rounds of how much longer `found` took than `reference`, as a share."""
    pairs = zip(found, reference, strict=True)
    return float(median(getattr(a, field) / getattr(b, field) - 1 for a, b in pairs))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--model", default="llama-small")
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--output", type=int, default=33)
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--no-peer", action="store_true", help="do not run optimum-benchmark")
    return parser.parse_args()


def main() -> int:
    asked = options()
    work = Work(1, asked.prompt, asked.output, asked.iterations, 5, asked.threads)
    sides: dict[str, Side] = {"ours": ours, "by hand": by_hand(sys.executable)}
    if not asked.no_peer:
        python = peer_python()
        sides |= {
            "by hand, peer's libraries": by_hand(python),
            "optimum-benchmark": optimum(python),
        }
    print(f"{asked.model}, {work.text()}, torch {torch.__version__}, load {os.getloadavg()}")
    found = measured(sides, asked.rounds, work, asked.model)
    print()
    missed = []
    for name, timings in found.items():
        shown = Timing(median(t.first for t in timings), median(t.per_token for t in timings))
        line(name, shown)
        for field in ("first", "per_token"):
            share = difference(timings, found["by hand"], field)
            print(f"    {field.replace('_', ' '):<10} {share:+8.2%} against the hand-written loop")
            if name == "ours" and abs(share) > GOAL_SHARE:
                missed.append(f"{field.replace('_', ' ')} is {share:+.2%} off, allowed 3 %")
    print("goal met" if not missed else "goal missed: " + "; ".join(missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
