"""One verdict for every kind of evidence, good or bad."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.decide import decide, interim, pairs_needed
from profiler.analysis.ladder import Settings, extended, orders
from profiler.analysis.verdict import Pair, Verdict, improves
from profiler.metrics import METRICS

TIME, RATE, MEMORY = METRICS["tpot"], METRICS["decode_rate"], METRICS["peak_memory"]


def measured(
    ratio: float, pairs: int = 10, *, noise: float = 0.01, seed: int = 1, level: float = 7e6
) -> list[Pair]:
    """Pairs of launches whose candidate is `ratio` times the baseline, noise per launch."""
    random = np.random.default_rng(seed)
    first, second = np.exp(random.normal(0, noise, (2, pairs)))
    return [
        Pair(baseline=level * a, candidate=level * ratio * b, order=order)
        for a, b, order in zip(first, second, orders(seed, pairs), strict=True)
    ]


def broken(pairs: list[Pair], count: int, **side: float | None) -> list[Pair]:
    """The same pairs with the first `count` changed, their order unknown."""
    made = [replace(pair, order=None, **side) for pair in pairs]
    return [*made[:count], *pairs[count:]]


def test_it_calls_a_clear_change_by_the_direction_of_the_metric() -> None:
    assert decide(measured(0.95), TIME).state == "faster"
    assert decide(measured(1.05), TIME).state == "slower"
    assert decide(measured(1.05), RATE).state == "faster"
    assert decide(measured(0.95), RATE).state == "slower"


def test_it_gives_the_effect_with_an_interval_that_holds_it() -> None:
    found = decide(measured(0.95), TIME)
    assert found.effect == pytest.approx(-0.05, abs=0.01)
    assert found.low is not None
    assert found.high is not None
    assert found.low < -0.05 < found.high < 0
    assert found.improved is True
    assert found.counts.used == found.counts.attempted == 10


def test_it_says_the_verdict_in_one_sentence() -> None:
    pairs = [Pair(baseline=100.0, candidate=94.0 + at / 100) for at in range(10)]
    assert decide(pairs, TIME).sentence == (
        "Time per output token: faster, −6.0 % (−6.0 % to −5.9 %), 10 pairs."
    )
    assert decide(pairs, MEMORY).sentence.startswith("Peak memory: better, −6.0 %")
    assert decide(pairs, RATE).sentence.startswith("Decode rate: slower")


def test_it_proves_that_nothing_changed() -> None:
    found = decide(measured(1.001, noise=0.004), TIME)
    assert (found.state, found.more_pairs, found.next_rung) == ("no change", None, None)
    assert "no change within ±2 %" in found.sentence


def test_it_does_not_call_a_sure_change_below_the_margin() -> None:
    found = decide(measured(1.01, noise=0.001), TIME)
    assert found.state == "no change"
    assert found.p_value is not None
    assert found.p_value < 0.01


def test_it_asks_for_more_pairs_when_unsure() -> None:
    found = decide(measured(1.0, noise=0.05), TIME)
    assert (found.state, found.reason, found.next_rung) == ("inconclusive", "unsure", 20)
    assert found.more_pairs is not None
    assert found.more_pairs >= 10
    assert f"about {found.more_pairs} more pairs" in found.sentence


def test_it_asks_for_no_pairs_that_will_not_settle_it() -> None:
    noise = np.exp(np.linspace(-0.1, 0.1, 40))
    found = decide([Pair(baseline=1.0, candidate=1.0199 * z) for z in noise], TIME)
    assert (found.state, found.more_pairs) == ("inconclusive", None)
    assert "hardly settle it" in found.sentence


def test_it_asks_for_four_times_the_pairs_at_twice_the_noise() -> None:
    noise = np.linspace(-0.1, 0.1, 20)
    once, twice = (pairs_needed(noise * scale, Settings()) for scale in (1, 2))
    assert once is not None
    assert twice == pytest.approx(4 * once, abs=4)
    assert (pairs_needed(noise + np.log(1.3), Settings()) or once) < once / 10


def test_it_decides_on_rungs_only() -> None:
    pairs = measured(0.95, 25)
    at_ten, at_nineteen = decide(pairs[:10], TIME), decide(pairs[:19], TIME)
    assert at_nineteen.effect == at_ten.effect
    assert at_nineteen.counts.waiting == 9
    early = decide(pairs[:9], TIME)
    assert (early.state, early.reason, early.next_rung) == ("inconclusive", "measuring", 10)


def test_it_starts_without_any_pair() -> None:
    found = decide([], TIME)
    assert (found.state, found.effect) == ("inconclusive", None)
    assert found.sentence == (
        "Time per output token: inconclusive, no pair measured yet; "
        "the first look is due at 10 pairs."
    )
    assert interim([]) is None


def test_it_reports_progress_without_a_verdict() -> None:
    so_far = interim(measured(0.95, 7))
    assert so_far is not None
    assert so_far.value == pytest.approx(math.log(0.95), abs=0.02)
    assert so_far.low is not None


def test_it_goes_on_later_at_a_stricter_level() -> None:
    longer = extended(Settings(), 10)
    found = decide(measured(1.0, 50, noise=0.09), TIME, longer)
    assert found.level == pytest.approx(0.001)
    assert found.counts.used + found.counts.apart == 50


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, -math.inf])
def test_it_counts_values_that_are_no_measurement(value: float) -> None:
    found = decide(broken(measured(0.95, 20), 2, candidate=value), TIME)
    assert found.counts.unusable == 2
    assert found.state == "faster"
    assert "2 of 20 pairs lost: a value is zero, negative or not a number" in found.notes
    alone = decide(broken(measured(0.95), 10, baseline=value), TIME)
    assert (alone.state, alone.reason) == ("not comparable", "unusable")
    assert "positive, finite" in alone.sentence


def test_it_counts_failed_launches_with_their_side() -> None:
    pairs = broken(measured(0.95, 20), 3, candidate=None)
    found = decide(pairs, TIME)
    assert (found.counts.failed_candidate, found.counts.failed_baseline) == (3, 0)
    assert found.notes[-1] == "only launches that finished are compared"


@pytest.mark.parametrize(
    ("side", "reason"),
    [
        ({"candidate": None}, "no candidate"),
        ({"baseline": None}, "no baseline"),
        ({"baseline": None, "candidate": None}, "no pair"),
    ],
)
def test_it_never_judges_one_side_alone(side: dict[str, None], reason: str) -> None:
    found = decide(broken(measured(0.95), 10, **side), TIME)
    assert (found.state, found.reason, found.effect) == ("not comparable", reason, None)
    assert "10 pairs" in found.sentence


def test_it_needs_six_pairs_that_count() -> None:
    found = decide(broken(measured(0.9), 5, baseline=None), TIME)
    assert (found.state, found.reason) == ("inconclusive", "few pairs")
    assert found.low is None


def test_it_keeps_both_orders_equally_frequent() -> None:
    pairs = measured(0.95, 20)
    lost = [
        Pair(baseline=None, candidate=1.0, order=p.order) if p.order == "AB" else p for p in pairs
    ]
    found = decide([*lost[:4], *pairs[4:]], TIME)
    assert (found.counts.failed_baseline, found.counts.balanced) == (2, 2)
    assert found.counts.used + found.counts.apart == 16


def test_it_leaves_out_pairs_that_stand_apart_and_says_so() -> None:
    pairs = measured(0.95)
    slow = Pair(baseline=7e6, candidate=2e7, order=pairs[3].order)
    found = decide([*pairs[:3], slow, *pairs[4:]], TIME)
    assert (found.state, found.counts.apart) == ("faster", 1)
    assert "1 of 10 pairs left out: far apart from the rest" in found.notes


def test_a_pair_that_differs_by_less_than_matters_counts() -> None:
    # Seven pairs could not reach the level of one look at eight.
    ratios = [1.1021, *[1.1 + n / 1e4 for n in range(-3, 4)]]
    pairs = [
        Pair(baseline=1e6, candidate=1e6 * ratio, order=order)
        for ratio, order in zip(ratios, orders(5, 8), strict=True)
    ]
    found = decide(pairs, TIME, Settings(rungs=(8,)))
    assert (found.state, found.counts.used, found.counts.apart) == ("slower", 8, 0)


def test_it_gives_no_verdict_against_an_obstacle() -> None:
    found = decide(measured(0.5), TIME, obstacles=["torch 2.9 against 2.13\x1b[31m"])
    assert (found.state, found.effect, found.p_value) == ("not comparable", None, None)
    assert "torch 2.9 against 2.13\\x1b" in found.sentence


def test_it_takes_equal_values_as_no_change() -> None:
    found = decide([Pair(baseline=5.0, candidate=5.0)] * 10, MEMORY)
    assert (found.state, found.effect, found.improved) == ("no change", 0, None)
    grown = decide([Pair(baseline=100.0, candidate=107.0)] * 10, MEMORY)
    assert grown.state == "slower"
    assert grown.low == pytest.approx(0.07)


@given(st.floats(0.8, 1.25), st.integers(0, 10**6), st.floats(1e-6, 1e12))
def test_it_does_not_depend_on_the_unit(ratio: float, seed: int, level: float) -> None:
    one = decide(measured(ratio, seed=seed, noise=0.03), TIME)
    other = decide(measured(ratio, seed=seed, noise=0.03, level=level), TIME)
    assert one.state == other.state
    assert one.effect == pytest.approx(other.effect, abs=1e-9)


@given(st.floats(0.8, 1.25), st.integers(0, 10**6))
def test_it_mirrors_when_the_sides_are_swapped(ratio: float, seed: int) -> None:
    pairs = measured(ratio, seed=seed, noise=0.03)
    swapped = [Pair(baseline=p.candidate, candidate=p.baseline, order=p.order) for p in pairs]
    one, other = decide(pairs, TIME), decide(swapped, TIME)
    assert one.effect is not None
    assert other.effect is not None
    assert (1 + one.effect) * (1 + other.effect) == pytest.approx(1)
    assert one.p_value == other.p_value


@given(st.lists(st.tuples(*[st.none() | st.floats(allow_nan=True)] * 2), max_size=45))
def test_it_answers_whatever_the_samples_are(values: list[tuple[float | None, ...]]) -> None:
    found = decide([Pair(baseline=a, candidate=b) for a, b in values], TIME)
    assert isinstance(found, Verdict)
    assert found.sentence.endswith(".")
    counts = found.counts
    lost = counts.failed_baseline + counts.failed_candidate + counts.failed_both + counts.unusable
    assert counts.attempted == len(values)
    assert counts.used + lost + counts.balanced + counts.apart + counts.waiting == len(values)


def test_it_knows_directions_once() -> None:
    assert improves(-0.1, "lower") is True
    assert improves(-0.1, "higher") is False
    assert improves(0.1, "higher") is True
    assert improves(0.0, "lower") is None
    assert improves(None, "lower") is None
