"""Operators against the roofline: what they reached over how much they compute per byte."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.figures.samples import Figure
from dashboard.figures.text import plot_text
from profiler import units
from profiler.analysis.bounds import BoundRow, PeakFacts

COLOURS = {
    "compute": "var(--compute)",
    "memory": "var(--accent)",
    "launch": "var(--idle-launch)",
    "communication": "var(--comm)",
    "host": "var(--idle-host)",
    "unknown": "var(--python)",
}
"""Bound -> colour, the same as of these kinds elsewhere."""
_MARKS = {
    "compute": "circle",
    "memory": "square",
    "launch": "triangle-up",
    "communication": "diamond",
    "host": "cross",
    "unknown": "circle-open",
}
_SMALLEST_PX, _LARGEST_PX = 7, 26


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """An operator with where its point leads."""

    row: BoundRow
    intensity: float
    rate: float
    address: str


def points_of(rows: Sequence[BoundRow], addresses: Sequence[str]) -> tuple[Point, ...]:
    """Rows that compute anything: what only moves bytes has no place over FLOP per byte."""
    found = []
    for row, address in zip(rows, addresses, strict=True):
        if row.flops and row.bytes and row.flop_rate:
            found.append(
                Point(row=row, intensity=row.flops / row.bytes, rate=row.flop_rate, address=address)
            )
    return tuple(found)


def roofline_figure(points: Sequence[Point], peak: PeakFacts | None) -> Figure:
    """Points by bound, their area by share; ceilings of known peaks, dashed if unverified."""
    kinds = [kind for kind in COLOURS if any(point.row.bound == kind for point in points)]
    ceilings = _ceilings(points, peak) if peak else []
    return {
        "data": [*ceilings, *(_series(kind, points) for kind in kinds)],
        "layout": {
            "height": 420,
            "showlegend": True,
            "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
            "hovermode": "closest",
            "xaxis": {**_AXIS, "title": {"text": "FLOP per byte moved"}},
            "yaxis": {**_AXIS, "title": {"text": "reached (FLOP/s)"}},
        },
    }


_AXIS: dict[str, object] = {"type": "log", "tickformat": "~s", "dtick": 1}


def _series(kind: str, points: Sequence[Point]) -> dict[str, object]:
    mine = [point for point in points if point.row.bound == kind]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{kind}-bound" if kind != "unknown" else "bound not known",
        "x": [point.intensity for point in mine],
        "y": [point.rate for point in mine],
        "text": [plot_text(_said(point)) for point in mine],
        "customdata": [point.address for point in mine],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {
            "color": COLOURS[kind],
            "symbol": _MARKS[kind],
            "size": [_size(point.row.share) for point in mine],
            "opacity": 0.85,
        },
    }


def _size(share: float) -> float:
    part = math.sqrt(min(1.0, max(0.0, share)))
    return round(_SMALLEST_PX + (_LARGEST_PX - _SMALLEST_PX) * part, 1)


def _said(point: Point) -> str:
    row = point.row
    reached = "" if row.efficiency is None else f", {units.share(row.efficiency)} of the roofline"
    name = units.middle(row.name, 80)
    return f"{name}: {units.rate(point.rate, 'FLOP/s')}{reached}, {units.share(row.share)} of time"


def _ceilings(points: Sequence[Point], peak: PeakFacts) -> list[dict[str, object]]:
    """The bandwidth as a slope, and per number type the arithmetic as a level right of it."""
    across = [point.intensity for point in points] or [1.0]
    low, high = min(across) / 4, max(across) * 4
    types = {point.row.dtype for point in points}
    rates = {dtype: rate for dtype, rate in peak.flops.items() if dtype in types}
    dash = "dash" if peak.label == "unverified" else "solid"
    found = []
    if peak.bandwidth:
        # The slope ends where it meets the highest level.
        end = max(rates.values(), default=peak.bandwidth * high) / peak.bandwidth
        low = min(low, end / 4)
        name = f"memory {units.rate(peak.bandwidth, 'B/s')} ({peak.label})"
        found.append(_line(name, (low, end), (low * peak.bandwidth, end * peak.bandwidth), dash))
        high = max(high, end * 4)
    for dtype, rate in sorted(rates.items()):
        start = rate / peak.bandwidth if peak.bandwidth else low
        name = f"{dtype} {units.rate(rate, 'FLOP/s')} ({peak.label})"
        found.append(_line(name, (start, high), (rate, rate), dash))
    return found


def _line(
    name: str, across: tuple[float, float], up: tuple[float, float], dash: str
) -> dict[str, object]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": plot_text(name),
        "x": list(across),
        "y": list(up),
        "hoverinfo": "name",
        "line": {"color": "var(--worse)", "width": 1.5, "dash": dash},
    }
