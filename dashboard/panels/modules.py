"""Panel: where in the model the time goes."""

from __future__ import annotations

from dashboard.panels.base import Panel
from dashboard.panels.bounds import step_column, step_words
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


def _total(row: ModuleRow, *, on_device: bool) -> int:
    return row.device_total_ns if on_device else row.host_total_ns


def table(report: Report) -> Table[ModuleRow]:
    """Modules by path; the time of the modules inside is in the totals, not in self time."""
    on_device = any(row.device_total_ns for row in report.modules)
    # Totals hold the modules inside, so the largest is the whole.
    whole_ns = max((_total(row, on_device=on_device) for row in report.modules), default=0)
    columns: tuple[Column[ModuleRow], ...] = (
        Column(key="path", title="Module", value=lambda row: row.path, kind="mono"),
        step_column(report, "calls", "Calls", lambda row: row.count, kind="count"),
        Column(
            key="share",
            title="Share",
            value=lambda row: _total(row, on_device=on_device) / whole_ns if whole_ns else None,
            kind="share",
        ),
        step_column(report, "device_total", "Device total", lambda row: row.device_total_ns),
        step_column(report, "host_self", "Host self", lambda row: row.host_self_ns),
        step_column(report, "host_total", "Host total", lambda row: row.host_total_ns),
        Column(
            key="host_mean",
            title="Host per call",
            value=lambda row: row.host_total_ns // max(row.count, 1),
        ),
    )
    return Table(
        name="modules",
        noun="modules",
        about="By path in the model; backward work counts for the module of its forward. "
        f"Shares are of the outermost module. {step_words(report)}",
        rows=report.modules,
        columns=columns,
        sort="-device_total" if on_device else "-host_self",
        search="path",
        asks=("module", lambda row: row.path),
    )


PANEL = Panel(
    name="modules",
    title="Modules",
    about="where in the model the time goes",
    why_empty=why_empty,
    table=table,
)
