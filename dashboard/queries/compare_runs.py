"""Runs side by side: what their numbers are, and what may be said of them together.

Single launches never make a verdict: changes stand beside the reasons that
forbid one, and where commits are known pairs can be measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from dashboard.models import MetricValue, Result, Run, Trace, TraceState
from dashboard.queries.compare_reasons import RunColumn, against, sets_apart, spec_words
from dashboard.queries.side_by_side import FieldRow, SideBySide, field_rows, ordered
from profiler.metrics import HEADLINE, METRICS
from profiler.types import EXACT_ONLY, RunSpec
from profiler.units import change, quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricCell:
    """A value of one run; `change` against the baseline, None with the reason `why`."""

    value: float | None
    spread: float | None = None
    n: int = 0
    change: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    """One metric in every run, the baseline's cell first."""

    name: str
    title: str
    unit: str
    direction: str
    cells: tuple[MetricCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsView:
    """Runs side by side; `columns` begin with the baseline."""

    columns: tuple[RunColumn, ...]
    metrics: tuple[MetricRow, ...]
    workload: tuple[FieldRow, ...]
    environment: tuple[FieldRow, ...]
    missing: tuple[int, ...]
    sentence: str

    @property
    def baseline(self) -> RunColumn:
        return self.columns[0]

    @property
    def candidates(self) -> tuple[RunColumn, ...]:
        return self.columns[1:]

    @property
    def traced(self) -> tuple[RunColumn, ...]:
        """Candidates whose trace can be compared with the baseline's."""
        return tuple(c for c in self.candidates if c.trace) if self.baseline.trace else ()


def runs_view(wanted: SideBySide) -> RunsView | None:
    """The runs asked for; None when fewer than two of them exist."""
    related = ("workload__model", "platform", "commit__repository", "created_by")
    found = {run.pk: run for run in Run.objects.select_related(*related).filter(
        pk__in=wanted.numbers)}  # fmt: skip
    missing = tuple(number for number in wanted.numbers if number not in found)
    if len(found) < 2:
        return None
    columns = _columns([found[n] for n in ordered(wanted, tuple(found))])
    base = columns[0]
    columns = [base, *(against(base, column) for column in columns[1:])]
    metrics = _metric_rows(columns)
    return RunsView(
        columns=tuple(columns),
        metrics=metrics,
        workload=_spec_rows(columns),
        environment=field_rows(
            [column.environment for column in columns], lambda name: name not in EXACT_ONLY
        ),
        missing=missing,
        sentence=_sentence(columns, metrics),
    )


def _columns(runs: Sequence[Run]) -> list[RunColumn]:
    results = {
        result.run_id: result for result in Result.objects.filter(run__in=runs).defer("document")
    }
    values: dict[int, dict[str, MetricValue]] = {}
    stored = MetricValue.objects.filter(result__in=results.values()).defer("samples")
    for value in stored:
        values.setdefault(value.result_id, {})[value.name] = value
    traces: dict[int, Trace] = {}
    ready = Trace.objects.filter(run__in=runs, state=TraceState.READY).order_by("-rank")
    for trace in ready:
        assert trace.run_id is not None
        traces[trace.run_id] = trace
    return [_column(run, results.get(run.pk), values, traces.get(run.pk)) for run in runs]


def _column(
    run: Run,
    result: Result | None,
    values: Mapping[int, Mapping[str, MetricValue]],
    trace: Trace | None,
) -> RunColumn:
    environment = result.environment.get("fields", {}) if result else {}
    return RunColumn(
        run=run,
        spec=msgspec.convert(run.spec, RunSpec),
        environment={str(name): str(value) for name, value in environment.items()},
        comparable_hash=result.comparable_hash if result else "",
        metrics=values.get(result.pk, {}) if result else {},
        trace=trace,
    )


def _metric_rows(columns: Sequence[RunColumn]) -> tuple[MetricRow, ...]:
    """In the order of the definitions, the headline of the baseline's scenario first."""
    held = {name for column in columns for name in column.metrics}
    order = dict.fromkeys((HEADLINE[columns[0].run.workload.scenario], *METRICS))
    return tuple(_metric_row(name, columns) for name in order if name in held)


def _metric_row(name: str, columns: Sequence[RunColumn]) -> MetricRow:
    definition = METRICS[name]
    base = columns[0].metrics.get(name)
    return MetricRow(
        name=name,
        title=definition.title,
        unit=definition.unit,
        direction=definition.direction,
        cells=tuple(
            _cell(column, column.metrics.get(name), base, first=at == 0)
            for at, column in enumerate(columns)
        ),
    )


def _cell(
    column: RunColumn, value: MetricValue | None, base: MetricValue | None, *, first: bool
) -> MetricCell:
    if value is None:
        return MetricCell(value=None, why="not measured")
    spread = value.iqr / 2 if value.iqr is not None and value.n > 1 else None
    why = "" if first else _no_change_because(column, value, base)
    moved = value.value / base.value - 1 if base and not first and not why else None
    return MetricCell(value=value.value, spread=spread, n=value.n, change=moved, why=why)


def _no_change_because(column: RunColumn, value: MetricValue, base: MetricValue | None) -> str:
    if base is None:
        return "the baseline has none"
    if not column.same_work:
        return "not the same work"
    if value.definition != base.definition:
        return "defined differently"
    return "" if base.value else "the baseline is 0"


def _spec_rows(columns: Sequence[RunColumn]) -> tuple[FieldRow, ...]:
    base = columns[0]

    def matters(name: str) -> bool:
        return any(sets_apart(base, other, name) for other in columns[1:])

    return field_rows([spec_words(column.spec) for column in columns], matters)


def _sentence(columns: Sequence[RunColumn], metrics: Sequence[MetricRow]) -> str:
    """What is seen, and that it is no verdict."""
    base, others = columns[0], columns[1:]
    if len(others) > 1:
        return (
            f"{len(others)} runs beside run {base.run.pk}. Each is a single launch, so there are "
            "changes and no verdict."
        )
    other = others[0]
    row = metrics[0] if metrics else None
    if row is None or row.cells[0].value is None or row.cells[1].value is None:
        return f"Run {other.run.pk} beside run {base.run.pk}: nothing that both measured."
    one, two = (quantity(cell.value, row.unit) for cell in row.cells)
    if row.cells[1].change is None:
        return f"{row.title}: {two} beside {one}. {row.cells[1].why.capitalize()}: no change."
    return (
        f"{row.title}: {two} beside {one}, {change(row.cells[1].change)}. Single launches, so no "
        "verdict."
    )
