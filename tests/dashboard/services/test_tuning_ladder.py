"""The ladder: effects chain from Day-0, setbacks show, the interval covers all steps."""

from __future__ import annotations

import math

import pytest

from dashboard.services.tuning_ladder import Step, climb, effect_of_gain, meets, speed


def test_it_starts_at_day0() -> None:
    ladder = climb(8.0, [])
    assert (ladder.now, ladder.change, ladder.rungs) == (8.0, 0.0, ())
    assert ladder.low is None and ladder.high is None


def test_it_chains_the_effects_of_what_was_kept() -> None:
    ladder = climb(100.0, [Step(number=1, effect=-0.2), Step(number=3, effect=-0.5)])
    assert [(rung.number, rung.before, rung.after) for rung in ladder.rungs] == [
        (1, 100.0, 80.0),
        (3, 80.0, 40.0),
    ]
    assert ladder.change == pytest.approx(-0.6)


def test_it_puts_a_prediction_on_the_rung_it_was_made_for() -> None:
    steps = [Step(number=1, effect=-0.2), Step(number=2, effect=-0.1, predicted=-0.25)]
    assert climb(100.0, steps).rungs[1].predicted == pytest.approx(60.0)


def test_it_stays_where_nothing_was_measured() -> None:
    (rung,) = climb(100.0, [Step(number=1, effect=None, predicted=-0.1)]).rungs
    assert (rung.after, rung.measured, rung.predicted) == (100.0, False, 90.0)


def test_it_shows_what_was_lost_before_it_was_mended() -> None:
    ladder = climb(100.0, [Step(number=1, effect=-0.2, setback=0.25)])
    assert [(rung.is_setback, rung.before, rung.after) for rung in ladder.rungs] == [
        (True, 100.0, 125.0),
        (False, 125.0, 100.0),
    ]
    assert ladder.change == pytest.approx(0.0)


def test_its_interval_of_one_step_is_that_of_the_step() -> None:
    ladder = climb(100.0, [Step(number=1, effect=-0.1, low=-0.12, high=-0.08)])
    assert ladder.low == pytest.approx(-0.12) and ladder.high == pytest.approx(-0.08)


def test_its_interval_adds_half_widths_in_quadrature() -> None:
    half = 0.02
    step = Step(number=1, effect=0.0, low=math.expm1(-half), high=math.expm1(half))
    ladder = climb(100.0, [step, step])
    assert ladder.high == pytest.approx(math.expm1(half * math.sqrt(2)))
    assert ladder.low == pytest.approx(math.expm1(-half * math.sqrt(2)))


def test_it_has_no_interval_where_a_step_has_none() -> None:
    known = Step(number=1, effect=-0.1, low=-0.12, high=-0.08)
    assert climb(100.0, [known, Step(number=2, effect=None)]).low is None


@pytest.mark.parametrize(
    ("share", "direction", "effect"),
    [(0.2, "lower", -0.2), (0.5, "higher", 1.0), (0.0, "lower", 0.0), (-0.25, "higher", -0.2)],
)
def test_a_gain_of_time_is_an_effect_on_the_metric(
    share: float, direction: str, effect: float
) -> None:
    assert effect_of_gain(share, direction) == pytest.approx(effect)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "direction", "times"), [(5.0, "lower", 2.0), (20.0, "higher", 2.0)]
)
def test_speed_rises_for_times_and_rates_alike(value: float, direction: str, times: float) -> None:
    assert speed(10.0, value, direction) == times  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "target", "direction", "met"),
    [
        (5.0, 5.0, "lower", True),
        (5.1, 5.0, "lower", False),
        (5.0, 5.0, "higher", True),
        (4.9, 5.0, "higher", False),
    ],
)
def test_a_target_is_met_on_its_good_side(
    value: float, target: float, direction: str, met: bool
) -> None:
    assert meets(value, target, direction) == met  # type: ignore[arg-type]


def test_a_loss_is_known_without_an_interval() -> None:
    step = Step(number=1, effect=-0.2, low=-0.21, high=-0.19, setback=0.25)
    assert climb(100.0, [step]).low is None
