"""Columns of the CSV exports. Units stand in the headings; values keep all their digits."""

from __future__ import annotations

from collections.abc import Iterator

from dashboard.models import Operator
from dashboard.queries.run_detail import MetricView
from dashboard.queries.runs import RunRow
from dashboard.views.downloads import Cell

RUN_COLUMNS = (
    "run",
    "model",
    "scenario",
    "workload",
    "platform",
    "state",
    "reason",
    "metric",
    "unit",
    "value",
    "half_iqr",
    "n",
    "trace_state",
    "by",
    "created_at",
    "ended_at",
    "took_ns",
)
METRIC_COLUMNS = (
    "metric",
    "title",
    "unit",
    "better",
    "phase",
    "value",
    "half_iqr",
    "n",
    "minimum",
    "maximum",
    "cov",
    "method",
)
SAMPLE_COLUMNS = ("metric", "unit", "sample", "value")
OPERATOR_COLUMNS = (
    "operator",
    "calls",
    "host_self_ns",
    "host_total_ns",
    "device_self_ns",
    "device_total_ns",
)


def run_cells(row: RunRow) -> tuple[Cell, ...]:
    """One run, in the order of `RUN_COLUMNS`."""
    value = row.headline
    measured: tuple[Cell, ...] = (None, None, None, None, None)
    if value is not None:
        measured = (value.title, value.unit, value.value, value.spread, value.n)
    ended = row.ended_at.isoformat() if row.ended_at else None
    return (
        *(row.id, row.model, row.scenario, row.workload, row.platform, row.state, row.reason),
        *measured,
        *(row.trace_state, row.by, row.created_at.isoformat(), ended, row.took_ns),
    )


def metric_cells(metric: MetricView) -> tuple[Cell, ...]:
    """One metric, in the order of `METRIC_COLUMNS`."""
    return (
        *(metric.name, metric.title, metric.unit, metric.direction, metric.phase),
        *(metric.value, metric.spread, metric.n, metric.minimum, metric.maximum, metric.cov),
        metric.method,
    )


def sample_rows(metric: MetricView) -> Iterator[tuple[Cell, ...]]:
    """The samples of one metric in the order they were taken."""
    for number, value in enumerate(metric.samples, start=1):
        yield (metric.name, metric.unit, number, value)


def operator_cells(row: Operator) -> tuple[Cell, ...]:
    """One operator, in the order of `OPERATOR_COLUMNS`."""
    return (
        *(row.name, row.count, row.host_self_ns, row.host_total_ns),
        *(row.device_self_ns, row.device_total_ns),
    )
