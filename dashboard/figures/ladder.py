"""The ladder of a tuning as bars: speed against Day-0, predicted beside measured. Geometry only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.figures.samples import Figure
from dashboard.figures.text import plot_text
from profiler.units import change, significant

FAR = 3.0
"""A roofline more than this many times above everything else is named, not drawn."""
_ROOM = 1.12
_ROOFLINE = "roofline"
_COLOURS = {
    "day0": "var(--python)",
    "better": "var(--better)",
    "worse": "var(--worse)",
    "unknown": "var(--idle-other)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One rung in times the speed of Day-0; `kind` is day0, better, worse or unknown.

    `predicted` is the speed that was said, None where nothing was; `value` and
    `change` are of the metric itself.
    """

    label: str
    title: str
    before: float
    after: float
    kind: str
    value: float
    change: float | None = None
    predicted: float | None = None
    address: str = ""

    @property
    def said(self) -> str:
        """The words of its hover box: those of its row in the table."""
        told = f"{self.title}: {times(self.after)}"
        if self.kind == "unknown":
            told += ", not measured in pairs"
        elif self.before:
            told += f" ({change(self.after / self.before - 1)})"
        if self.predicted is not None:
            told += f", predicted {times(self.predicted)}"
        return told


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """All rungs from Day-0, with the target and, where known, the roofline, as speeds."""

    rungs: tuple[Bar, ...]
    target: float
    roofline: float | None

    @property
    def now(self) -> float:
        return self.rungs[-1].after

    @property
    def top(self) -> float:
        """The highest speed that is drawn."""
        heights = [1.0, self.target]
        for bar in self.rungs:
            heights += [bar.before, bar.after, bar.predicted or 0.0]
        near = max(heights)
        if self.roofline is not None and self.roofline <= FAR * near:
            near = max(near, self.roofline)
        return near * _ROOM

    @property
    def shows_roofline(self) -> bool:
        return self.roofline is not None and self.roofline <= self.top


def times(speed: float) -> str:
    """`1.25 ×`."""
    return f"{significant(speed)} ×"


def ladder_figure(bars: Bars) -> Figure:
    """Bars that stand on each other, the prediction beside each, what remains on top."""
    data = [_predicted(bars), _measured(bars)]
    remains = _remains(bars)
    if remains is not None:
        data.append(remains)
    return {
        "data": data,
        "layout": {
            "height": 340,
            "barmode": "group",
            "bargap": 0.25,
            "showlegend": True,
            "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
            "hovermode": "closest",
            "xaxis": {
                "type": "category",
                "categoryorder": "array",
                "categoryarray": [*(bar.label for bar in bars.rungs), _ROOFLINE],
                "title": {"text": "kept iteration"},
            },
            "yaxis": {
                "title": {"text": "speed against Day-0 (×)"},
                "range": [0, bars.top],
            },
            "shapes": [_level(bars.target)],
            "annotations": [
                _said(bars.target, f"target {times(bars.target)}"),
                *_far(bars),
            ],
        },
    }


def _measured(bars: Bars) -> Figure:
    return {
        "type": "bar",
        "name": "measured",
        "offsetgroup": "measured",
        "x": [bar.label for bar in bars.rungs],
        "y": [bar.after - _from(bar) for bar in bars.rungs],
        "base": [_from(bar) for bar in bars.rungs],
        "text": [plot_text(bar.said) for bar in bars.rungs],
        "textposition": "none",
        "customdata": [bar.address for bar in bars.rungs],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {"color": [_COLOURS[bar.kind] for bar in bars.rungs]},
    }


def _from(bar: Bar) -> float:
    """Where a bar begins: Day-0 stands on the ground."""
    return 0.0 if bar.kind == "day0" else bar.before


def _predicted(bars: Bars) -> Figure:
    shown = [bar for bar in bars.rungs if bar.predicted is not None]
    return {
        "type": "bar",
        "name": "predicted",
        "offsetgroup": "predicted",
        "x": [bar.label for bar in shown],
        "y": [(bar.predicted or 0.0) - bar.before for bar in shown],
        "base": [bar.before for bar in shown],
        "text": [
            plot_text(f"{bar.title}: predicted {times(bar.predicted or 0.0)}") for bar in shown
        ],
        "textposition": "none",
        "customdata": [bar.address for bar in shown],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {"color": "var(--idle-launch)"},
    }


