"""Panel: host threads and how their operators' self times add up."""

from __future__ import annotations

from dashboard.panels.base import Panel
from dashboard.panels.table import Column, Table
from profiler.analysis.report import Report, ThreadRow


def why_empty(report: Report) -> str:
    """Only a recording of the host has threads."""
    if any(row.union_ns for row in report.threads):
        return ""
    return "No host operators were recorded. Record with the activity of the CPU switched on."


def table(report: Report) -> Table[ThreadRow]:
    """Threads that ran operators."""
    columns: tuple[Column[ThreadRow], ...] = (
        Column(key="name", title="Thread", value=lambda row: row.name or row.tid, kind="mono"),
        Column(key="process", title="Process", value=lambda row: row.pid, kind="mono"),
        Column(key="number", title="Number", value=lambda row: row.tid, kind="mono"),
        Column(key="events", title="Events", value=lambda row: row.events, kind="count"),
        Column(key="union", title="In operators", value=lambda row: row.union_ns),
        Column(key="self", title="Sum of self times", value=lambda row: row.operators_self_ns),
        Column(
            key="difference",
            title="Difference",
            value=lambda row: row.union_ns - row.operators_self_ns,
        ),
    )
    about = "The self times of a thread's operators add up to the time in which it ran any."
    return Table(
        name="threads",
        noun="threads",
        about=about,
        rows=[row for row in report.threads if row.union_ns],
        columns=columns,
        sort="-union",
        size=10,
    )


PANEL = Panel(
    name="threads",
    title="Threads",
    about="host threads that ran operators",
    why_empty=why_empty,
    table=table,
)
