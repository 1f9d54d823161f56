"""Where a model may come from: built-in, a configuration, a checkpoint, a repository's code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from profiler.bench import harness
from profiler.bench.build import build
from profiler.bench.configs import plan_model
from profiler.bench.output import Reporter
from profiler.catalog import BUILTIN
from profiler.errors import CheckpointError, SpecError
from profiler.spec import check_model
from profiler.types import SCENARIOS, Result, RunSpec, Scenario
from tests.profiler.bench.scene import FakeClock, by_name, cpu, small_spec

QUIET = Reporter(None)
TINY = BUILTIN["llama-tiny"].read_config()
FACTORY = """
import transformers

def make():
    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2,
    )
    return transformers.LlamaForCausalLM(config)

def wrong():
    return 7
"""


def run(spec: RunSpec, out: Path) -> Result:
    return harness.run(spec, out, reporter=QUIET)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """The tiny Llama saved in several shards."""
    folder = tmp_path / "checkpoint"
    plan = plan_model(small_spec(seed=3))
    torch.manual_seed(3)
    plan.create(torch.device("cpu")).save_pretrained(folder, max_shard_size="200KB")  # type: ignore[operator]
    return folder


def loading(folder: Path, **fields: object) -> RunSpec:
    return small_spec("prefill", model="mine", checkpoint=str(folder), profiled_steps=0, **fields)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("model", [name for name in BUILTIN if name.endswith("-small")])
def test_it_runs_every_architecture(tmp_path: Path, model: str, scenario: Scenario) -> None:
    depth = 4 if "next" in model else 2
    spec = small_spec(
        scenario,
        model=model,
        layers=depth,
        prompt_tokens=8,
        output_tokens=3,
        iterations=1,
        warmup=0,
        profiled_steps=0,
    )
    result = run(spec, tmp_path)
    assert result.model.layers == depth
    assert (result.model.full_layers or 0) > depth
    assert by_name(result)["peak_memory"].value > 0


def test_it_puts_an_image_into_each_prompt_of_a_vision_model() -> None:
    spec = small_spec(model="qwen2.5-vl-small", prompt_tokens=20)
    built = build(plan_model(spec), spec, cpu())
    ids, kinds = built.inputs["input_ids"], built.inputs["mm_token_type_ids"]
    assert built.facts.inputs == "2 x (11 random text tokens and an image of 9 tokens)"
    assert (ids == 8188).equal(kinds == 1)
    assert int(kinds.sum()) == 2 * 9
    assert int(ids[kinds == 0].max()) < 8188
    assert built.inputs["pixel_values"].shape == (2 * 6 * 6, 3 * 2 * 14 * 14)


def test_it_refuses_a_prompt_too_short_for_an_image() -> None:
    spec = small_spec(model="qwen2.5-vl-small", prompt_tokens=1)
    with pytest.raises(SpecError, match=r"prompt_tokens is 1"):
        build(plan_model(spec), spec, cpu())


def test_it_runs_a_pasted_configuration_cut_to_its_first_layers(tmp_path: Path) -> None:
    spec = small_spec(model="pasted", config=TINY | {"auto_map": {"x": "y"}}, layers=1)
    result = run(spec, tmp_path)
    assert (result.model.architecture, result.model.layers, result.model.full_layers) == (
        "llama",
        1,
        2,
    )
    assert "auto_map" not in result.model.config


def test_it_keeps_the_first_attention_layer_of_a_hybrid_model() -> None:
    with pytest.raises(SpecError, match="layers is 3"):
        plan_model(small_spec("prefill", model="qwen3-next-small", layers=3))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"config": {"hidden_size": 4}}, "no model_type"),
        ({"config": TINY, "layers": 3}, "layers is 3"),
        ({"config": TINY, "prompt_tokens": 600}, "prompt_tokens is 600"),
        ({"config": TINY, "checkpoint": "/x"}, "config and checkpoint"),
        ({"config": TINY, "model": "llama-tiny"}, "is a built-in model"),
        ({"checkpoint": "relative"}, "is not absolute"),
        ({"factory": "../x.py:f"}, "no path/file.py:function"),
        ({"factory": "x.py:f", "layers": 1}, "does not apply to a factory"),
    ],
)
def test_it_finds_a_wrong_source_without_torch(fields: dict[str, object], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        check_model(small_spec("prefill", **({"model": "mine"} | fields)))


def test_it_loads_the_weights_of_a_checkpoint(tmp_path: Path, checkpoint: Path) -> None:
    spec = loading(checkpoint)
    torch.manual_seed(3)
    saved = plan_model(small_spec()).create(torch.device("cpu")).state_dict()
    loaded = plan_model(spec).create(torch.device("cpu")).state_dict()
    assert saved.keys() == loaded.keys()
    assert all(loaded[name].equal(saved[name]) for name in saved)
    assert run(spec, tmp_path / "out").model.parameters == 139_584


def test_it_times_the_weights_apart_from_the_empty_model(tmp_path: Path, checkpoint: Path) -> None:
    clock = FakeClock((2_000, 3_000, 5_000))
    result = harness.run(loading(checkpoint), tmp_path / "out", reporter=QUIET, clock=clock)
    metrics = by_name(result)
    assert (metrics["build_time"].value, metrics["load_time"].value) == (3_000, 5_000)
    shards = len(list(checkpoint.glob("*.safetensors")))
    assert f"{shards} safetensors shards of {4 * 139_584} bytes" in metrics["load_time"].method
    assert metrics["load_rate"].value == pytest.approx(4 * 139_584 / 5e-6)


def test_it_loads_nothing_for_seeded_weights(tmp_path: Path) -> None:
    metrics = by_name(run(small_spec(profiled_steps=0), tmp_path))
    assert "build_time" in metrics
    assert not metrics.keys() & {"load_time", "load_rate"}


def test_it_names_a_missing_shard(checkpoint: Path) -> None:
    shard = sorted(checkpoint.glob("*.safetensors"))[1]
    shard.unlink()
    with pytest.raises(CheckpointError, match=f"{shard.name} cannot be read"):
        plan_model(loading(checkpoint))


def test_it_names_a_truncated_shard(checkpoint: Path) -> None:
    shard = sorted(checkpoint.glob("*.safetensors"))[0]
    shard.write_bytes(shard.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match=f"{shard.name} is truncated"):
        plan_model(loading(checkpoint))


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 64, b"\x02" + b"\0" * 7 + b"[]"])
def test_it_names_a_shard_that_is_none(checkpoint: Path, content: bytes) -> None:
    shard = sorted(checkpoint.glob("*.safetensors"))[0]
    shard.write_bytes(content)
    with pytest.raises(CheckpointError, match=shard.name):
        plan_model(loading(checkpoint))


def test_it_names_a_tensor_its_shard_lacks(checkpoint: Path) -> None:
    index = checkpoint / "model.safetensors.index.json"
    listed = json.loads(index.read_bytes())
    first = sorted(set(listed["weight_map"].values()))[0]
    listed["weight_map"]["model.extra.weight"] = first
    index.write_text(json.dumps(listed))
    with pytest.raises(CheckpointError, match=r"lacks tensor model\.extra\.weight"):
        plan_model(loading(checkpoint))


def test_it_refuses_an_index_that_points_elsewhere(checkpoint: Path) -> None:
    index = checkpoint / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "../../etc/passwd"}}))
    with pytest.raises(CheckpointError, match="names a shard outside it"):
        plan_model(loading(checkpoint))


def test_it_names_weights_that_do_not_fit(tmp_path: Path, checkpoint: Path) -> None:
    config = checkpoint / "config.json"
    config.write_text(json.dumps(json.loads(config.read_bytes()) | {"num_hidden_layers": 3}))
    with pytest.raises(CheckpointError, match=r"missing, first model\.layers\.2\."):
        run(loading(checkpoint), tmp_path / "out")


def test_it_never_loads_a_pickle(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(TINY))
    torch.save({}, tmp_path / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match=r"neither model\.safetensors\.index\.json nor"):
        plan_model(loading(tmp_path))


def test_it_runs_a_model_of_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models.py").write_text(FACTORY)
    monkeypatch.chdir(tmp_path)
    result = run(small_spec("training", model="ours", factory="models.py:make"), tmp_path / "out")
    assert (result.model.architecture, result.model.layers) == ("LlamaForCausalLM", 1)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("none.py:make", "no file of this folder"),
        ("models.py:nothing", "has no function nothing"),
        ("models.py:wrong", "returned int"),
    ],
)
def test_it_names_a_factory_that_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reference: str, said: str
) -> None:
    (tmp_path / "models.py").write_text(FACTORY)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError, match=said):
        plan_model(small_spec(model="ours", factory=reference))
