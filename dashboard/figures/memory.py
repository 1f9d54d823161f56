"""Allocated and reserved bytes of one device over the trace."""

from __future__ import annotations

from dashboard.figures.samples import Figure
from dashboard.figures.text import plot_text
from profiler import units
from profiler.analysis.report import MemoryCurve, MemoryPoint

_BYTES = {"TiB": 2.0**40, "GiB": 2.0**30, "MiB": 2.0**20, "KiB": 2.0**10, "B": 1.0}
_TIMES = {"s": 1e9, "ms": 1e6, "µs": 1e3, "ns": 1.0}


def memory_figure(curve: MemoryCurve) -> Figure:
    """Steps, not slopes: between two records nothing changed."""
    size_unit = units.size(curve.peak_reserved_bytes or curve.peak_allocated_bytes).split()[-1]
    time_unit = units.duration(max(point.at_ns for point in curve.points)).split()[-1]
    divisors = (_TIMES[time_unit], _BYTES[size_unit])
    series = [_line(curve, "allocated", "var(--compute)", divisors)]
    if curve.peak_reserved_bytes is not None:
        series.insert(0, _line(curve, "reserved", "var(--copy)", divisors))
    return {
        "data": series,
        "layout": {
            "height": 260,
            "showlegend": len(series) > 1,
            "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
            "xaxis": {"title": {"text": f"time from the first event ({time_unit})"}},
            "yaxis": {"title": {"text": f"memory ({size_unit})"}, "rangemode": "tozero"},
        },
    }


def _line(
    curve: MemoryCurve, what: str, colour: str, divisors: tuple[float, float]
) -> dict[str, object]:
    values = [(point.at_ns, _bytes(point, what)) for point in curve.points]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": plot_text(what),
        "x": [at_ns / divisors[0] for at_ns, _ in values],
        "y": [None if size is None else size / divisors[1] for _, size in values],
        "text": [
            plot_text(f"{what} {units.size(size)} at {units.duration(at_ns)}")
            for at_ns, size in values
        ],
        "hovertemplate": "%{text}<extra></extra>",
        "line": {"color": colour, "width": 1.5, "shape": "hv"},
    }


def _bytes(point: MemoryPoint, what: str) -> int | None:
    return point.allocated_bytes if what == "allocated" else point.reserved_bytes
