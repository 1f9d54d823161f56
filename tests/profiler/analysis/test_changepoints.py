"""Steps and leaks of series whose truth is known."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.changepoints import STRETCH, change_points, slow_leak
from profiler.analysis.stats import Floats

LEVEL = 7e6


def series(*levels: tuple[int, float], noise: float = 0.01, seed: int = 3) -> Floats:
    """So many points around each level, levels relative to `LEVEL`."""
    random = np.random.default_rng(seed)
    centres = np.concatenate([np.full(count, level) for count, level in levels])
    values: Floats = LEVEL * centres * np.exp(random.normal(0, noise, len(centres)))
    return values


def test_it_finds_a_step_with_its_place_and_size() -> None:
    (found,) = change_points(series((20, 1.0), (10, 1.1)).tolist())
    assert found.index == 20
    assert found.effect == pytest.approx(0.10, abs=0.01)
    assert found.before == pytest.approx(LEVEL, rel=0.01)
    assert found.after == pytest.approx(1.1 * LEVEL, rel=0.01)
    assert found.p_value < 1e-4


def test_it_finds_a_step_down() -> None:
    (found,) = change_points(series((20, 1.0), (10, 0.9)).tolist())
    assert found.index == 20 and found.effect == pytest.approx(-0.10, abs=0.01)


def test_it_finds_a_step_and_its_fix() -> None:
    found = change_points(series((20, 1.0), (6, 1.1), (20, 1.0)).tolist())
    assert [point.index for point in found] == [20, 26]
    assert found[0].effect > 0.08 and found[1].effect < -0.08


def test_it_hardly_ever_finds_one_where_nothing_happened() -> None:
    """One in twenty at most; `make bench-history` counts it over thousands."""
    many = (series((60, 1.0), noise=0.03, seed=seed).tolist() for seed in range(40))
    assert sum(bool(change_points(values)) for values in many) <= 2


def test_two_points_are_no_level() -> None:
    assert change_points(series((30, 1.0), (2, 1.3)).tolist()) == ()
    assert change_points(series((30, 1.0), (3, 1.3)).tolist())[0].index == 30


@pytest.mark.parametrize("places", [(30,), (28, 30), (29, 30), (31, 32)])
def test_a_pair_of_outliers_is_no_step(places: tuple[int, ...]) -> None:
    values = series((40, 1.0), noise=0.02)
    values[list(places)] *= 1.4
    assert change_points(values[:33].tolist()) == ()
    assert change_points(values.tolist()) == ()


def test_outliers_do_not_hide_a_step() -> None:
    values = series((30, 1.0), (12, 1.1), noise=0.02)
    values[[4, 15, 33]] *= 1.5
    (found,) = change_points(values.tolist())
    assert abs(found.index - 30) <= 1


def test_a_step_must_exceed_two_per_cent_and_the_noise_floor() -> None:
    small = series((30, 1.0), (30, 1.015), noise=0.001).tolist()
    assert change_points(small) == ()
    larger = series((30, 1.0), (30, 1.04), noise=0.001).tolist()
    assert len(change_points(larger)) == 1
    assert change_points(larger, noise_floor=0.05) == ()


def test_neighbours_that_move_together_are_not_taken_for_a_step() -> None:
    """The wandering of a correlated series passes as steps where points count as independent."""
    alarms = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        noise = random.normal(0, 0.03, 60)
        for at in range(1, 60):
            noise[at] = 0.5 * noise[at - 1] + 0.75**0.5 * noise[at]
        alarms += bool(change_points((LEVEL * np.exp(noise)).tolist()))
    assert alarms <= 6


def test_a_series_without_noise_is_no_trouble() -> None:
    assert change_points([5.0] * 20) == ()
    (found,) = change_points([5.0] * 10 + [6.0] * 10)
    assert (found.index, found.p_value) == (10, 0.0)
    assert found.effect == pytest.approx(0.2)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0, 1.0, 2.0, 1.0]])
def test_a_short_series_has_no_step(values: list[float]) -> None:
    assert change_points(values) == ()
    assert slow_leak(values, direction="lower") is None


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_it_refuses_what_is_no_measured_value(bad: float) -> None:
    with pytest.raises(ValueError, match="positive, finite"):
        change_points([1.0] * 10 + [bad])
    with pytest.raises(ValueError, match="positive, finite"):
        slow_leak([1.0] * 30 + [bad], direction="lower")


@given(st.lists(st.floats(1e3, 1e9), max_size=40), st.floats(1e-3, 1e3))
def test_the_unit_of_the_values_does_not_matter(values: list[float], factor: float) -> None:
    one = change_points(values)
    other = change_points([value * factor for value in values])
    assert [point.index for point in one] == [point.index for point in other]
    places = [point.index for point in one]
    assert places == sorted(places) and all(3 <= place <= len(values) - 3 for place in places)


def test_it_finds_a_slow_leak() -> None:
    ramp = np.linspace(1.0, 1.08, 60)
    values = (series((60, 1.0), noise=0.01) * ramp).tolist()
    found = slow_leak(values, direction="lower")
    assert found is not None
    assert found.end - found.start == STRETCH and found.end <= 30
    assert 0.04 < found.effect < 0.09
    assert found.after == pytest.approx(found.before * (1 + found.effect))


def test_for_a_rate_a_leak_goes_down() -> None:
    ramp = np.linspace(1.0, 0.92, 60)
    values = (series((60, 1.0), noise=0.01) * ramp).tolist()
    found = slow_leak(values, direction="higher")
    assert found is not None and found.effect < -0.04
    assert slow_leak(values, direction="lower") is None


def test_a_known_step_is_no_leak() -> None:
    values = series((30, 1.0), (30, 1.1)).tolist()
    steps = change_points(values)
    assert slow_leak(values, direction="lower", steps=steps) is None


def test_a_steady_series_does_not_leak() -> None:
    for seed in range(20):
        values = series((60, 1.0), noise=0.02, seed=seed).tolist()
        assert slow_leak(values, direction="lower") is None


def test_the_library_loads_without_it() -> None:
    code = "import sys, profiler; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
