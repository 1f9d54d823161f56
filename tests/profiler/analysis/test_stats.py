"""Estimates and tests, each held to a definition that is written down here once more."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.stats import (
    apart,
    discovery_adjusted,
    paired_t_p,
    shift,
    signed_rank_p,
    spread,
    student_p,
)

Whole = st.lists(st.integers(-9, 9), min_size=1, max_size=9)


def counted_p(values: list[int]) -> float:
    """Two-sided signed-rank p by trying every sign, mid-ranks for ties, zeros left out."""
    told = [v for v in values if v]
    sizes = sorted(abs(v) for v in told)
    ranks = [
        (sizes.index(abs(v)) + 1 + sizes.index(abs(v)) + sizes.count(abs(v))) / 2 for v in told
    ]
    plus = sum(rank for rank, v in zip(ranks, told, strict=True) if v > 0)
    smaller = min(plus, sum(ranks) - plus)
    sums = [
        sum(r for r, up in zip(ranks, signs, strict=True) if up)
        for signs in product((0, 1), repeat=len(told))
    ]
    return min(1.0, 2 * sum(total <= smaller for total in sums) / len(sums))


@given(Whole)
def test_it_counts_the_signed_rank_distribution_exactly(values: list[int]) -> None:
    assert signed_rank_p(np.array(values, float)) == pytest.approx(counted_p(values))


@pytest.mark.parametrize(("pairs", "smallest"), [(5, 0.0625), (6, 0.03125), (10, 2 / 1024)])
def test_it_knows_the_smallest_p_of_few_pairs(pairs: int, smallest: float) -> None:
    assert signed_rank_p(np.arange(1.0, pairs + 1)) == pytest.approx(smallest)


def test_it_agrees_with_the_normal_approximation_where_counting_ends() -> None:
    values = np.random.default_rng(1).normal(0.08, 1, 401)
    assert signed_rank_p(values) == pytest.approx(signed_rank_p(values[:400]), rel=0.2)


@given(Whole)
def test_it_estimates_the_median_of_all_pairwise_means(values: list[int]) -> None:
    means = [(a + b) / 2 for at, a in enumerate(values) for b in values[at:]]
    assert shift(np.array(values, float)).value == pytest.approx(float(np.median(means)))


def test_it_bounds_the_shift_as_the_tables_say() -> None:
    found = shift(np.arange(10.0))
    # Ten pairs: the 9th smallest and 9th largest of 55 means bound with 95.1 %.
    means = sorted((a + b) / 2 for a in range(10) for b in range(a, 10))
    assert (found.low, found.high) == (means[8], means[-9])


def test_it_has_no_interval_where_none_is_possible() -> None:
    assert shift(np.arange(5.0)).low is None
    assert shift(np.arange(6.0)).low is not None


def test_it_bounds_large_samples_too() -> None:
    values = np.random.default_rng(2).normal(1, 1, 500)
    found = shift(values)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high
    assert found.high - found.low == pytest.approx(2 * 1.96 / np.sqrt(500 * 0.955), rel=0.15)


@pytest.mark.parametrize(
    ("t", "freedom", "p"),
    [(2.262157, 9, 0.05), (12.7062, 1, 0.05), (3.249836, 9, 0.01), (0, 4, 1), (1.96, 10**6, 0.05)],
)
def test_it_knows_students_distribution(t: float, freedom: int, p: float) -> None:
    assert student_p(t, freedom) == pytest.approx(p, rel=1e-3)
    assert student_p(-t, freedom) == pytest.approx(student_p(t, freedom))


def test_it_tests_a_mean_against_zero() -> None:
    assert paired_t_p(np.array([1.0])) is None
    assert paired_t_p(np.array([0.3, 0.3, 0.3])) == 0
    assert paired_t_p(np.zeros(3)) == 1
    assert paired_t_p(np.array([1.0, 2.0, 3.0])) == pytest.approx(student_p(2 * 3**0.5, 2))


def test_it_keeps_false_discoveries_down() -> None:
    assert discovery_adjusted([0.04, None, 0.01, 0.03]) == pytest.approx([0.04, None, 0.03, 0.04])
    assert discovery_adjusted([None]) == [None]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_it_never_makes_a_p_value_smaller(values: list[float]) -> None:
    adjusted = discovery_adjusted(values)
    assert all(b is not None and a - 1e-12 <= b <= 1 for a, b in zip(values, adjusted, strict=True))


def test_it_sees_what_stands_apart_unless_it_is_many() -> None:
    calm = np.linspace(-0.01, 0.01, 9)
    assert apart(np.append(calm, 0.5)).tolist() == [False] * 9 + [True]
    assert not apart(np.concatenate([calm, [0.5] * 4])).any()
    assert not apart(np.array([0.0, 0.0, 0.0, 0.5])).any()


def test_nothing_near_stands_apart_however_alike_the_rest_are() -> None:
    alike = np.append(np.linspace(-1e-4, 1e-4, 9), 0.002)
    assert apart(alike).tolist() == [False] * 9 + [True]
    assert not apart(alike, near=0.005).any()
    assert apart(np.append(alike[:9], 0.02), near=0.005).tolist() == [False] * 9 + [True]


def test_it_takes_the_larger_of_two_spreads() -> None:
    assert spread(np.array([1.0])) == 0
    values = np.random.default_rng(3).normal(0, 2, 4000)
    assert spread(values) == pytest.approx(2, rel=0.1)


def test_it_finds_few_changes_among_many_operators() -> None:
    noise = np.random.default_rng(6).normal(0, 0.03, (200, 10))
    noise[:5] += np.log(1.1)
    adjusted = discovery_adjusted([paired_t_p(row) for row in noise])
    found = [at for at, p in enumerate(adjusted) if p is not None and p <= 0.05]
    assert set(range(5)) <= set(found)
    assert len(found) <= 7
