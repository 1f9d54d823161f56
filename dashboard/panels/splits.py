"""Panel: where the time of each step and each phase goes; the parts of a row add up to its span."""

from __future__ import annotations

from collections.abc import Callable

from dashboard.panels.base import Panel, device_title, no_device_work
from dashboard.panels.idle import MEANINGS, cause_title
from dashboard.panels.table import Column, Table
from profiler.analysis.bounds import SplitRow
from profiler.analysis.report import Report

EDGES = ("edge", "between_operators")
"""Idle time that is no gap between two pieces of work of a device."""


def why_empty(report: Report) -> str:
    """Without marks there are no stretches to split."""
    if report.splits:
        return ""
    if report.steps and not report.timeline and report.launches.calls:
        return no_device_work(report)
    if report.steps:
        return "This trace was read before steps were split: read it again."
    return "Nothing marks steps or phases, and no stretch of calls repeats evenly."


def _idle(cause: str) -> Callable[[SplitRow], int | None]:
    return lambda row: row.idle.get(cause)


def table(report: Report) -> Table[SplitRow]:
    """Phases first, then steps in the order of time."""
    causes = [cause for cause in (*MEANINGS, *EDGES) if any(cause in r.idle for r in report.splits)]
    columns: tuple[Column[SplitRow], ...] = (
        Column(key="name", title="Step or phase", value=lambda row: row.name, kind="mono"),
        Column(key="kind", title="Kind", value=lambda row: row.kind, kind="text"),
        Column(key="device", title="Device", value=_device, kind="text"),
        Column(key="stretches", title="Stretches", value=lambda row: row.count, kind="count"),
        Column(key="span", title="Span", value=lambda row: row.span_ns),
        Column(key="compute", title="Compute", value=lambda row: row.compute_ns),
        Column(
            key="compute_share",
            title="Compute share",
            value=lambda row: row.compute_ns / row.span_ns if row.span_ns else None,
            kind="share",
        ),
        Column(key="comm", title="Exposed communication", value=lambda row: row.exposed_comm_ns),
        Column(key="copy", title="Exposed copies", value=lambda row: row.exposed_copy_ns),
        *(
            Column(key=cause, title=f"Idle: {cause_title(cause)}", value=_idle(cause))
            for cause in causes
        ),
    )
    return Table(
        name="splits",
        noun="steps and phases",
        about=_about(report),
        rows=sorted(report.splits, key=lambda row: row.kind),
        columns=columns,
        search="name",
    )


def _about(report: Report) -> str:
    """How the parts are taken."""
    if not report.timeline:
        return (
            "Compute is the time in which any thread runs an operator. Span = compute + exposed "
            "communication + the time between operators (Python, dispatch), exactly."
        )
    return (
        "Span = compute + exposed communication + exposed copies + idle by cause, exactly; copies "
        "and communication count where no compute hides them. Edge is time before the device's "
        "first work or after its last. A phase is the stretch its mark covers on the device's row "
        "where it was recorded there, else on the host: work launched near its end runs after it."
    )


def _device(row: SplitRow) -> str:
    return device_title(row.device) if row.device else "host"


PANEL = Panel(
    name="splits",
    title="Time by step and phase",
    about="the parts of a row add up to its span",
    why_empty=why_empty,
    table=table,
)