def _remains(bars: Bars) -> Figure | None:
    """From where we are to the roofline; None where that is not known or out of sight."""
    if bars.roofline is None or not bars.shows_roofline or bars.roofline <= bars.now:
        return None
    words = f"to the roofline: {times(bars.roofline)}, {times(bars.roofline / bars.now)} from now"
    return {
        "type": "bar",
        "name": "remains to the roofline",
        "offsetgroup": "measured",
        "x": [_ROOFLINE],
        "y": [bars.roofline - bars.now],
        "base": [bars.now],
        "text": [plot_text(words)],
        "textposition": "none",
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {
            "color": "var(--idle-other)",
            "pattern": {"shape": "/"},
        },
    }


def _level(height: float) -> Figure:
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": height,
        "y1": height,
        "line": {"color": "var(--accent)", "width": 1, "dash": "dash"},
    }


def _said(height: float, words: str) -> Figure:
    return {
        "xref": "paper",
        "x": 0,
        "xanchor": "left",
        "y": height,
        "yanchor": "bottom",
        "showarrow": False,
        "text": plot_text(words),
        "font": {"color": "var(--accent)"},
    }


def _far(bars: Bars) -> list[Figure]:
    if bars.roofline is None or bars.shows_roofline:
        return []
    return [_said(bars.top * 0.93, f"roofline at {times(bars.roofline)}, beyond this chart")]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnBar:
    """A rung as a horizontal bar: places and widths in per cent of the scale."""

    bar: Bar
    x: str
    w: str
    predicted_x: str
    predicted_w: str


def drawn_bars(bars: Bars) -> tuple[DrawnBar, ...]:
    """The same bars for a page without scripts: rows with a rectangle each."""
    scale = 100 / bars.top

    def place(one: float, other: float) -> tuple[str, str]:
        low, high = sorted((one, other))
        return f"{low * scale:.2f}", f"{max(0.2, (high - low) * scale):.2f}"

    found = []
    for bar in bars.rungs:
        x, w = place(_from(bar), bar.after)
        said = place(bar.before, bar.predicted) if bar.predicted is not None else ("", "")
        found.append(DrawnBar(bar=bar, x=x, w=w, predicted_x=said[0], predicted_w=said[1]))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """One decided prediction: how much of what was said came."""

    kind: str
    title: str
    ratio: float
    address: str


_KIND_HUES = (
    "var(--compute)",
    "var(--comm)",
    "var(--copy)",
    "var(--idle-host)",
    "var(--accent)",
    "var(--worse)",
    "var(--python)",
    "var(--bad)",
)
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon")


def calibration_figure(ratios: Sequence[Ratio], kinds: Sequence[str]) -> Figure:
    """Measured over predicted in the order of the decisions; one is all that was said.

    `kinds` are all kinds there are, in a fixed order: their colours do not
    change when others come or go.
    """
    known = {kind: place % len(_KIND_HUES) for place, kind in enumerate(kinds)}
    present = [kind for kind in kinds if any(ratio.kind == kind for ratio in ratios)]
    return {
        "data": [_kind_series(kind, known[kind], ratios) for kind in present],
        "layout": {
            "height": 280,
            "showlegend": True,
            "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
            "xaxis": {
                "title": {"text": "prediction, oldest first"},
                "tickformat": ",d",
                "dtick": max(1, -(-len(ratios) // 10)),
            },
            "yaxis": {"title": {"text": "measured ÷ predicted"}},
            "shapes": [_level(1.0)],
        },
    }


def _kind_series(kind: str, place: int, ratios: Sequence[Ratio]) -> Figure:
    mine = [(number, ratio) for number, ratio in enumerate(ratios, 1) if ratio.kind == kind]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": plot_text(kind.replace("_", " ") or "no finding"),
        "x": [number for number, _ in mine],
        "y": [ratio.ratio for _, ratio in mine],
        "text": [plot_text(f"{ratio.title}: {significant(ratio.ratio, 2)} ×") for _, ratio in mine],
        "customdata": [ratio.address for _, ratio in mine],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {"color": _KIND_HUES[place], "symbol": _SYMBOLS[place], "size": 9},
    }
