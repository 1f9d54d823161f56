from __future__ import annotations

import pytest
import torch

from profiler.bench.marks import module_marks
from tests.profiler.bench.scene import small_bench


def hooks(model: torch.nn.Module) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def test_it_removes_every_hook() -> None:
    model = small_bench().model
    before = hooks(model)
    with module_marks(model):
        assert hooks(model) == before + 2 * sum(1 for _ in model.modules())
    assert hooks(model) == before


def test_it_nests_modules_as_they_call_each_other() -> None:
    bench = small_bench()
    with module_marks(bench.model), torch.profiler.profile() as profile:
        bench.model(**bench.inputs, use_cache=False)
    events = profile.events()
    assert events is not None
    parents = {e.name: e.cpu_parent.name for e in events if e.cpu_parent is not None}
    assert parents["module: model.layers.0.self_attn"] == "module: model.layers.0"
    assert parents["module: model.layers.0"] == "module: model"
    assert parents["module: model"] == "module: LlamaForCausalLM"


def test_it_closes_the_span_of_a_call_that_raises() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(3, 3))
    with module_marks(model), torch.profiler.profile() as profile:
        with pytest.raises(RuntimeError, match="shapes"):
            model(torch.ones(1, 2))
        torch.ones(1)
    events = profile.events()
    assert events is not None
    ones = next(e for e in events if e.name == "aten::ones")
    assert ones.cpu_parent is None
