"""Columns that hold rows against the roofline, and times as those of a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar
from urllib.parse import urlencode

from django.urls import reverse

from dashboard.panels.table import Column
from profiler import units
from profiler.analysis.bounds import BoundRow, RooflineReport
from profiler.analysis.report import Report

Row = TypeVar("Row")


def step_words(report: Report) -> str:
    """What times are of, for a caption."""
    if len(report.steps) < 2:
        return "Calls and times are of the whole trace."
    steps = f"{len(report.steps):,} steps"
    return f"Calls and times are of the whole trace, divided by its {steps}; exports hold the sums."


def step_column(
    report: Report, key: str, title: str, value: Callable[[Row], int], *, kind: str = "ns"
) -> Column[Row]:
    """A sum over the trace as that of a step; as it is where steps are not known."""
    steps = len(report.steps)
    if steps < 2:
        return Column(key=key, title=title, value=value, kind=kind)
    return Column(
        key=key,
        title=f"{title} / step",
        value=lambda row: value(row) / steps,
        kind=kind,
        raw=value,
    )


def bounds_by_name(report: Report) -> dict[str, BoundRow]:
    """Counted operators by name."""
    return {row.name: row for row in _found(report).operators}


def bounds_by_shapes(report: Report) -> dict[tuple[str, str, str], BoundRow]:
    """Counted operators by name, shapes and number types."""
    return {(row.name, row.shapes, row.dtypes): row for row in _found(report).shapes}


def _found(report: Report) -> RooflineReport:
    return report.roofline or RooflineReport(time="", peak=None, counted_share=0.0)


def canonical_names(report: Report) -> dict[str, str]:
    """The name that vendors share, of every operator."""
    return {row.name: row.canonical or row.name for row in report.operators}


def operator_address(name: str) -> str:
    """The page of an operator."""
    return f"{reverse('operator')}?{urlencode({'name': name})}"


def achieved(row: BoundRow) -> str:
    """The rate that its bound is about: `412 TFLOP/s` or `2.02 TB/s`; empty without any."""
    if row.bound == "compute" and row.flop_rate:
        return units.rate(row.flop_rate, "FLOP/s")
    return units.rate(row.byte_rate, "B/s") if row.byte_rate else ""


def bound_columns(find: Callable[[Row], BoundRow | None]) -> tuple[Column[Row], ...]:
    """Achieved rates, bound and efficiency of rows; not known for those without a formula."""

    def of(key: str) -> Callable[[Row], float | None]:
        def value(row: Row) -> float | None:
            found = find(row)
            return getattr(found, key) if found else None

        return value

    return (
        Column(key="flops", title="FLOP/s", value=of("flop_rate"), kind="FLOP/s"),
        Column(key="traffic", title="Bytes/s", value=of("byte_rate"), kind="B/s"),
        Column(
            key="bound",
            title="Bound",
            value=lambda row: found.bound if (found := find(row)) else "uncounted",
            kind="text",
        ),
        Column(key="reached", title="Of roofline", value=of("efficiency"), kind="share"),
    )
