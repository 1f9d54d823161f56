"""The samples of one metric in the order they were taken, with their median."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.figures.scale import scale_of
from dashboard.figures.text import plot_text
from profiler import units

Figure = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """What to draw: `points` are (number of the sample, value in `unit`)."""

    title: str
    unit: str
    points: Sequence[tuple[int, float]]
    median: float


def samples_figure(series: Series) -> Figure:
    """A line with points, and a dashed line at the median."""
    scale = scale_of([series.median], series.unit)
    factor, unit = scale.factor, scale.unit
    numbers = [number for number, _ in series.points]
    values = [value / factor for _, value in series.points]
    shown = [units.quantity(value, series.unit) for _, value in series.points]
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": plot_text(series.title),
                "x": numbers,
                "y": values,
                "text": [plot_text(text) for text in shown],
                "hovertemplate": "sample %{x}: %{text}<extra></extra>",
                "line": {"color": "var(--compute)", "width": 1.5},
                "marker": {"color": "var(--compute)", "size": 5},
            }
        ],
        "layout": {
            "height": 260,
            "showlegend": False,
            "xaxis": {"title": {"text": "sample"}, "tickformat": ",d", "dtick": _tick(numbers)},
            "yaxis": {"title": {"text": plot_text(f"{series.title} ({unit})")}},
            "shapes": [_median_line(series.median / factor)],
            "annotations": [_median_label(series, factor)],
        },
    }


def _tick(numbers: Sequence[int]) -> int:
    """A distance of ticks that puts about ten of them on whole samples."""
    last = max(numbers, default=1)
    step = int("1" + "0" * max(0, len(str(last)) - 2))
    return step * next(times for times in (1, 2, 5, 10) if last <= 10 * times * step)


def _median_line(height: float) -> dict[str, object]:
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": height,
        "y1": height,
        "line": {"color": "var(--worse)", "width": 1, "dash": "dash"},
    }


def _median_label(series: Series, factor: float) -> dict[str, object]:
    return {
        "xref": "paper",
        "x": 1,
        "xanchor": "right",
        "y": series.median / factor,
        "yanchor": "bottom",
        "showarrow": False,
        "text": plot_text(f"median {units.quantity(series.median, series.unit)}"),
        "font": {"color": "var(--worse)"},
    }
