"""The history of a workload: values in order, split where the environment changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.figures.samples import Figure
from dashboard.figures.scale import Scale, scale_of
from dashboard.figures.text import plot_text
from profiler import units

TICKS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnPoint:
    """One point: `text` is what its row in the table says, `address` where a click leads."""

    name: str
    value: float
    low: float | None
    high: float | None
    text: str
    address: str
    run_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnMark:
    """A mark at the point of that index; `tone` is better, worse or empty."""

    index: int
    kind: str
    text: str
    address: str
    tone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnHistory:
    """What to draw: `stretches` are (first, one past the last) of comparable environments.

    `boundaries` are (index of the first point behind it, words);
    `day0` is the value to hold everything against.
    """

    title: str
    unit: str
    axis: str
    points: Sequence[DrawnPoint]
    stretches: Sequence[tuple[int, int]]
    boundaries: Sequence[tuple[int, str]]
    marks: Sequence[DrawnMark]
    day0: float | None


SYMBOLS = {
    "comparison": ("diamond", "var(--python)", 17),
    "change": ("x", "var(--python)", 11),
    "iteration": ("star", "var(--comm)", 13),
    "annotation": ("triangle-down", "var(--idle-host)", 13),
}
"""Kind of a mark -> its symbol, colour and size, so that several at one point stay apart.

A tone replaces the colour.
"""


def history_figure(drawn: DrawnHistory) -> Figure:
    """Line and points over places of equal width, a band of spread, boundaries and marks."""
    scale = scale_of([point.value for point in drawn.points], drawn.unit)
    data: list[dict[str, object]] = []
    for stretch in drawn.stretches:
        data += _band(drawn, stretch, scale)
        data.append(_line(drawn, stretch, scale))
    data += _marks(drawn, scale)
    return {
        "data": data,
        "layout": {
            "height": 300,
            "showlegend": bool(drawn.marks),
            "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
            "hovermode": "closest",
            "xaxis": _places(drawn),
            "yaxis": {"title": {"text": plot_text(f"{drawn.title} ({scale.unit})")}},
            "shapes": [*_boundary_lines(drawn), *_day0_line(drawn, scale)],
            "annotations": [*_boundary_labels(drawn), *_day0_label(drawn, scale)],
        },
    }


def _places(drawn: DrawnHistory) -> dict[str, object]:
    """Some names along the axis, whatever their number; the ends of the line stay clear."""
    count = len(drawn.points)
    step = max(1, -(-count // TICKS))
    shown = range(0, count, step)
    return {
        "title": {"text": plot_text(drawn.axis)},
        "tickvals": list(shown),
        "ticktext": [plot_text(drawn.points[index].name) for index in shown],
        "range": [-0.5, max(1, count) - 0.5],
        "zeroline": False,
    }


def _band(drawn: DrawnHistory, stretch: tuple[int, int], scale: Scale) -> list[dict[str, object]]:
    """The spread as a filled outline: there and back again over points that have one."""
    known = [
        (index, point.low, point.high)
        for index in range(*stretch)
        if (point := drawn.points[index]).low is not None and point.high is not None
    ]
    if len(known) < 2:
        return []
    there = [(index, high / scale.factor) for index, _, high in known if high is not None]
    back = [(index, low / scale.factor) for index, low, _ in reversed(known) if low is not None]
    outline = [*there, *back]
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "x": [index for index, _ in outline],
            "y": [height for _, height in outline],
            "fill": "toself",
            "line": {"color": "var(--compute)", "width": 0},
            "fillcolor": "var(--compute)",
            "opacity": 0.18,
            "hoverinfo": "skip",
            "showlegend": False,
        }
    ]


def _line(drawn: DrawnHistory, stretch: tuple[int, int], scale: Scale) -> dict[str, object]:
    points = drawn.points[slice(*stretch)]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": list(range(*stretch)),
        "y": [point.value / scale.factor for point in points],
        "text": [plot_text(point.text) for point in points],
        "customdata": [point.address for point in points],
        "ids": [str(point.run_id) for point in points],
        "hovertemplate": "%{text}<extra></extra>",
        "line": {"color": "var(--compute)", "width": 1.5},
        "marker": {"color": "var(--compute)", "size": 6},
        "showlegend": False,
    }


def _marks(drawn: DrawnHistory, scale: Scale) -> list[dict[str, object]]:
    """One entry of the legend a kind; several at one place share a hover text each."""
    found: list[dict[str, object]] = []
    for kind, (symbol, colour, size) in SYMBOLS.items():
        mine = [mark for mark in drawn.marks if mark.kind == kind]
        if not mine:
            continue
        tones = {"better": "var(--better)", "worse": "var(--worse)"}
        found.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": plot_text(kind),
                "x": [mark.index for mark in mine],
                "y": [drawn.points[mark.index].value / scale.factor for mark in mine],
                "text": [plot_text(mark.text) for mark in mine],
                "customdata": [mark.address for mark in mine],
                "hovertemplate": "%{text}<extra></extra>",
                "marker": {
                    "symbol": f"{symbol}-open",
                    "size": size,
                    "line": {"width": 2},
                    "color": [tones.get(mark.tone, colour) for mark in mine],
                },
            }
        )
    return found


def _boundary_lines(drawn: DrawnHistory) -> list[dict[str, object]]:
    return [
        {
            "type": "line",
            "yref": "paper",
            "x0": index - 0.5,
            "x1": index - 0.5,
            "y0": 0,
            "y1": 1,
            "line": {"color": "var(--idle-host)", "width": 1, "dash": "dot"},
        }
        for index, _ in drawn.boundaries
    ]


def _boundary_labels(drawn: DrawnHistory) -> list[dict[str, object]]:
    """Words beside each boundary, on the side with more room."""
    half = len(drawn.points) / 2
    return [
        {
            "yref": "paper",
            "x": index - 0.5,
            "xanchor": "left" if index < half else "right",
            "y": 1 - 0.09 * (number % 3),
            "yanchor": "top",
            "showarrow": False,
            "text": plot_text(words),
            "font": {"color": "var(--idle-host)", "size": 11},
        }
        for number, (index, words) in enumerate(drawn.boundaries)
    ]


def _day0_line(drawn: DrawnHistory, scale: Scale) -> list[dict[str, object]]:
    if drawn.day0 is None:
        return []
    height = drawn.day0 / scale.factor
    return [
        {
            "type": "line",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "y0": height,
            "y1": height,
            "line": {"color": "var(--python)", "width": 1, "dash": "dash"},
        }
    ]


def _day0_label(drawn: DrawnHistory, scale: Scale) -> list[dict[str, object]]:
    if drawn.day0 is None:
        return []
    return [
        {
            "xref": "paper",
            "x": 1,
            "xanchor": "right",
            "y": drawn.day0 / scale.factor,
            "yanchor": "bottom",
            "showarrow": False,
            "text": plot_text(f"Day-0 {units.quantity(drawn.day0, drawn.unit)}"),
            "font": {"color": "var(--python)"},
        }
    ]
