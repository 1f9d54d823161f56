"""The chart of a history as data: marks, boundaries, bands, ticks."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.figures.history import DrawnHistory, DrawnMark, DrawnPoint, history_figure
from dashboard.figures.scale import scale_of


def point(number: int, value: float, spread: float | None = None) -> DrawnPoint:
    return DrawnPoint(
        name=f"p{number}",
        value=value,
        low=None if spread is None else value - spread,
        high=None if spread is None else value + spread,
        text=f"point <{number}>",
        address=f"/runs/{number}/",
        run_id=number,
    )


def drawn(**fields: Any) -> Any:  # noqa: ANN401 - a figure is JSON of any shape
    points = [point(number, 5e6) for number in range(4)]
    values: dict[str, Any] = {
        "title": "Time",
        "unit": "ns",
        "axis": "commit",
        "points": points,
        "stretches": [(0, 4)],
        "boundaries": [],
        "marks": [],
        "day0": None,
    }
    return history_figure(DrawnHistory(**(values | fields)))


def test_text_from_outside_is_shown_literally() -> None:
    (line,) = drawn()["data"]
    assert line["text"][1] == "point &lt;1&gt;"


def test_each_stretch_is_a_line_of_its_own() -> None:
    figure = drawn(stretches=[(0, 1), (1, 4)], boundaries=[(1, "driver 1 → 2")])
    assert [line["x"] for line in figure["data"]] == [[0], [1, 2, 3]]
    (edge,) = figure["layout"]["shapes"]
    assert (edge["x0"], edge["yref"]) == (0.5, "paper")
    assert figure["layout"]["annotations"][0]["text"] == "driver 1 → 2"


def test_a_band_covers_points_that_have_a_spread() -> None:
    points = [point(0, 5e6, 1e6), point(1, 5e6), point(2, 6e6, 2e6)]
    band, _ = drawn(points=points, stretches=[(0, 3)])["data"]
    assert band["x"] == [0, 2, 2, 0]
    assert band["y"] == [6.0, 8.0, 4.0, 4.0]


def test_one_point_alone_has_no_band() -> None:
    figure = drawn(points=[point(0, 5e6, 1e6)], stretches=[(0, 1)])
    assert [one["mode"] for one in figure["data"]] == ["lines+markers"]


def test_marks_of_a_kind_share_a_legend_entry_and_keep_their_tone() -> None:
    marks = [
        DrawnMark(index=1, kind="comparison", text="a", address="/compare/1/", tone="better"),
        DrawnMark(index=2, kind="comparison", text="b", address="/compare/2/", tone=""),
        DrawnMark(index=2, kind="annotation", text="c", address="", tone=""),
    ]
    figure = drawn(marks=marks)
    named = {one["name"]: one for one in figure["data"] if "name" in one}
    assert set(named) == {"comparison", "annotation"}
    assert named["comparison"]["x"] == [1, 2]
    assert named["comparison"]["marker"]["color"] == ["var(--better)", "var(--python)"]
    assert figure["layout"]["showlegend"]


def test_day0_is_a_line_across() -> None:
    layout = drawn(day0=6e6)["layout"]
    assert [shape["y0"] for shape in layout["shapes"]] == [6.0]
    assert layout["annotations"][0]["text"] == "Day-0 6.00 ms"


def test_a_long_axis_names_some_places() -> None:
    points = [point(number, 5e6) for number in range(100)]
    axis = drawn(points=points, stretches=[(0, 100)])["layout"]["xaxis"]
    assert axis["tickvals"] == list(range(0, 100, 13))
    assert axis["ticktext"][1] == "p13"


@pytest.mark.parametrize(
    ("values", "unit", "factor", "written"),
    [
        ([5e6, 7e6, 9e9], "ns", 1e6, "ms"),
        ([900.0], "ns", 1.0, "ns"),
        ([3e9], "bytes", 2.0**30, "GiB"),
        ([1500.0], "tok/s", 1e3, "ktok/s"),
        ([0.4], "ratio", 0.01, "%"),
        ([], "ns", 1.0, "ns"),
    ],
)
def test_an_axis_has_the_unit_of_its_median(
    values: list[float], unit: str, factor: float, written: str
) -> None:
    scale = scale_of(values, unit)
    assert (scale.factor, scale.unit) == (factor, written)
