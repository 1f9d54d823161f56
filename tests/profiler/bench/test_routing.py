from __future__ import annotations

from pathlib import Path

import pytest
import torch

from profiler.bench import harness
from profiler.bench.output import Reporter
from profiler.bench.routing import TABLE_TOKENS, assignments, counted, expert_modules
from profiler.errors import SpecError, UnsupportedError
from profiler.spec import check_model
from profiler.types import RoutingReport
from tests.profiler.bench.scene import small_bench, small_spec


def routed(out: Path, **fields: object) -> RoutingReport:
    spec = small_spec("prefill", **({"model": "qwen3-moe-tiny", "profiled_steps": 0} | fields))
    report = harness.run(spec, out, reporter=Reporter(None)).routing
    assert report is not None
    return report


def test_it_counts_every_token_of_every_layer(tmp_path: Path) -> None:
    report = routed(tmp_path)
    assert list(report.tokens_per_expert) == [
        "model.layers.0.mlp.experts",
        "model.layers.1.mlp.experts",
    ]
    prefill_and_step = 2 * (16 + 1) * 2
    assert {sum(counts) for counts in report.tokens_per_expert.values()} == {prefill_and_step}
    assert report.mode == "model"


def test_it_deals_tokens_evenly(tmp_path: Path) -> None:
    report = routed(tmp_path, routing="uniform", prompt_tokens=64)
    assert report.hit_share == 1
    assert report.max_over_mean == pytest.approx(1, abs=0.1)


def test_it_draws_tokens_by_a_skewed_law(tmp_path: Path) -> None:
    report = routed(tmp_path, routing="skewed", prompt_tokens=128)
    assert report.max_over_mean > 1.5


@pytest.mark.parametrize("routing", ["uniform", "skewed"])
@pytest.mark.parametrize("model", ["deepseek-v3-small", "gpt-oss-small", "qwen3-next-small"])
def test_it_routes_every_architecture(tmp_path: Path, model: str, routing: str) -> None:
    report = routed(tmp_path, model=model, routing=routing, layers=4, iterations=1, warmup=0)
    assert report.mode == routing
    assert report.hit_share > 0.5


def test_it_never_gives_a_token_the_same_expert_twice() -> None:
    table = assignments("skewed", experts=8, chosen=3, seed=1)
    assert table.shape == (TABLE_TOKENS, 3)
    ordered = table.sort(dim=1).values
    assert bool((ordered.diff(dim=1) > 0).all())
    assert table.equal(assignments("skewed", experts=8, chosen=3, seed=1))


def test_it_leaves_the_model_as_it_was_after_counting() -> None:
    bench = small_bench("prefill", model="qwen3-moe-tiny")
    with counted(bench.model, "model", 8), torch.no_grad():
        bench.model(**bench.inputs)
    assert not [m for m in expert_modules(bench.model).values() if "forward" in vars(m)]


def test_it_refuses_to_route_a_dense_model() -> None:
    with pytest.raises(SpecError, match=r"routing is 'uniform'"):
        check_model(small_spec("prefill", routing="uniform"))


def test_it_runs_the_attention_that_was_asked_for() -> None:
    bench = small_bench("prefill", attention="eager")
    assert getattr(bench.model.config, "_attn_implementation", None) == "eager"


def test_it_names_an_attention_that_cannot_run() -> None:
    with pytest.raises(UnsupportedError, match="cannot be built"):
        small_bench("prefill", attention="flash_attention_2")
