"""Panel: where in the model the time goes."""

from __future__ import annotations

from dashboard.panels.base import Panel
from dashboard.panels.table import Column, Table
from profiler.analysis.report import ModuleRow, Report


def why_empty(report: Report) -> str:
    """Modules are there when our own runs mark them, or stacks were recorded."""
    if report.modules:
        return ""
    return (
        "The recording names no modules. Runs started here mark them by themselves; elsewhere, "
        "record with with_modules=True or with_stack=True."
    )


def table(report: Report) -> Table[ModuleRow]:
    """Modules by path; the time of the modules inside is in the totals, not in self time."""
    on_device = any(row.device_total_ns for row in report.modules)
    columns: tuple[Column[ModuleRow], ...] = (
        Column(key="path", title="Module", value=lambda row: row.path, kind="mono"),
        Column(key="calls", title="Calls", value=lambda row: row.count, kind="count"),
        Column(key="device_total", title="Device total", value=lambda row: row.device_total_ns),
        Column(key="host_self", title="Host self", value=lambda row: row.host_self_ns),
        Column(key="host_total", title="Host total", value=lambda row: row.host_total_ns),
        Column(
            key="host_mean",
            title="Host per call",
            value=lambda row: row.host_total_ns // max(row.count, 1),
        ),
    )
    return Table(
        name="modules",
        noun="modules",
        about="By path in the model. Backward work counts for the module of its forward.",
        rows=report.modules,
        columns=columns,
        sort="-device_total" if on_device else "-host_self",
        search="path",
    )


PANEL = Panel(
    name="modules",
    title="Modules",
    about="where in the model the time goes",
    why_empty=why_empty,
    table=table,
)
