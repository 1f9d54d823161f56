"""Panel: the runs a template expands to, one a row, with their usual time where it is known."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.panels.table import Column, Table, Value
from dashboard.queries.templates import PlannedRun
from dashboard.services.spec_fields import SpecField, spec_fields
from profiler.types import RunSpec

ROWS = 50
_FIRST = ("model", "scenario")
_DEFAULTS = RunSpec(model="", scenario="prefill")


def workload_table(rows: Sequence[PlannedRun], *, timed: bool) -> Table[PlannedRun]:
    """Columns are the fields that any run sets apart from the defaults; `timed` adds history."""
    shown = [field for field in spec_fields().values() if _said(field, rows)]
    columns: list[Column[PlannedRun]] = [
        Column(key="number", title="No.", value=lambda row: row.number, kind="count"),
        *(_column(field) for field in shown),
    ]
    if timed:
        columns += [
            Column(key="usual", title="Usual time", value=lambda row: row.usual_ns, always=True),
            Column(key="past", title="Earlier runs", value=lambda row: row.past, kind="count"),
        ]
    return Table(
        name="workloads",
        noun="runs",
        about="In the order of the axes; the queue gets them in random order.",
        rows=rows,
        columns=tuple(columns),
        sort="number",
        search="model",
        size=ROWS,
    )


def _said(field: SpecField, rows: Sequence[PlannedRun]) -> bool:
    if field.name in _FIRST:
        return True
    default = getattr(_DEFAULTS, field.name)
    return any(getattr(row.spec, field.name) != default for row in rows)


def _column(field: SpecField) -> Column[PlannedRun]:
    kind = {"whole": "count", "number": "count", "table": "text"}.get(field.kind, "mono")

    def value(row: PlannedRun) -> Value:
        return cell_value(field, getattr(row.spec, field.name))

    return Column(key=field.name, title=field.title, value=value, kind=kind)


def cell_value(field: SpecField, value: object) -> Value:
    """A field's value as a table shows it; empty where the spec leaves it open."""
    if value is None:
        return None
    if field.kind == "table":
        return "given"
    if field.kind == "choices":
        assert isinstance(value, tuple)
        return "+".join(value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    assert isinstance(value, str | int | float)
    return value
