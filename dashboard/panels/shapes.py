"""Panel: operators by name, input shapes and number types."""

from __future__ import annotations

import json

from dashboard.panels.base import Panel
from dashboard.panels.bounds import (
    bound_columns,
    bounds_by_shapes,
    canonical_names,
    operator_address,
    step_column,
    step_words,
)
from dashboard.panels.table import Column, Table
from profiler.analysis.report import Report, ShapeRow

_SHORT = {"float": "fp32", "double": "fp64", "half": "fp16", "bfloat16": "bf16"}
_TENSORS_SHOWN = 8


def why_empty(report: Report) -> str:
    """Shapes are there only when the recording was asked for them."""
    if report.operator_shapes:
        return ""
    return (
        "No input shapes were recorded. Record with record_shapes=True to split operators by them."
    )


def inputs(row: ShapeRow) -> str:
    """Shapes with number types in one line: `8944×1024 bf16, 1024×2816 bf16`."""
    if not row.shapes.strip():
        return "not recorded"
    shapes, dtypes = _list(row.shapes), _list(row.dtypes)
    if shapes is None:
        return " ".join(row.shapes.split())
    said = [
        " ".join(filter(None, (_shape(shape), _dtype(dtypes, at))))
        for at, shape in enumerate(shapes)
        if isinstance(shape, list) and shape
    ]
    if len(said) > _TENSORS_SHOWN:
        said = [*said[:_TENSORS_SHOWN], f"and {len(said) - _TENSORS_SHOWN} more"]
    return ", ".join(said) or "no tensor"


def _list(text: str) -> list[object] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None  # written by a tool with its own way of writing shapes: shown as it is
    return found if isinstance(found, list) else None


def _shape(shape: list[object]) -> str:
    if all(isinstance(size, int) for size in shape):
        return "×".join(str(size) for size in shape)
    return f"[{', '.join(_shape(inner) for inner in shape if isinstance(inner, list))}]"


def _dtype(dtypes: list[object] | None, at: int) -> str:
    if dtypes is None or at >= len(dtypes):
        return ""
    name = str(dtypes[at]).removeprefix("c10::").lower()
    return _SHORT.get(name, name)


def _whole(row: ShapeRow) -> str:
    return f"{' '.join(row.shapes.split())} {' '.join(row.dtypes.split())}".strip()


def _own(row: ShapeRow, *, on_device: bool) -> int:
    return row.device_self_ns if on_device else row.host_self_ns


def table(report: Report) -> Table[ShapeRow]:
    """The same operator with other inputs is another row."""
    bounds = bounds_by_shapes(report)
    names = canonical_names(report)
    on_device = any(row.device_self_ns for row in report.operator_shapes)
    whole_ns = sum(_own(row, on_device=on_device) for row in report.operator_shapes)
    columns: tuple[Column[ShapeRow], ...] = (
        Column(
            key="name",
            title="Operator",
            value=lambda row: row.name,
            kind="mono",
            link=lambda row: operator_address(names.get(row.name, row.name)),
        ),
        Column(key="inputs", title="Inputs", value=inputs, kind="mono", full=_whole),
        step_column(report, "calls", "Calls", lambda row: row.count, kind="count"),
        Column(
            key="share",
            title="Share",
            value=lambda row: _own(row, on_device=on_device) / whole_ns if whole_ns else None,
            kind="share",
        ),
        step_column(report, "device_self", "Device self", lambda row: row.device_self_ns),
        step_column(report, "device_total", "Device total", lambda row: row.device_total_ns),
        step_column(report, "host_self", "Host self", lambda row: row.host_self_ns),
        step_column(report, "host_total", "Host total", lambda row: row.host_total_ns),
        *bound_columns(lambda row: bounds.get((row.name, row.shapes, row.dtypes))),
    )
    return Table(
        name="shapes",
        noun="operators with shapes",
        about=f"Calls with the same shapes and number types are one row. {step_words(report)}",
        rows=report.operator_shapes,
        columns=columns,
        sort="-device_self" if on_device else "-host_self",
        search="name",
        size=15,
    )


PANEL = Panel(
    name="shapes",
    title="Operators by shapes",
    about="the same operator split by the shapes and number types of its inputs",
    why_empty=why_empty,
    table=table,
)
