"""Panel: memory of each device over the trace."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.figures.memory import memory_figure
from dashboard.figures.samples import Figure
from dashboard.panels.base import Panel
from dashboard.panels.table import Column, Table
from profiler.analysis.report import MemoryCurve, MemoryPoint, MemoryShare, Report

Point = tuple[str, MemoryPoint]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChart:
    """One device: its chart, in words what it shows, and what the peak was for with its share."""

    key: str
    curve: MemoryCurve
    figure: Figure
    note: str
    shares: tuple[tuple[MemoryShare, float], ...]


def why_empty(report: Report) -> str:
    """The allocator's records are opt-in."""
    if report.memory:
        return ""
    return "No allocator records. Record with profile_memory=True to see memory over time."


def facts(report: Report) -> tuple[MemoryChart, ...]:
    """A chart per device, the largest peak first."""
    curves = sorted(report.memory, key=lambda curve: -curve.peak_allocated_bytes)
    return tuple(
        MemoryChart(
            key=f"memory-figure-{place}",
            curve=curve,
            figure=memory_figure(curve),
            note=_note(curve),
            shares=_shares(curve),
        )
        for place, curve in enumerate(curves)
    )


def _shares(curve: MemoryCurve) -> tuple[tuple[MemoryShare, float], ...]:
    whole = curve.peak_allocated_bytes
    return tuple((one, one.bytes / whole if whole else 0.0) for one in curve.shares)


def _note(curve: MemoryCurve) -> str:
    if len(curve.points) >= curve.records:
        return f"all {curve.records:,} records are drawn"
    return f"{len(curve.points):,} of {curve.records:,} records are drawn, the peaks among them"


def table(report: Report) -> Table[Point]:
    """The drawn points of all devices in the order of time."""
    rows = [(curve.device, point) for curve in report.memory for point in curve.points]
    columns: tuple[Column[Point], ...] = (
        Column(key="at", title="At", value=lambda row: row[1].at_ns),
        Column(key="device", title="Device", value=lambda row: row[0], kind="text"),
        Column(
            key="allocated",
            title="Allocated",
            value=lambda row: row[1].allocated_bytes,
            kind="bytes",
        ),
        Column(
            key="reserved", title="Reserved", value=lambda row: row[1].reserved_bytes, kind="bytes"
        ),
    )
    return Table(
        name="memory",
        noun="points",
        about="Times count from the first event.",
        rows=rows,
        columns=columns,
        sort="at",
        search="device",
    )


PANEL = Panel(
    name="memory",
    title="Memory over time",
    about="bytes that the framework's allocator held",
    why_empty=why_empty,
    table=table,
    facts=facts,
    template="dashboard/partials/panel_memory.html",
    redrawn=True,
)
