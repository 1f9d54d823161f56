"""Panel: communication between ranks."""

from __future__ import annotations

from dashboard.panels.base import Fact, Panel, device_title
from dashboard.panels.launches import FACTS
from dashboard.panels.table import Column, Table
from profiler import units
from profiler.analysis.report import CollectiveRow, Report


def why_empty(report: Report) -> str:
    """One rank alone has nobody to talk to."""
    if report.collectives:
        return ""
    world = report.trace.world_size
    if world is not None and world > 1:
        return f"The job has {world} ranks, but no communication falls into the recording."
    return "No communication between ranks was recorded."


def facts(report: Report) -> tuple[Fact, ...]:
    """Per device how much communication hides behind compute, and of what that is a share."""
    return tuple(
        Fact(
            term=device_title(row.device),
            shown=f"{units.share(row.overlap_ratio)} of {units.duration(row.comm_ns)} of "
            f"communication overlaps compute, {units.duration(row.exposed_comm_ns)} is exposed",
            exact=f"{row.exposed_comm_ns:,} of {row.comm_ns:,} ns exposed",
            note="a share of the communication time, not of the span; exposed is "
            f"{units.share(row.exposed_comm_ns / row.span_ns if row.span_ns else None)} "
            "of the span",
        )
        for row in report.timeline
        if row.overlap_ratio is not None
    )


def table(report: Report) -> Table[CollectiveRow]:
    """Collectives by kind and group size."""
    columns: tuple[Column[CollectiveRow], ...] = (
        Column(
            key="name",
            title="Collective",
            value=lambda row: row.name.replace("_", " "),
            kind="mono",
        ),
        Column(key="ranks", title="Ranks", value=lambda row: row.group_size, kind="count"),
        Column(key="calls", title="Calls", value=lambda row: row.count, kind="count"),
        Column(key="payload", title="Payload", value=lambda row: row.bytes, kind="bytes"),
        Column(key="total", title="Time", value=lambda row: row.total_ns),
        Column(key="exposed", title="Exposed", value=lambda row: row.exposed_ns),
        Column(
            key="exposed_share",
            title="Exposed share",
            value=lambda row: row.exposed_ns / row.total_ns if row.total_ns else None,
            kind="share",
        ),
        Column(key="algbw", title="Algorithm bandwidth", value=lambda row: row.algbw, kind="B/s"),
        Column(key="busbw", title="Bus bandwidth", value=lambda row: row.busbw, kind="B/s"),
    )
    about = (
        "Algorithm bandwidth is payload by time. Bus bandwidth multiplies it by the traffic of "
        "the collective: 2(n−1)/n for an all-reduce, (n−1)/n for all-gather, reduce-scatter and "
        "all-to-all. Time includes waiting for the slowest rank."
    )
    return Table(
        name="collectives",
        noun="collectives",
        about=about,
        rows=report.collectives,
        columns=columns,
        sort="-total",
        # What threads of the host communicate is no work of a device that could be replayed.
        asks=("collective", lambda row: row.name) if report.timeline else None,
    )


PANEL = Panel(
    name="collectives",
    title="Communication",
    about="collectives by kind and group size",
    why_empty=why_empty,
    table=table,
    facts=facts,
    template=FACTS,
)
