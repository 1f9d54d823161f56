from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import torch
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

from profiler.bench import complete, depth
from profiler.bench.configs import plan_model
from profiler.bench.output import Reporter
from profiler.bench.summary import summarise
from profiler.catalog import BUILTIN
from profiler.errors import DeviceMemoryError, SpecError
from profiler.types import Extrapolated, Extrapolation, Metric, Result, RunSpec, Scenario
from tests.profiler.bench.scene import small_spec

QUIET = Reporter(None)
LOOK_NS, LAYER_NS = 1_000_000, 7_000_000


class LayerClock:
    """A clock that every look moves a little and every forward call of a layer moves a lot."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        self.now_ns += LOOK_NS
        return self.now_ns

    def layer_ran(self, module: torch.nn.Module, inputs: object, output: object) -> None:
        if isinstance(module, LlamaDecoderLayer):
            self.now_ns += LAYER_NS


@pytest.fixture
def clock() -> Iterator[LayerClock]:
    clock = LayerClock()
    hook = torch.nn.modules.module.register_module_forward_hook(clock.layer_ran)
    yield clock
    hook.remove()


def cut_spec(layers: int, scenario: Scenario = "prefill", full: int = 8) -> RunSpec:
    config = BUILTIN["llama-tiny"].read_config() | {"num_hidden_layers": full}
    fields = {"model": "deep", "config": config, "layers": layers, "profiled_steps": 0}
    return small_spec(scenario, **fields)


def extrapolated(spec: RunSpec, out: Path, clock: LayerClock) -> Extrapolation:
    found = complete.run(spec, out, reporter=QUIET, clock=clock).extrapolation
    assert found is not None
    return found


def kinds_of(model: str, **changes: object) -> tuple[str, ...]:
    config = BUILTIN[model].read_config() | changes
    return depth.layer_kinds(plan_model(RunSpec(model="own", scenario="prefill", config=config)))


def own_spec(model: str, layers: int, **changes: object) -> RunSpec:
    config = BUILTIN[model].read_config() | changes
    return RunSpec(model="own", scenario="prefill", config=config, layers=layers)


def metric(value: float, *, iqr: float | None = 0.0, n: int = 5) -> Metric:
    return replace(summarise("ttft", [value] * n, phase="timed", method="m"), iqr=iqr)


def line(deep: Metric, flat: Metric, depths: tuple[int, int, int] = (2, 4, 10)) -> object:
    found, refused = depth.extrapolate({"ttft": deep}, {"ttft": flat}, depths=depths)
    return refused["ttft"] if refused else found[0]


def test_it_finds_the_time_of_the_whole_model(tmp_path: Path, clock: LayerClock) -> None:
    found = extrapolated(cut_spec(4), tmp_path, clock)
    (ttft,) = found.metrics
    assert (found.layers, found.shallower, found.full_layers) == (4, 2, 8)
    assert ttft.per_layer == LAYER_NS
    assert ttft.value == ttft.low == ttft.high == LOOK_NS + 8 * LAYER_NS
    whole = replace(cut_spec(4), layers=None)
    measured = complete.run(whole, tmp_path / "whole", reporter=QUIET, clock=clock)
    assert measured.extrapolation is None
    assert next(m.value for m in measured.metrics if m.name == "ttft") == ttft.value


def test_it_extrapolates_first_token_and_time_per_token(tmp_path: Path, clock: LayerClock) -> None:
    found = {m.name: m for m in extrapolated(cut_spec(4, "decode"), tmp_path, clock).metrics}
    assert found.keys() == {"ttft", "tpot"}
    assert found["tpot"].value == LOOK_NS + 8 * LAYER_NS


def test_it_refuses_the_part_that_does_not_grow(tmp_path: Path, clock: LayerClock) -> None:
    found = extrapolated(cut_spec(4, "training"), tmp_path, clock)
    assert {m.name for m in found.metrics} == {"step_time", "forward_time"}
    said = "4 layers did not take longer than 2 beyond noise"
    assert found.refused == {"backward_time": said, "optimizer_time": said}


def test_it_is_stored_with_the_result(tmp_path: Path, clock: LayerClock) -> None:
    found = extrapolated(cut_spec(4), tmp_path, clock)
    stored = msgspec.json.decode((tmp_path / "result.json").read_bytes(), type=Result)
    assert stored.extrapolation == found
    assert stored.model.layers == 4
    assert sorted(file.name for file in tmp_path.iterdir()) == ["env.json", "result.json"]
    assert "each of the 4 missing layers (4 LlamaDecoderLayer)" in found.assumption
    assert "layers 3 to 4 took on average (2 LlamaDecoderLayer)" in found.assumption


def test_it_says_that_one_layer_gives_no_slope(tmp_path: Path, clock: LayerClock) -> None:
    found = extrapolated(cut_spec(1), tmp_path, clock)
    assert found.metrics == ()
    assert found.refused == {"*": "one layer gives no slope"}
    assert found.kinds == {"LlamaDecoderLayer": 1}


def test_it_keeps_the_measurement_when_the_second_depth_fails(
    tmp_path: Path, clock: LayerClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> Result:
        raise DeviceMemoryError("out of memory on cpu", "use a smaller batch")

    monkeypatch.setattr(complete, "_measured_at", full)
    found = extrapolated(cut_spec(4), tmp_path, clock)
    assert found.refused == {"*": "out of memory on cpu"}
    assert found.kinds == {"LlamaDecoderLayer": 4}
    assert (tmp_path / "result.json").exists()


def test_it_extrapolates_nothing_when_nothing_was_cut(tmp_path: Path, clock: LayerClock) -> None:
    result = complete.run(cut_spec(8), tmp_path, reporter=QUIET, clock=clock)
    assert result.extrapolation is None


def test_it_moves_the_figure_by_the_noise_of_the_slope() -> None:
    found = line(metric(140.0, iqr=3.0), metric(100.0, iqr=4.0))
    error = depth.MEDIAN_ERROR * 5.0 / 5**0.5 / 2
    assert isinstance(found, Extrapolated)
    assert found.value == 140 + 6 * 20
    assert found.high - found.value == pytest.approx(6 * 2 * error)
    assert found.value - found.low == pytest.approx(6 * 2 * error)


@pytest.mark.parametrize(
    ("deep", "flat", "said"),
    [
        (metric(100.0), metric(100.0), "did not take longer"),
        (metric(90.0), metric(100.0), "did not take longer"),
        (metric(101.0, iqr=10.0), metric(100.0, iqr=10.0), "beyond noise"),
        (metric(140.0, n=2), metric(100.0), "fewer than 3 samples"),
        (metric(140.0), metric(100.0, iqr=None, n=5), "tell no noise"),
    ],
)
def test_it_gives_no_number_without_a_slope(deep: Metric, flat: Metric, said: str) -> None:
    assert said in str(line(deep, flat))


def test_it_tells_dense_layers_from_experts() -> None:
    kinds = kinds_of("deepseek-v3-small")
    dense, sparse = "DeepseekV3DecoderLayer", "DeepseekV3DecoderLayer with experts"
    assert kinds == (dense, sparse, sparse, sparse, sparse)


def test_it_leaves_the_first_dense_layers_out_of_the_slope() -> None:
    kinds = kinds_of("deepseek-v3-small", first_k_dense_replace=2)
    assert depth.shallower(own_spec("deepseek-v3-small", 4, first_k_dense_replace=2), kinds) == 2
    with pytest.raises(
        SpecError, match=r"holds 2 Deep\w+Layer, missing are 3 Deep\w+ with experts"
    ):
        depth.shallower(own_spec("deepseek-v3-small", 2, first_k_dense_replace=2), kinds)


def test_it_keeps_the_pattern_of_sliding_and_full_attention() -> None:
    kinds = kinds_of("gpt-oss-small")
    assert set(kinds) == {"sliding_attention with experts", "full_attention with experts"}
    assert depth.shallower(own_spec("gpt-oss-small", 4), kinds) == 2
    with pytest.raises(SpecError, match="same proportions"):
        depth.shallower(own_spec("gpt-oss-small", 2), kinds)


def test_it_cuts_a_hybrid_by_whole_patterns() -> None:
    changes = {"num_hidden_layers": 16, "layer_types": None}
    kinds = kinds_of("qwen3-next-small", **changes)
    assert kinds[:4] == ("linear_attention with experts",) * 3 + ("full_attention with experts",)
    assert depth.shallower(own_spec("qwen3-next-small", 8, **changes), kinds) == 4
    with pytest.raises(SpecError, match="the cut holds 5 linear_attention with experts, 1 full"):
        depth.shallower(own_spec("qwen3-next-small", 6, **changes), kinds)


def test_it_finds_the_text_layers_beside_a_vision_tower() -> None:
    assert len(kinds_of("qwen2.5-vl-small")) == 6
