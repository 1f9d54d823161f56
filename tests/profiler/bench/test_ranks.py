"""Two real processes over gloo, started the way a person starts them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from profiler.bench.build import build
from profiler.bench.configs import plan_model
from profiler.bench.ranks import Ranks, slowest_units
from profiler.errors import SpecError
from profiler.spec import check
from profiler.types import Environment, Result, RunSpec
from tests.profiler.bench.scene import by_name, cpu, small_bench, small_spec

SPEC = {
    "model": "llama-tiny",
    "scenario": "training",
    "prompt_tokens": 16,
    "batch": 2,
    "iterations": 3,
    "warmup": 1,
    "profiled_steps": 1,
    "threads": 1,
    "ranks": 2,
}


def command(folder: Path, **fields: object) -> list[str]:
    spec = folder / "spec.json"
    spec.write_text(json.dumps(SPEC | fields))
    return [sys.executable, "-m", "profiler", "run", str(spec), "--out", str(folder / "out")]


@pytest.mark.parametrize("parallel", ["data", "fsdp"])
def test_it_trains_in_two_ranks(tmp_path: Path, parallel: str) -> None:
    wanted = command(tmp_path, parallel=parallel, layers=1)
    done = subprocess.run(wanted, capture_output=True, timeout=240)
    assert done.returncode == 0, done.stderr.decode()
    out = tmp_path / "out"
    result = msgspec.json.decode((out / "result.json").read_bytes(), type=Result)
    metrics = by_name(result)
    assert len(result.rank_step_ns) == 2
    assert metrics["step_time"].value >= max(result.rank_step_ns)
    assert metrics["communication_time"].phase == "profiled"
    assert result.extrapolation is not None
    assert "several ranks" in result.extrapolation.refused["*"]
    assert 0 < metrics["exposed_communication_time"].value <= metrics["communication_time"].value
    per_step = metrics["training_rate"].value * metrics["step_time"].value * 1e-9
    assert per_step == pytest.approx(2 * 2 * 16)
    assert {path.name for path in out.iterdir()} == {
        "result.json",
        "env.json",
        "trace.json.gz",
        "trace-rank1.json.gz",
    }
    environment = msgspec.json.decode((out / "env.json").read_bytes(), type=Environment)
    assert environment.fields["env.WORLD_SIZE"] == "2"
    assert {json.loads(line)["event"] for line in done.stdout.splitlines()} == {"progress"}


def test_it_passes_on_why_a_rank_ended(tmp_path: Path) -> None:
    huge = command(tmp_path, parallel="data", model="llama-small", batch=4000, prompt_tokens=4096)
    done = subprocess.run(huge, capture_output=True, timeout=240)
    assert done.returncode == 65
    assert done.stderr.splitlines()[-1].startswith(b"daybreak: out of memory on cpu: llama-small")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["error.json"]


def test_it_ends_every_rank_after_ctrl_c(tmp_path: Path) -> None:
    endless = command(tmp_path, parallel="data", iterations=10_000)
    with subprocess.Popen(
        endless, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    ) as run:
        assert run.stdout is not None
        assert any(b'"timed"' in line for line in run.stdout)
        os.kill(run.pid, signal.SIGINT)
        # The pipe closes only when the last process that holds it is gone.
        run.stdout.read()
        assert run.wait(timeout=60) == 130
    assert list((tmp_path / "out").iterdir()) == []


def test_it_takes_the_slowest_rank_of_each_iteration() -> None:
    first = [(0, 10), (20, 60)]
    second = [(5, 30), (40, 50)]
    assert slowest_units([first, second]) == [(5, 30), (20, 60)]


def test_it_gives_each_rank_its_files_and_device() -> None:
    lead, other = (Ranks(rank=rank, count=2) for rank in range(2))
    assert lead.suffix("trace.json.gz") == "trace.json.gz"
    assert other.suffix("trace.json.gz") == "trace-rank1.json.gz"
    assert other.device("cpu") == "cpu"
    assert other.device("cuda") == "cuda:0"


def test_it_gives_each_rank_prompts_of_its_own() -> None:
    spec = small_spec("training")
    second = build(plan_model(spec), spec, cpu(), rank=1)
    first = small_bench("training")
    assert not second.inputs["input_ids"].equal(first.inputs["input_ids"])
    assert next(second.model.parameters()).equal(next(first.model.parameters()))


@pytest.mark.parametrize(
    "fields",
    [
        {"ranks": 2},
        {"parallel": "data"},
        {"ranks": 2, "parallel": "data", "scenario": "decode"},
        {"ranks": 2, "parallel": "tensor"},
        {"ranks": 2, "parallel": "pipeline", "scenario": "decode"},
        {"ranks": 2, "parallel": "data", "compile": "default"},
        {"ranks": 2, "parallel": "fsdp", "warmup_max": 9},
    ],
)
def test_it_refuses_ranks_that_cannot_work(fields: dict[str, object]) -> None:
    raw = {"model": "llama-tiny", "scenario": "training"} | fields
    with pytest.raises(SpecError, match=r"spec\.(ranks|parallel|warmup_max)"):
        check(msgspec.convert(raw, RunSpec))
