"""Panel: device work by name."""

from __future__ import annotations

from dashboard.panels.base import Panel, no_device_work
from dashboard.panels.bounds import step_column, step_words
from dashboard.panels.table import Column, Table
from profiler.analysis.report import KernelRow, Report


def table(report: Report) -> Table[KernelRow]:
    """Kernels, copies, fills, communication and waits, the longest in all first."""
    whole_ns = sum(row.total_ns for row in report.kernels)
    columns: tuple[Column[KernelRow], ...] = (
        Column(key="name", title="Name", value=lambda row: row.name, kind="mono", chars=72),
        Column(key="class", title="Class", value=lambda row: row.device_class, kind="text"),
        step_column(report, "count", "Count", lambda row: row.count, kind="count"),
        step_column(report, "total", "Total", lambda row: row.total_ns),
        Column(
            key="share",
            title="Share",
            value=lambda row: row.total_ns / whole_ns if whole_ns else None,
            kind="share",
        ),
        Column(key="mean", title="Mean", value=lambda row: row.total_ns // max(row.count, 1)),
        Column(key="shortest", title="Shortest", value=lambda row: row.min_ns),
        Column(key="longest", title="Longest", value=lambda row: row.max_ns),
    )
    about = f"Device work by name. Shares are of the sum of all durations. {step_words(report)}"
    return Table(
        name="kernels",
        noun="names",
        about=about,
        rows=report.kernels,
        columns=columns,
        sort="-total",
        search="name",
        asks=("kernel", lambda row: row.name),
    )


PANEL = Panel(
    name="kernels",
    title="Kernels and copies",
    about="what ran on the device, by name",
    why_empty=no_device_work,
    table=table,
)
