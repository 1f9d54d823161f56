"""Figures are plain specs: what is drawn can be compared as data."""

from __future__ import annotations

import json

import pytest

from dashboard.figures.samples import Figure, Series, samples_figure
from dashboard.figures.text import plot_text
from dashboard.panels.samples import POINTS_LIMIT, ROWS_LIMIT, samples_panel
from dashboard.queries.run_detail import ResultView, result_view
from tests.factories import make_metric, make_result


def figure(unit: str = "ns", *values: float) -> Figure:
    points = tuple(enumerate(values, start=1))
    return samples_figure(Series(title="Time", unit=unit, points=points, median=values[0]))


def trace_of(figure: Figure) -> dict[str, object]:
    data = figure["data"]
    assert isinstance(data, list)
    found: dict[str, object] = data[0]
    return found


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("foo<4, float>", "foo&lt;4, float&gt;"),
        ("<a href='javascript:alert(1)'>x</a>", "&lt;a href='javascript:alert(1)'&gt;x&lt;/a&gt;"),
        ("a & b", "a &amp; b"),
        ("&lt;", "&amp;lt;"),
        ("a\u202eb\x00", "a\\u202eb\\x00"),
    ],
)
def test_it_shows_any_text_literally(text: str, shown: str) -> None:
    assert plot_text(text) == shown


def test_it_cuts_long_text() -> None:
    assert len(plot_text("x" * 1000)) == 200


def test_it_draws_samples_in_the_unit_of_their_median() -> None:
    drawn = figure("ns", 7.62e6, 8e6)
    assert trace_of(drawn)["x"] == [1, 2]
    assert trace_of(drawn)["y"] == [7.62, 8.0]
    assert trace_of(drawn)["text"] == ["7.62 ms", "8.00 ms"]
    assert '"Time (ms)"' in json.dumps(drawn)


@pytest.mark.parametrize(
    ("unit", "value", "height", "axis"),
    [
        ("ns", 5e9, 5.0, "s"),
        ("ns", 800.0, 800.0, "ns"),
        ("bytes", 3 * 2.0**20, 3.0, "MiB"),
        ("tok/s", 1500.0, 1.5, "ktok/s"),
        ("tok/s", 15.0, 15.0, "tok/s"),
        ("count", 12.0, 12.0, "count"),
    ],
)
def test_it_scales_every_unit(unit: str, value: float, height: float, axis: str) -> None:
    drawn = figure(unit, value, value)
    assert trace_of(drawn)["y"] == [height, height]
    assert f'"Time ({axis})"' in json.dumps(drawn)


@pytest.mark.parametrize(("count", "tick"), [(3, 1), (10, 1), (11, 2), (150, 20), (5000, 500)])
def test_it_puts_ticks_on_whole_samples(count: int, tick: int) -> None:
    layout = figure("ns", *([1.0] * count))["layout"]
    assert isinstance(layout, dict)
    assert layout["xaxis"]["dtick"] == tick


def test_it_is_strict_json() -> None:
    assert json.loads(json.dumps(figure("ns", 1.0, 2.0), allow_nan=False))


def view(count: int) -> ResultView:
    result = make_result()
    samples = [float(number) for number in range(1, count + 1)]
    make_metric(result, "itl", value=1.0, n=count, samples=samples)
    found = result_view(result.run)
    assert found is not None
    return found


def test_it_draws_fewer_points_and_says_so(db: None) -> None:
    panel = samples_panel(view(3 * POINTS_LIMIT), "itl")
    assert panel is not None
    assert panel.note == "Drawn: one in 3 of 15,000 samples."
    assert trace_of(panel.figure)["x"] == list(range(1, 3 * POINTS_LIMIT, 3))
    assert len(panel.rows) == ROWS_LIMIT
    assert panel.cut


def test_it_draws_the_metric_asked_for_or_the_headline(db: None) -> None:
    result = view(10)
    named = samples_panel(result, "itl")
    other = samples_panel(result, "no_such_metric")
    assert named is not None and named.metric.name == "itl"
    assert other is not None and other.metric.name == "tpot"


def test_it_has_nothing_to_draw_of_single_samples(db: None) -> None:
    result = make_result()
    result.metrics.update(samples=[1.0], n=1)
    found = result_view(result.run)
    assert found is not None
    assert samples_panel(found, "") is None
