"""Models split over two real gloo ranks against the whole ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import torch

from profiler.bench.configs import plan_model
from profiler.bench.parallel import check_parallel
from profiler.errors import SpecError
from profiler.types import Result, Scenario
from tests.profiler.bench.scene import by_name, small_spec
from tests.profiler.bench.split_models import TIED, Compared

TENSOR = ["llama-tiny", "qwen3-moe-tiny", "deepseek-v3-small", "gpt-oss-small"]
PIPELINE = ["llama-tiny", "qwen3-moe-tiny", "qwen3-next-small"]


def two_ranks(*arguments: str) -> bytes:
    """What a module prints when torchrun starts it twice."""
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m")
    command = [sys.executable, *launcher, *arguments]
    done = subprocess.run(command, capture_output=True, timeout=240)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def compared(parallel: str, models: list[str]) -> list[Compared]:
    printed = two_ranks("tests.profiler.bench.split_models", parallel, *models)
    rows = [msgspec.json.decode(line, type=Compared) for line in printed.splitlines()]
    assert len(rows) == 2 * len(models)
    return rows


def test_it_computes_the_same_in_tensor_ranks() -> None:
    rows = compared("tensor", [*TENSOR, TIED, "qwen2.5-vl-small"])
    assert max(row.difference for row in rows) < 1e-5
    assert {round(row.share, 1) for row in rows if row.model == "llama-tiny"} == {0.5}
    assert max(row.share for row in rows) < 0.8


def test_it_computes_the_same_in_pipeline_ranks() -> None:
    rows = compared("pipeline", [*PIPELINE, TIED])
    assert max(row.difference for row in rows) < 1e-6
    assert max(row.share for row in rows if row.model != TIED) < 0.6


@pytest.mark.parametrize(
    ("scenario", "parallel"), [("prefill", "tensor"), ("decode", "tensor"), ("prefill", "pipeline")]
)
def test_it_measures_one_model_in_two_ranks(
    tmp_path: Path, scenario: Scenario, parallel: str
) -> None:
    spec = small_spec(scenario, ranks=2, parallel=parallel, peak_flops=1e12, peak_bandwidth=1e12)
    (tmp_path / "spec.json").write_bytes(msgspec.json.encode(spec))
    out = tmp_path / "out"
    two_ranks("profiler", "run", str(tmp_path / "spec.json"), "--out", str(out))
    result = msgspec.json.decode((out / "result.json").read_bytes(), type=Result)
    metrics = by_name(result)
    assert len(result.rank_step_ns) == metrics["peak_memory"].n == 2
    assert metrics["communication_time"].n == 2
    assert {path.name for path in out.glob("trace*")} == {"trace.json.gz", "trace-rank1.json.gz"}
    decode = scenario == "decode"
    rate, share = ("read_rate", "mbu") if decode else ("flop_rate", "mfu")
    produced, takes = ("decode_rate_user", "tpot") if decode else ("prefill_rate", "ttft")
    of_unit = 1 if decode else 2 * 16
    assert metrics[share].value == pytest.approx(metrics[rate].value / 2e12)
    tokens = metrics[produced].value * metrics[takes].value * 1e-9
    assert tokens == pytest.approx(of_unit)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"ranks": 4, "parallel": "tensor"}, "llama-tiny has num_key_value_heads 2"),
        ({"ranks": 3, "parallel": "tensor"}, "llama-tiny has num_attention_heads 4"),
        (
            {"model": "qwen3-next-small", "ranks": 2, "parallel": "tensor"},
            "num_attention_heads 5, which 2 ranks cannot share evenly",
        ),
        ({"ranks": 3, "parallel": "pipeline"}, "llama-tiny has 2 layers to hand out"),
        (
            {"model": "qwen2.5-vl-small", "ranks": 2, "parallel": "pipeline"},
            "qwen2.5-vl-small has no pipeline plan",
        ),
        (
            {
                "model": "gpt2",
                "config": {"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 2},
                "ranks": 2,
                "parallel": "tensor",
            },
            "gpt2 has no tensor-parallel plan",
        ),
    ],
)
def test_it_refuses_models_that_cannot_be_split(fields: dict[str, object], said: str) -> None:
    spec = small_spec(**fields)  # type: ignore[arg-type]
    plan = plan_model(spec)
    before = torch.random.get_rng_state()
    with pytest.raises(SpecError) as caught:
        check_parallel(plan, spec)
    assert said in caught.value.line()
    assert torch.random.get_rng_state().equal(before)
