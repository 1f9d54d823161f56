from __future__ import annotations

from time import perf_counter_ns
from typing import Any

import pytest
import torch

from profiler.bench.scenarios.engine import Engine
from profiler.bench.scenarios.sampling import Sampler, nucleus
from tests.profiler.bench.scene import small_bench, small_spec

DRAWN: dict[str, Any] = {"sampling": "multinomial", "temperature": 5.0}
CPU = torch.device("cpu")


@torch.inference_mode()
def generation(engine: Engine, steps: int = 8) -> list[list[int]]:
    """The tokens of every sequence at every step."""
    return [engine.prefill(), *(engine.step() for _ in range(steps))]


def tokens(**fields: object) -> list[list[int]]:
    return generation(Engine(small_bench("decode", perf_counter_ns, **fields)))


def test_it_draws_the_same_tokens_for_the_same_seed() -> None:
    first, again = tokens(**DRAWN), tokens(**DRAWN)
    assert first == again
    assert first != tokens()


def test_it_draws_other_tokens_for_another_seed() -> None:
    uniform = torch.zeros(2, 1, 512)
    drawn = []
    for seed in (1, 2):
        sampler = Sampler(small_spec("decode", seed=seed, **DRAWN), CPU)
        sampler.restart()
        drawn.append([sampler.next(uniform).tolist() for _ in range(4)])
    assert drawn[0] != drawn[1]


def test_it_draws_every_generation_of_a_run_alike() -> None:
    engine = Engine(small_bench("decode", perf_counter_ns, **DRAWN))
    assert generation(engine) == generation(engine)


def test_it_takes_the_likeliest_token_unless_told_otherwise() -> None:
    logits = torch.tensor([[[0.0, 3.0, 1.0]], [[2.0, 0.0, 1.0]]])
    assert Sampler(small_spec("decode"), CPU).next(logits).tolist() == [[1], [0]]


def test_it_draws_in_proportion_to_the_likelihood() -> None:
    sampler = Sampler(small_spec("decode", sampling="multinomial", temperature=2.0), CPU)
    sampler.restart()
    logits = torch.tensor([0.2, 0.8]).log().mul(2).expand(20_000, 1, 2)
    assert float(sampler.next(logits).float().mean()) == pytest.approx(0.8, abs=0.02)


def test_it_keeps_the_fewest_tokens_that_reach_top_p() -> None:
    shares = torch.tensor([[0.1, 0.5, 0.3, 0.1], [0.97, 0.01, 0.01, 0.01]])
    kept = nucleus(shares, 0.75) > 0
    assert kept.tolist() == [[False, True, True, False], [True, False, False, False]]


def test_it_never_draws_beyond_top_p() -> None:
    sampler = Sampler(small_spec("decode", sampling="multinomial", top_p=0.5), CPU)
    sampler.restart()
    logits = torch.tensor([0.6, 0.3, 0.1]).log().expand(1_000, 1, 3)
    assert int(sampler.next(logits).max()) == 0
