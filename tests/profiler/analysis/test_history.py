"""Readings as points and segments: launches of one commit together, environments apart."""

from __future__ import annotations

import pytest

from profiler.analysis import history


def reading(run_id: int, place: int, value: float, **fields: object) -> history.Reading:
    values: dict[str, object] = {"iqr": 2.0, "n": 10, "environment": "a"}
    return history.Reading(
        run_id=run_id,
        place=place,
        value=value,
        **(values | fields),  # type: ignore[arg-type]
    )


def test_it_orders_by_place_and_not_by_run() -> None:
    found = history.points([reading(1, 7, 10.0), reading(2, 3, 20.0)])
    assert [point.place for point in found] == [3, 7]


def test_it_takes_the_median_of_the_launches_of_a_place() -> None:
    (point,) = history.points([reading(1, 3, 10.0), reading(2, 3, 30.0), reading(3, 3, 11.0)])
    assert (point.value, point.n, point.run_id) == (11.0, 3, 3)
    assert point.between
    assert (point.low, point.high) == (10.5, 20.5)
    assert point.spread == 5.0


def test_few_launches_have_the_spread_of_the_newest_ones_samples() -> None:
    (point,) = history.points([reading(1, 3, 10.0), reading(2, 3, 14.0, iqr=4.0)])
    assert (point.value, point.low, point.high, point.between) == (12.0, 10.0, 14.0, False)
    assert point.n == 2, "launches"
    (single,) = history.points([reading(1, 3, 10.0)])
    assert (single.n, single.spread) == (10, 1.0), "samples of the one launch"


@pytest.mark.parametrize("fields", [{"iqr": None}, {"n": 1}])
def test_one_sample_has_no_spread(fields: dict[str, object]) -> None:
    (point,) = history.points([reading(1, 3, 10.0, **fields)])
    assert (point.low, point.high, point.spread) == (None, None, None)


def test_environments_of_one_place_stay_apart() -> None:
    found = history.points(
        [
            reading(1, 1, 10.0),
            reading(2, 2, 10.0),
            reading(3, 2, 12.0, environment="b"),
            reading(4, 3, 12.0, environment="b"),
        ]
    )
    assert [(point.place, point.environment) for point in found] == [
        (1, "a"),
        (2, "a"),
        (2, "b"),
        (3, "b"),
    ]
    assert history.segments(found) == ((0, 2), (2, 4))


def test_nothing_has_no_segments() -> None:
    assert history.segments(()) == ()


def test_the_best_depends_on_the_direction() -> None:
    found = history.points([reading(1, 1, 10.0), reading(2, 2, 8.0), reading(3, 3, 8.0)])
    assert history.best(found, "lower").run_id == 2, "the first of equals"
    assert history.best(found, "higher").run_id == 1


@pytest.mark.parametrize(
    ("baseline", "value", "direction", "expected"),
    [
        (12.0, 8.0, "lower", 1.5),
        (12.0, 8.0, "higher", 2 / 3),
        (0.0, 8.0, "lower", None),
        (None, 8.0, "lower", None),
        (12.0, 0.0, "lower", None),
    ],
)
def test_speed_above_one_is_faster(
    baseline: float | None, value: float, direction: str, expected: float | None
) -> None:
    found = history.speed(baseline, value, direction)
    assert found is None if expected is None else found == pytest.approx(expected)
