from __future__ import annotations

import dataclasses

import pytest

from profiler.bench.configs import configure, plan_model
from profiler.bench.fit import lower_bound_bytes
from profiler.catalog import BUILTIN
from profiler.errors import SpecError
from tests.profiler.bench.scene import small_spec


@pytest.mark.parametrize("name", BUILTIN)
def test_it_plans_every_built_in_model(name: str) -> None:
    plan = plan_model(small_spec(model=name))
    assert plan.architecture == BUILTIN[name].architecture
    assert plan.auto_class.startswith("AutoModelFor")


def test_it_drops_keys_that_could_load_foreign_code() -> None:
    raw: dict[str, object] = {
        "model_type": "llama",
        "auto_map": {"AutoModelForCausalLM": "evil.Evil"},
        "attn_implementation": "evil/kernel",
        "hidden_size": 32,
    }
    config = configure(raw)
    assert config.hidden_size == 32
    assert not hasattr(config, "auto_map")
    assert config._attn_implementation != "evil/kernel"


@pytest.mark.parametrize("raw", [{}, {"model_type": 7}, {"model_type": "no_such_model"}])
def test_it_refuses_a_configuration_it_cannot_read(raw: dict[str, object]) -> None:
    with pytest.raises(SpecError, match="model_type"):
        configure(raw)


def test_it_bounds_training_by_weights_gradients_moments_and_logits() -> None:
    spec = small_spec("training")
    weights = 4 * 139_584
    assert lower_bound_bytes(plan_model(spec), spec) == 4 * weights + 2 * 16 * 512 * 4
    prefill = dataclasses.replace(spec, scenario="prefill")
    assert lower_bound_bytes(plan_model(prefill), prefill) == weights + 2 * 16 * 64 * 4
