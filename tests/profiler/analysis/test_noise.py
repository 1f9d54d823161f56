from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.noise import noise_floor

MEDIANS = st.lists(
    st.tuples(*[st.floats(min_value=1e-3, max_value=1e12)] * 2), min_size=1, max_size=30
)


def test_it_takes_the_median_over_pairs_of_neighbours() -> None:
    found = noise_floor([100, 101, 200, 190, 400, 412])
    assert found.differences == pytest.approx((0.01, 0.05, 0.03))
    assert found.typical == pytest.approx(0.03)
    assert found.worst == pytest.approx(0.05)


def test_it_averages_the_middle_two_of_an_even_number_of_pairs() -> None:
    assert noise_floor([100, 101, 100, 103]).typical == pytest.approx(0.02)


def test_it_does_not_take_drift_for_noise() -> None:
    assert noise_floor([100, 100, 150, 150, 225, 225]).worst == 0


def test_it_says_when_pairs_are_few() -> None:
    assert noise_floor([1, 1] * 5).few
    assert not noise_floor([1, 1] * 6).few


@pytest.mark.parametrize(
    ("second", "change", "regression"),
    [(100.5, 0.02, 0.03), (102.5, 0.025, 0.05), (104, 0.04, 0.08)],
)
def test_it_never_trusts_less_than_the_house_thresholds(
    second: float, change: float, regression: float
) -> None:
    found = noise_floor([100, second])
    assert found.change_threshold == pytest.approx(change)
    assert found.regression_threshold == pytest.approx(regression)


@given(MEDIANS, st.floats(min_value=0.1, max_value=10))
def test_it_does_not_depend_on_the_unit(pairs: list[tuple[float, float]], factor: float) -> None:
    values = [value for pair in pairs for value in pair]
    scaled = noise_floor([value * factor for value in values])
    assert scaled.typical == pytest.approx(noise_floor(values).typical, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("medians", [[], [1.0], [1.0, 2.0, 3.0], [0.0, 1.0], [1.0, math.nan]])
def test_it_refuses_what_makes_no_pairs(medians: list[float]) -> None:
    with pytest.raises(ValueError, match="launch"):
        noise_floor(medians)
