"""Each formula proved with a clock whose every look is known."""

from __future__ import annotations

from itertools import islice, pairwise

import pytest

from profiler.bench.scenarios import REGISTRY
from profiler.bench.scenarios.base import Stamps
from profiler.types import Metric, Scenario
from tests.profiler.bench.scene import GAPS_NS, FakeClock, small_bench

UNITS = 4


def measured(scenario: Scenario, clock: FakeClock) -> tuple[list[Stamps], dict[str, Metric]]:
    """The stamps of a few units on a fake clock and the metrics made of them."""
    runner = REGISTRY[scenario](small_bench(scenario, clock))
    units = [runner.run() for _ in range(UNITS)]
    return units, {metric.name: metric for metric in runner.metrics(units)}


def test_it_looks_at_the_clock_twice_per_prefill() -> None:
    clock = FakeClock()
    units, metrics = measured("prefill", clock)
    assert clock.looks == 2 * UNITS
    assert metrics["ttft"].samples == tuple(end - start for start, end in units)
    assert metrics["ttft"].samples == (5e6, 11e6, 3e6, 7e6)
    assert metrics["ttft"].value == 6e6


def test_it_reports_prefill_tokens_per_second_of_the_median_prefill() -> None:
    _, metrics = measured("prefill", FakeClock())
    tokens = metrics["prefill_rate"].value * metrics["ttft"].value * 1e-9
    assert tokens == pytest.approx(2 * 16)


def test_it_stamps_start_and_every_token_of_a_generation() -> None:
    clock = FakeClock()
    units, _ = measured("decode", clock)
    assert [len(unit) for unit in units] == [1 + 5] * UNITS
    assert clock.looks == UNITS * 6


def test_it_keeps_tokens_minus_one_gaps_per_generation() -> None:
    units, metrics = measured("decode", FakeClock())
    gaps = metrics["itl"].samples
    assert metrics["itl"].n == len(gaps) == UNITS * (5 - 1)
    per_unit = [tuple(islice(gaps, i * 4, (i + 1) * 4)) for i in range(UNITS)]
    assert [sum(part) for part in per_unit] == [unit[-1] - unit[1] for unit in units]


def test_it_never_lets_a_gap_span_two_generations() -> None:
    units, metrics = measured("decode", FakeClock())
    between = {later[1] - earlier[-1] for earlier, later in pairwise(units)}
    assert not between & set(metrics["itl"].samples)


def test_it_divides_a_generation_by_its_gaps_for_the_time_per_token() -> None:
    units, metrics = measured("decode", FakeClock())
    assert metrics["tpot"].samples == tuple((unit[-1] - unit[1]) / 4 for unit in units)
    assert metrics["ttft"].samples == tuple(unit[1] - unit[0] for unit in units)
    assert metrics["decode_rate_user"].value == pytest.approx(1e9 / metrics["tpot"].value)


def test_it_excludes_the_first_token_from_the_decode_rate() -> None:
    units, metrics = measured("decode", FakeClock())
    seconds = sum(unit[-1] - unit[1] for unit in units) * 1e-9
    assert metrics["decode_rate"].value == pytest.approx(2 * 4 * UNITS / seconds)


def test_it_emits_the_batch_in_a_mean_decode_step() -> None:
    _, metrics = measured("decode", FakeClock())
    gaps = metrics["itl"].samples
    mean_step_s = sum(gaps) / len(gaps) * 1e-9
    assert metrics["decode_rate"].value * mean_step_s == pytest.approx(2)


def test_it_splits_a_training_step_without_a_rest() -> None:
    units, metrics = measured("training", FakeClock())
    parts = [metrics[f"{part}_time"].samples for part in ("forward", "backward", "optimizer")]
    assert [sum(step) for step in zip(*parts, strict=True)] == list(metrics["step_time"].samples)
    assert list(units[0]) == [3e6, 8e6, 15e6, 26e6]
    assert [part[0] for part in parts] == list(GAPS_NS[1:4])


def test_it_trains_the_tokens_of_a_step_in_a_median_step() -> None:
    _, metrics = measured("training", FakeClock())
    step_s = metrics["step_time"].value * 1e-9
    assert metrics["training_rate"].value * step_s == pytest.approx(2 * 16)
    assert metrics["sample_rate"].value * step_s == pytest.approx(2)


@pytest.mark.parametrize("scenario", REGISTRY)
def test_it_fills_the_wall_time_with_its_units(scenario: Scenario) -> None:
    clock = FakeClock()
    units, _ = measured(scenario, clock)
    between = sum(later[0] - earlier[-1] for earlier, later in pairwise(units))
    assert sum(unit[-1] - unit[0] for unit in units) + between == clock.now_ns - GAPS_NS[0]
