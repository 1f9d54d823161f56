"""The ladder and the calibration as charts: what is drawn can be compared as data."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.figures.ladder import (
    Bar,
    Bars,
    Ratio,
    calibration_figure,
    drawn_bars,
    ladder_figure,
)

DAY0 = Bar(label="Day-0", title="Day-0", before=1.0, after=1.0, kind="day0", value=8e6)


def rung(number: int, before: float, after: float, **changes: Any) -> Bar:  # noqa: ANN401
    values: dict[str, Any] = {
        "label": f"#{number}",
        "title": f"Iteration {number}",
        "before": before,
        "after": after,
        "kind": "better" if after >= before else "worse",
        "value": 8e6 / after,
        "change": before / after - 1,
        "address": f"/tuning/iterations/{number}/",
    }
    return Bar(**(values | changes))


def bars(*rungs: Bar, target: float = 2.0, roofline: float | None = 3.0) -> Bars:
    return Bars(rungs=(DAY0, *rungs), target=target, roofline=roofline)


def series(figure: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in figure["data"] if one["name"] == name)
    return found


def names(figure: dict[str, Any]) -> list[str]:
    return [one["name"] for one in figure["data"]]


def test_bars_stand_on_each_other_and_day0_on_the_ground() -> None:
    figure = ladder_figure(bars(rung(1, 1.0, 1.25), rung(3, 1.25, 1.5)))
    measured = series(figure, "measured")
    assert measured["x"] == ["Day-0", "#1", "#3"]
    assert measured["base"] == [0.0, 1.0, 1.25]
    assert measured["y"] == [1.0, 0.25, 0.25]
    assert measured["customdata"] == ["", "/tuning/iterations/1/", "/tuning/iterations/3/"]


def test_it_keeps_the_order_of_the_ladder_whatever_has_a_prediction() -> None:
    figure = ladder_figure(bars(rung(1, 1.0, 1.25), rung(2, 1.25, 1.3, predicted=1.5)))
    layout: Any = figure["layout"]
    assert layout["xaxis"]["categoryarray"] == ["Day-0", "#1", "#2", "roofline"]


def test_a_prediction_stands_beside_what_came() -> None:
    said = series(ladder_figure(bars(rung(1, 1.0, 1.25, predicted=1.5))), "predicted")
    assert (said["x"], said["base"], said["y"]) == (["#1"], [1.0], [0.5])


def test_a_loss_hangs_down_in_its_colour() -> None:
    measured = series(ladder_figure(bars(rung(1, 1.0, 0.8))), "measured")
    assert measured["y"][1] == pytest.approx(-0.2)
    assert measured["marker"]["color"][1] == "var(--worse)"


def test_what_remains_to_the_roofline_is_on_top() -> None:
    remains = series(ladder_figure(bars(rung(1, 1.0, 1.5))), "remains to the roofline")
    assert (remains["base"], remains["y"]) == ([1.5], [1.5])
    assert "2.00 × from now" in remains["text"][0]


@pytest.mark.parametrize("roofline", [None, 0.9])
def test_it_draws_no_rest_that_is_not_known_or_passed(roofline: float | None) -> None:
    assert names(ladder_figure(bars(roofline=roofline))) == ["predicted", "measured"]


def test_a_far_roofline_is_named_and_not_drawn() -> None:
    drawn = bars(rung(1, 1.0, 1.5), roofline=40.0)
    figure = ladder_figure(drawn)
    layout: Any = figure["layout"]
    assert layout["yaxis"]["range"][1] < 3
    assert "remains to the roofline" not in names(figure)
    assert any("roofline at 40.0 ×" in note["text"] for note in layout["annotations"])


def test_its_target_is_a_line_with_its_name() -> None:
    layout: Any = ladder_figure(bars())["layout"]
    assert [shape["y0"] for shape in layout["shapes"]] == [2.0]
    assert layout["annotations"][0]["text"] == "target 2.00 ×"


def test_its_words_are_harmless() -> None:
    figure = ladder_figure(bars(rung(1, 1.0, 1.2, title="<b>x</b>", predicted=1.1)))
    for one in figure["data"][:2]:  # type: ignore[index]
        assert not any("<b>" in text for text in one["text"])


@pytest.mark.parametrize(
    ("bar", "said"),
    [
        (rung(1, 1.0, 1.25), "Iteration 1: 1.25 × (+25.0 %)"),
        (rung(1, 1.0, 1.0, kind="unknown"), "Iteration 1: 1.00 ×, not measured in pairs"),
        (rung(1, 1.0, 1.25, predicted=1.1), "Iteration 1: 1.25 × (+25.0 %), predicted 1.10 ×"),
    ],
)
def test_hovering_says_what_the_table_says(bar: Bar, said: str) -> None:
    assert bar.said == said


def test_it_is_drawn_without_scripts_on_the_same_scale() -> None:
    ladder = bars(rung(1, 1.0, 1.5, predicted=2.0), roofline=None, target=2.0)
    day0, first = drawn_bars(ladder)
    assert day0.x == "0.00"
    assert float(day0.w) == pytest.approx(100 / ladder.top, abs=0.01)
    assert float(first.x) + float(first.w) == pytest.approx(150 / ladder.top, abs=0.02)
    assert float(first.predicted_w) == pytest.approx(100 / ladder.top, abs=0.02)


def test_calibration_keeps_the_colour_of_a_kind() -> None:
    kinds = ["fusable_chain", "host_wait", "roofline_gap"]
    rest = [Ratio(kind="roofline_gap", title="a", ratio=0.8, address="/a/")]
    every = [Ratio(kind=kind, title="x", ratio=1.0, address="/x/") for kind in kinds]
    alone: Any = calibration_figure(rest, kinds)
    among: Any = calibration_figure([*every, *rest], kinds)
    colour = series(among, "roofline gap")["marker"]["color"]
    assert series(alone, "roofline gap")["marker"]["color"] == colour
    assert series(among, "roofline gap")["x"] == [3, 4]
    assert series(among, "roofline gap")["y"] == [1.0, 0.8]
