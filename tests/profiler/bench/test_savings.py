from __future__ import annotations

import gzip
import json
from collections import Counter
from copy import deepcopy
from pathlib import Path

import pytest
import torch

from profiler.bench import harness
from profiler.bench.configs import plan_model
from profiler.bench.fit import lower_bound_bytes
from profiler.bench.output import Reporter
from profiler.bench.savings import HostAdamW, check_savings, optimizer_of
from profiler.bench.scenarios.training import Training
from profiler.errors import SpecError
from tests.profiler.bench.scene import small_bench, small_spec

PLAIN = """
import torch
import transformers

class Plain(torch.nn.Linear):
    config = transformers.LlamaConfig(vocab_size=8, hidden_size=32)

def make():
    return Plain(2, 2)
"""


def spans(out: Path, **fields: object) -> Counter[str]:
    """How often each name stands in the trace of one training step."""
    spec = small_spec("training", iterations=1, profiled_steps=1, **fields)
    harness.run(spec, out, reporter=Reporter(None))
    with gzip.open(out / "trace.json.gz") as file:
        return Counter(event["name"] for event in json.load(file)["traceEvents"])


def test_it_runs_every_layer_twice_when_it_recomputes(tmp_path: Path) -> None:
    kept, again = spans(tmp_path), spans(tmp_path, recompute="full")
    layers, products_of_layer = 2, 7
    assert (kept["module: model.layers.1.mlp"], again["module: model.layers.1.mlp"]) == (1, 2)
    assert again["module: lm_head"] == kept["module: lm_head"] == 1
    assert again["aten::mm"] == kept["aten::mm"] + layers * products_of_layer


def test_it_keeps_fewer_tensors_for_backward_when_it_recomputes() -> None:
    def kept_bytes(recompute: str) -> int:
        """Bytes that the forward pass of one step keeps for backward."""
        bench = small_bench("training", recompute=recompute)
        Training(bench)
        kept: dict[int, int] = {}

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            ids = bench.inputs["input_ids"]
            bench.model(input_ids=ids, labels=ids, use_cache=False)
        return sum(kept.values())

    assert kept_bytes("full") < kept_bytes("none") / 2


def test_it_computes_the_same_gradients_when_it_recomputes() -> None:
    gradients = []
    for recompute in ("none", "full"):
        bench = small_bench("training", recompute=recompute)
        ids = bench.inputs["input_ids"]
        bench.model.train()
        bench.model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
        gradients.append([p.grad for p in bench.model.parameters()])
    for once, again in zip(*gradients, strict=True):
        torch.testing.assert_close(once, again)


def test_it_updates_on_the_host_as_adamw_does() -> None:
    own = torch.nn.Linear(4, 3)
    other = deepcopy(own)
    pairs = (
        (own, torch.optim.AdamW(own.parameters(), lr=0.1)),
        (other, HostAdamW(other.parameters(), lr=0.1)),
    )
    for model, optimizer in pairs:
        for step in range(3):
            model(torch.full((2, 4), step + 1.0)).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        assert all(p.grad is None for p in model.parameters())
    assert own.weight.equal(other.weight)
    assert own.bias.equal(other.bias)


def test_it_takes_the_optimiser_the_spec_wants() -> None:
    model = torch.nn.Linear(2, 2)
    offloaded = small_spec("training", device="cuda", offload="optimizer")
    assert isinstance(optimizer_of(model, offloaded, lr=1.0), HostAdamW)
    assert isinstance(optimizer_of(model, small_spec("training"), lr=1.0), torch.optim.AdamW)


def test_it_asks_less_of_a_device_whose_state_is_on_the_host() -> None:
    spec = small_spec("training")
    plan = plan_model(spec)
    weights = 4 * 139_584
    whole = lower_bound_bytes(plan, spec)
    offloaded = small_spec("training", device="cuda", offload="optimizer")
    assert whole - lower_bound_bytes(plan, offloaded) == 2 * weights


def test_it_refuses_to_recompute_what_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain.py").write_text(PLAIN)
    monkeypatch.chdir(tmp_path)
    spec = small_spec("training", model="plain", factory="plain.py:make", recompute="full")
    with pytest.raises(SpecError, match="recompute is 'full'") as caught:
        check_savings(plan_model(spec), spec)
    assert caught.value.hint == "plain does not support recomputation"
