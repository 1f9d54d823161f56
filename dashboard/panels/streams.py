"""Panel: what each stream of a device did."""

from __future__ import annotations

from dashboard.panels.base import Panel, device_title, no_device_work
from dashboard.panels.table import Column, Table
from profiler.analysis.report import Report, StreamRow


def table(report: Report) -> Table[StreamRow]:
    """Streams; the share is of the span of the stream's device."""
    spans = {row.device: row.span_ns for row in report.timeline}

    def share(row: StreamRow) -> float | None:
        span_ns = spans.get(row.device, 0)
        return row.union_ns / span_ns if span_ns else None

    columns: tuple[Column[StreamRow], ...] = (
        Column(key="stream", title="Stream", value=lambda row: row.stream, kind="mono"),
        Column(
            key="device", title="Device", value=lambda row: device_title(row.device), kind="text"
        ),
        Column(key="events", title="Events", value=lambda row: row.events, kind="count"),
        Column(key="total", title="Sum", value=lambda row: row.total_ns),
        Column(key="union", title="Occupied", value=lambda row: row.union_ns),
        Column(key="share", title="Share of span", value=share, kind="share"),
        Column(key="overlap", title="Overlapping", value=lambda row: row.total_ns - row.union_ns),
    )
    about = (
        "Sum adds all durations; occupied is their union. They differ where events of one stream "
        "overlap. Waits count here, not as busy time of the device."
    )
    return Table(
        name="streams",
        noun="streams",
        about=about,
        rows=report.streams,
        columns=columns,
        sort="-union",
    )


PANEL = Panel(
    name="streams",
    title="Streams",
    about="queues of the device",
    why_empty=no_device_work,
    table=table,
)
