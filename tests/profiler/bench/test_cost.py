from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from profiler.bench.build import build
from profiler.bench.configs import plan_model
from profiler.bench.cost import Cost, Routing
from profiler.bench.passes import steady
from profiler.bench.scenarios import REGISTRY
from profiler.bench.scenarios.decode import Decode
from profiler.types import Metric, RunSpec, Scenario
from tests.profiler.bench.scene import FakeClock, cpu, small_bench, small_spec

DENSE = Cost(
    dense=100, routed=0, head=10, element_bytes=2, routing=None, pair_width=8, windows=(None, 4)
)


def cost(spec: RunSpec) -> Cost:
    found = build(plan_model(spec), spec, cpu()).cost
    assert found is not None
    return found


def metrics(scenario: Scenario, **fields: object) -> dict[str, Metric]:
    runner = REGISTRY[scenario](small_bench(scenario, FakeClock((1_000_000,)), **fields))
    return {metric.name: metric for metric in runner.metrics([runner.run(), runner.run()])}


def test_it_counts_products_and_causal_pairs() -> None:
    pairs = 16 * 16 / 2 + (16 * 4 - 4 * 4 / 2)
    expected = 3 * (2 * (100 * 16 + 10 * 1) + 2 * 8 * pairs)
    assert DENSE.forward_flops(sequences=3, tokens=16, logits=1) == expected


def test_it_counts_a_window_longer_than_the_text_as_none() -> None:
    short = DENSE.forward_flops(sequences=1, tokens=4, logits=0)
    assert short == 2 * 100 * 4 + 2 * 8 * (2 * 4 * 4 / 2)


@pytest.mark.parametrize("model", ["llama-small", "deepseek-v3-small"])
def test_it_agrees_with_the_flop_counter_of_torch(model: str) -> None:
    spec = small_spec(model=model, prompt_tokens=32, batch=1, layers=1)
    bench = small_bench("prefill", model=model, prompt_tokens=32, batch=1, layers=1)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        bench.model(**bench.inputs, use_cache=False)
    ours = cost(spec)
    square = 2 * ours.pair_width * 32 * 32 / 2
    counted = ours.forward_flops(sequences=1, tokens=32, logits=32) + square
    assert counted == pytest.approx(counter.get_total_flops(), rel=0.01)


def test_it_expects_fewer_distinct_experts_than_all() -> None:
    routing = Routing(experts=8, chosen=2)
    assert routing.distinct(1) == pytest.approx(2)
    assert routing.distinct(4) == pytest.approx(8 * (1 - 0.75**4))
    assert routing.distinct(1000) == pytest.approx(8)


def test_it_splits_the_weights_of_a_mixture_of_experts() -> None:
    found = cost(small_spec(model="qwen3-moe-tiny"))
    assert found.routed == 2 * 8 * 3 * 64 * 32
    assert found.head == 512 * 64
    assert found.routing == Routing(experts=8, chosen=2)
    one = found.step_bytes(sequences=1, cache_bytes=0)
    assert one == pytest.approx(4 * (found.dense + found.head + found.routed / 4))


def test_it_knows_windows_and_linear_attention() -> None:
    assert cost(small_spec(model="gpt-oss-small", layers=2)).windows == (128, None)
    assert cost(small_spec(model="qwen3-next-small", layers=4)).windows == (None,)


def test_it_gives_utilisation_only_with_a_peak() -> None:
    assert "mfu" not in metrics("prefill")
    found = metrics("prefill", peak_flops=1e12)
    assert found["mfu"].value == pytest.approx(found["flop_rate"].value / 1e12)
    assert "causal attention" in found["mfu"].method


def test_it_trains_at_three_times_the_forward_flops() -> None:
    found = metrics("training", peak_flops=1e12)
    spec = small_spec("training")
    forward = cost(spec).forward_flops(sequences=2, tokens=16, logits=16)
    assert found["flop_rate"].value == pytest.approx(3 * forward / 3e-3)


def test_it_reads_weights_and_half_filled_cache_per_decode_step() -> None:
    found = metrics("decode", peak_bandwidth=1e9)
    ours = cost(small_spec("decode"))
    per_token = 2 * 2 * 2 * 16 * 4
    cache = 2 * per_token * (16 + (16 + 5 - 1)) / 2
    weights = 4 * (ours.dense + ours.head)
    assert found["read_rate"].value == pytest.approx((weights + cache) / 1e-3)
    assert found["mbu"].value == pytest.approx(found["read_rate"].value / 1e9)


def test_it_gives_no_rate_for_a_model_with_images() -> None:
    bench = small_bench("prefill", model="qwen2.5-vl-small", layers=1)
    assert bench.cost is None
    names = [metric.name for metric in REGISTRY["prefill"](bench).metrics([(0, 10)])]
    assert names == ["ttft", "prefill_rate"]


def test_it_counts_every_tensor_of_the_cache() -> None:
    runner = Decode(small_bench("decode"))
    runner.run()
    assert runner._engine.cache_bytes() == 2 * (16 + 4) * 2 * 2 * 2 * 16 * 4


@pytest.mark.parametrize(
    ("times", "expected"),
    [([100] * 4, False), ([500, 100, 101, 100, 101, 100], True), ([100, 120] * 3, False)],
)
def test_it_calls_five_like_units_steady(times: list[int], expected: bool) -> None:
    assert steady(times) is expected
