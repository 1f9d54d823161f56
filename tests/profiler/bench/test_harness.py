"""Real runs of a tiny model on the CPU, from spec to published files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import msgspec
import pytest
import torch

from profiler.bench import harness
from profiler.bench.configs import Plan
from profiler.bench.output import Reporter
from profiler.errors import DeviceMemoryError, NonFiniteError, SpecError
from profiler.metrics import HEADLINE, METRICS
from profiler.spec import spec_hash
from profiler.types import SCENARIOS, Environment, Result, Scenario
from tests.profiler.bench.scene import FakeClock, by_name, small_bench, small_spec

QUIET = Reporter(None)
PHASES: dict[Scenario, set[str]] = {
    "prefill": {"phase: prefill"},
    "decode": {"phase: decode"},
    "training": {"phase: forward", "phase: backward", "phase: optimizer"},
}


def trace_events(out: Path) -> list[dict[str, object]]:
    with gzip.open(out / "trace.json.gz") as file:
        events: list[dict[str, object]] = json.load(file)["traceEvents"]
    return events


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("model", ["llama-tiny", "qwen3-moe-tiny"])
def test_it_measures_and_publishes(tmp_path: Path, scenario: Scenario, model: str) -> None:
    result = harness.run(small_spec(scenario, model=model), tmp_path, reporter=QUIET)
    stored = msgspec.json.decode((tmp_path / "result.json").read_bytes(), type=Result)
    environment = msgspec.json.decode((tmp_path / "env.json").read_bytes(), type=Environment)
    assert stored == result
    assert environment.fields["torch_threads"] == "1"
    assert stored.spec_hash == spec_hash(stored.spec)
    metrics = by_name(stored)
    assert metrics.keys() <= METRICS.keys()
    assert metrics[HEADLINE[scenario]].n == 3
    assert min(metric.value for metric in stored.metrics) > 0


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_it_marks_steps_phases_and_modules_in_the_trace(tmp_path: Path, scenario: Scenario) -> None:
    harness.run(small_spec(scenario), tmp_path, reporter=QUIET)
    names = {str(event["name"]) for event in trace_events(tmp_path)}
    assert {name for name in names if name.startswith("ProfilerStep#")} == {
        "ProfilerStep#1",
        "ProfilerStep#2",
    }
    assert {name for name in names if name.startswith("phase: ")} == PHASES[scenario]
    assert {"module: LlamaForCausalLM", "module: model.layers.1.self_attn.q_proj"} <= names


def test_it_records_shapes(tmp_path: Path) -> None:
    harness.run(small_spec(), tmp_path, reporter=QUIET)
    shapes = [
        event["args"]["Input Dims"]  # type: ignore[index]
        for event in trace_events(tmp_path)
        if event["name"] == "aten::mm"
    ]
    assert [32, 64] in [shape[0] for shape in shapes]


def test_it_writes_no_trace_for_no_profiled_steps(tmp_path: Path) -> None:
    result = harness.run(small_spec(profiled_steps=0), tmp_path, reporter=QUIET)
    assert not (tmp_path / "trace.json.gz").exists()
    assert result.profiled_ratio is None
    assert "profiled_steps is 0" in result.profiled_note


def test_it_records_no_more_decode_steps_than_the_run_generates(tmp_path: Path) -> None:
    spec = small_spec("decode", output_tokens=3, profiled_steps=9)
    result = harness.run(spec, tmp_path, reporter=QUIET)
    assert "2 of 9 steps recorded" in " ".join(result.warnings)


def test_it_stores_how_much_slower_profiled_steps_are(tmp_path: Path) -> None:
    result = harness.run(small_spec(), tmp_path, reporter=QUIET, clock=FakeClock((7,)))
    assert result.profiled_ratio == 1.0
    assert not [warning for warning in result.warnings if "profiled" in warning]


def test_it_counts_parameters_once_and_by_activity(tmp_path: Path) -> None:
    spec = small_spec(model="qwen3-moe-tiny", profiled_steps=0)
    facts = harness.run(spec, tmp_path, reporter=QUIET).model
    experts = 2 * 8 * 3 * 64 * 32
    assert facts.weight_bytes == 4 * facts.parameters
    assert facts.active_parameters == facts.parameters - experts * 6 // 8


def test_it_gives_the_same_model_for_the_same_seed() -> None:
    first, again, other = (small_bench(seed=seed) for seed in (1, 1, 2))
    weights = [next(bench.model.parameters()) for bench in (first, again, other)]
    assert weights[0].equal(weights[1])
    assert not weights[0].equal(weights[2])
    assert first.inputs["input_ids"].equal(again.inputs["input_ids"])
    assert not first.inputs["input_ids"].equal(other.inputs["input_ids"])


def test_it_refuses_an_unknown_model_before_it_writes(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="'nobody' is unknown"):
        harness.run(small_spec(model="nobody"), tmp_path / "out", reporter=QUIET)
    assert not (tmp_path / "out").exists()


def test_it_refuses_a_device_torch_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"'cuda:7' cannot be used") as caught:
        harness.run(small_spec(device="cuda:7"), tmp_path, reporter=QUIET)
    assert caught.value.hint == "devices here: cpu"
    assert list(tmp_path.iterdir()) == []


def test_it_refuses_what_cannot_fit_before_allocating(tmp_path: Path) -> None:
    spec = small_spec("training", model="llama-small", batch=4000, prompt_tokens=4096)
    with pytest.raises(DeviceMemoryError, match="needs at least 500 GiB"):
        harness.run(spec, tmp_path, reporter=QUIET)


def test_it_stops_at_numbers_that_are_not_finite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = Plan.create

    def poisoned(plan: Plan, device: torch.device) -> torch.nn.Module:
        model = create(plan, device)
        with torch.no_grad():
            next(model.parameters()).fill_(float("nan"))
        return model

    monkeypatch.setattr(Plan, "create", poisoned)
    with pytest.raises(NonFiniteError, match="1024 of 1024 values are NaN"):
        harness.run(small_spec(), tmp_path, reporter=QUIET)
    assert list(tmp_path.iterdir()) == []


def test_it_warms_up_until_units_are_alike(tmp_path: Path) -> None:
    spec = small_spec(warmup=2, warmup_max=40, profiled_steps=0)
    clock = FakeClock((1000,))
    result = harness.run(spec, tmp_path, reporter=QUIET, clock=clock)
    assert not [warning for warning in result.warnings if "warm-up" in warning]
    build, first, steady_units, timed = 2, 2 + 2, 5, 3
    assert clock.looks == build + first + 2 * (steady_units + timed + 1)


def test_it_says_when_warm_up_never_became_steady(tmp_path: Path) -> None:
    spec = small_spec(warmup=2, warmup_max=7, profiled_steps=0)
    result = harness.run(spec, tmp_path, reporter=QUIET, clock=FakeClock((1000, 1000, 1, 9)))
    said = "warm-up never became steady: the last of 7 units still varied"
    assert said in result.warnings
