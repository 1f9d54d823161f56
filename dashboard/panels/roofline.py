"""Panel: how near operators come to what the device can do."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.figures.roofline import points_of, roofline_figure
from dashboard.figures.samples import Figure
from dashboard.panels.base import Panel
from dashboard.panels.bounds import canonical_names, operator_address
from dashboard.panels.table import Column, Table
from profiler import units
from profiler.analysis.bounds import BoundRow, PeakFacts, RooflineReport, UncountedRow
from profiler.analysis.report import Report

DRAWN = 500
"""Operators in the chart, by time; the table has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineFacts:
    """The chart, what its ceilings rest on, and how much of the time it speaks of."""

    figure: Figure | None
    drawn: int
    left_out: int
    counted_share: float
    time: str
    peak: PeakFacts | None
    ceilings: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineLine:
    """One operator; `bound` says why where it is not counted."""

    name: str
    calls: int
    total_ns: int
    share: float
    counted: BoundRow | None
    bound: str


def why_empty(report: Report) -> str:
    """The roofline needs shapes; readings of before have none."""
    if report.roofline is None:
        return "This trace was read before operators were held against a roofline: read it again."
    if not report.roofline.operators:
        return (
            "No operator could be counted: record with record_shapes=True, so that what an "
            "operator computes and moves is known."
        )
    return ""


def facts(report: Report) -> RooflineFacts:
    """The chart with the largest operators."""
    roof = _of(report)
    names = canonical_names(report)
    rows = sorted(roof.operators, key=lambda row: -row.total_ns)[:DRAWN]
    addresses = [operator_address(names.get(row.name, row.name)) for row in rows]
    points = points_of(rows, addresses)
    return RooflineFacts(
        figure=roofline_figure(points, roof.peak) if points else None,
        drawn=len(points),
        left_out=len(roof.operators) - len(points),
        counted_share=roof.counted_share,
        time=roof.time,
        peak=roof.peak,
        ceilings=_ceilings(roof.peak) if roof.peak else "",
    )


def _ceilings(peak: PeakFacts) -> str:
    rates = [
        f"{units.rate(rate, 'FLOP/s')} {dtype}"
        for dtype, rate in sorted(peak.flops.items(), key=lambda item: -item[1])
    ]
    memory = [f"{units.rate(peak.bandwidth, 'B/s')} of memory"] if peak.bandwidth else []
    return ", ".join([*memory, *rates]) or "no rate is known"


def _of(report: Report) -> RooflineReport:
    assert report.roofline is not None, "why_empty was asked first"
    return report.roofline


def _counted(row: BoundRow) -> RooflineLine:
    return RooflineLine(
        name=row.name,
        calls=row.calls,
        total_ns=row.total_ns,
        share=row.share,
        counted=row,
        bound=row.bound,
    )


def _uncounted(row: UncountedRow) -> RooflineLine:
    return RooflineLine(
        name=row.name,
        calls=row.calls,
        total_ns=row.total_ns,
        share=row.share,
        counted=None,
        bound=f"uncounted: {row.reason}",
    )


def table(report: Report) -> Table[RooflineLine]:
    """Every operator with time of its own, counted or not; each links to its page."""
    roof = _of(report)
    names = canonical_names(report)
    rows = [*map(_counted, roof.operators), *map(_uncounted, roof.uncounted)]
    columns: tuple[Column[RooflineLine], ...] = (
        Column(
            key="name",
            title="Operator",
            value=lambda row: row.name,
            kind="mono",
            link=lambda row: operator_address(names.get(row.name, row.name)),
        ),
        Column(key="calls", title="Calls", value=lambda row: row.calls, kind="count"),
        Column(key="total", title="Time", value=lambda row: row.total_ns),
        Column(key="share", title="Share", value=lambda row: row.share, kind="share"),
        Column(
            key="flops",
            title="Reached",
            value=lambda row: row.counted.flop_rate if row.counted else None,
            kind="FLOP/s",
        ),
        Column(
            key="traffic",
            title="Traffic",
            value=lambda row: row.counted.byte_rate if row.counted else None,
            kind="B/s",
        ),
        Column(key="bound", title="Bound", value=lambda row: row.bound, kind="text"),
        Column(
            key="least",
            title="At the roofline",
            value=lambda row: row.counted.bound_ns if row.counted else None,
        ),
        Column(
            key="reached",
            title="Of roofline",
            value=lambda row: row.counted.efficiency if row.counted else None,
            kind="share",
        ),
    )
    return Table(
        name="roofline",
        noun="operators against the roofline",
        about=f"{roof.time.capitalize()} time over the whole trace. An operator counts with all "
        "that it calls, so no time counts twice.",
        rows=sorted(rows, key=lambda row: -row.total_ns),
        columns=columns,
        sort="-total",
        search="name",
    )


PANEL = Panel(
    name="roofline",
    title="Roofline",
    about="how near operators come to what the device can do",
    why_empty=why_empty,
    table=table,
    facts=facts,
    template="dashboard/partials/panel_roofline.html",
    redrawn=True,
)
