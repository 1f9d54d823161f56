"""Panel: what the device waited for while it was idle."""

from __future__ import annotations

from dashboard.panels.base import Panel, device_title, no_device_work
from dashboard.panels.table import Column, Table
from profiler.analysis.report import IdleRow, Report

MEANINGS = {
    "input_wait": "a data loader ran while the device waited for the next launch",
    "sync": "a blocking call held the host while the device waited for the next launch",
    "host": "the host had not issued the next launch yet",
    "launch_latency": "the launch was issued; the gap is the cost of launching (up to 30 µs)",
    "dependency": "the launch was issued long before; another stream, event or peer held it up",
    "unknown": "the launch of the work that ended the gap is not in the recording",
}
"""Cause -> what it means; the definitions stand in `profiler.analysis.idle`."""


def why_empty(report: Report) -> str:
    """Without a gap there is nothing to explain, without device work nothing is known."""
    if report.idle:
        return ""
    return no_device_work(report) or "The device was busy from its first to its last work."


def cause_title(cause: str) -> str:
    """`launch_latency` as `launch latency`."""
    return cause.replace("_", " ")


def table(report: Report) -> Table[IdleRow]:
    """Causes per device; per device they add up to its idle time."""
    idle_ns = {row.device: row.idle_ns for row in report.timeline}

    def share(row: IdleRow) -> float | None:
        whole = idle_ns.get(row.device, 0)
        return row.total_ns / whole if whole else None

    columns: tuple[Column[IdleRow], ...] = (
        Column(key="cause", title="Cause", value=lambda row: cause_title(row.cause), kind="text"),
        Column(
            key="device", title="Device", value=lambda row: device_title(row.device), kind="text"
        ),
        Column(key="total", title="Idle", value=lambda row: row.total_ns),
        Column(key="share", title="Share of idle", value=share, kind="share"),
        Column(key="gaps", title="Gaps", value=lambda row: row.count, kind="count"),
        Column(key="mean", title="Mean gap", value=lambda row: row.total_ns // max(row.count, 1)),
        Column(
            key="meaning",
            title="Meaning",
            value=lambda row: MEANINGS.get(row.cause, row.cause),
            kind="text",
        ),
    )
    about = "Gaps of the whole device, not of one stream; the work that ends a gap decides."
    return Table(
        name="idle",
        noun="causes",
        about=about,
        rows=report.idle,
        columns=columns,
        sort="-total",
    )


PANEL = Panel(
    name="idle",
    title="Idle time by cause",
    about="the causes of a device add up to its idle time",
    why_empty=why_empty,
    table=table,
)
