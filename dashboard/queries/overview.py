"""Reads behind the overview: the newest numbers of every model on every platform."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Max, Q

from dashboard.models import MetricValue, Run, RunState
from dashboard.queries.status import Pulse, pulse
from profiler.metrics import HEADLINE, METRICS
from profiler.types import SCENARIOS, Definition

HISTORY = 20
"""Values a sparkline shows at most."""

RECENT_RUNS = 2_000
"""Sparklines look back over so many runs of the installation, which bounds their cost."""

ROWS = 50
ATTENTION = 8
UNSUCCESSFUL = (RunState.FAILED, RunState.TIMED_OUT, RunState.LOST, RunState.EXPIRED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """The headline metric of the last run that succeeded; `spread` is half the IQR."""

    run_id: int
    metric: str
    title: str
    unit: str
    direction: str
    value: float
    spread: float | None
    n: int
    history: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One scenario of a model on a platform: its most recently run workload."""

    scenario: str
    workload: str
    newest_run_id: int
    newest_state: str
    newest_at: datetime
    measure: Measure | None
    others: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A model on a platform, a cell (or None) per scenario."""

    model: str
    title: str
    platform: str
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """A workload whose newest run did not succeed."""

    run_id: int
    model: str
    scenario: str
    workload: str
    platform: str
    state: str
    kind: str
    message: str
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The whole page."""

    rows: tuple[Row, ...]
    rows_total: int
    models: int
    platforms: int
    workloads: int
    measured: int
    attention: tuple[Attention, ...]
    attention_total: int
    succeeded_today: int
    now: Pulse

    @property
    def empty(self) -> bool:
        return not self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A scenario and the metric that stands for it."""

    scenario: str
    metric: Definition


_Place = tuple[int, int, str]
"""Model, platform, scenario: one cell of the grid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """A workload on a platform with its newest run and its newest measured one."""

    workload_id: int
    platform_id: int
    newest: int
    measured: int | None


def overview() -> Overview:
    """The grid and what needs a look, in a fixed number of queries."""
    pairs = _pairs()
    runs = _runs(pairs)
    rows = _rows(_newest_per_cell(pairs, runs), runs)
    bad = sorted(
        (runs[pair.newest] for pair in pairs if runs[pair.newest].state in UNSUCCESSFUL),
        key=lambda run: run.ended_at or run.created_at,
        reverse=True,
    )
    now = pulse()
    return Overview(
        rows=rows[:ROWS],
        rows_total=len(rows),
        models=len({row.model for row in rows}),
        platforms=len({row.platform for row in rows}),
        workloads=len(pairs),
        measured=sum(pair.measured is not None for pair in pairs),
        attention=tuple(_attention(run) for run in bad[:ATTENTION]),
        attention_total=len(bad),
        succeeded_today=Run.objects.filter(
            state=RunState.SUCCEEDED, ended_at__gt=now.at - timedelta(hours=24)
        ).count(),
        now=now,
    )


def columns() -> tuple[Column, ...]:
    """The columns of the grid, in the order of each row's cells."""
    return tuple(Column(scenario=name, metric=METRICS[HEADLINE[name]]) for name in SCENARIOS)


def _pairs() -> list[_Pair]:
    done = Max("id", filter=Q(state=RunState.SUCCEEDED))
    runs = Run.objects.filter(compared__isnull=True)  # a session has no result of its own
    rows = runs.values("workload_id", "platform_id").annotate(newest=Max("id"), done=done)
    return [
        _Pair(
            workload_id=row["workload_id"],
            platform_id=row["platform_id"],
            newest=row["newest"],
            measured=row["done"],
        )
        for row in rows.order_by()
    ]


def _runs(pairs: Iterable[_Pair]) -> dict[int, Run]:
    """The newest run of every pair."""
    rows = Run.objects.filter(pk__in=[pair.newest for pair in pairs])
    return {
        run.pk: run
        for run in rows.select_related("workload__model", "platform").defer("spec", "log_tail")
    }


def _newest_per_cell(pairs: Iterable[_Pair], runs: dict[int, Run]) -> dict[_Place, list[_Pair]]:
    """Pairs by their place in the grid, the most recently run workload first."""
    places: dict[_Place, list[_Pair]] = defaultdict(list)
    for pair in pairs:
        run = runs[pair.newest]
        places[run.workload.model_id, run.platform_id, run.workload.scenario].append(pair)
    for place in places.values():
        place.sort(key=lambda pair: -pair.newest)
    return places


def _rows(places: dict[_Place, list[_Pair]], runs: dict[int, Run]) -> tuple[Row, ...]:
    shown = [place[0] for place in places.values()]
    measures = _measures(shown, runs)
    rows: dict[tuple[int, int], list[_Place]] = defaultdict(list)
    for place in places:
        rows[place[:2]].append(place)
    made = []
    for found in rows.values():
        cells = {place[2]: _cell(places[place], runs, measures) for place in found}
        run = runs[places[found[0]][0].newest]
        made.append(
            Row(
                model=run.workload.model.name,
                title=run.workload.model.title,
                platform=run.platform.slug,
                cells=tuple(cells.get(scenario) for scenario in SCENARIOS),
            )
        )
    return tuple(sorted(made, key=lambda row: (row.model, row.platform)))


def _cell(place: Sequence[_Pair], runs: dict[int, Run], measures: dict[int, Measure]) -> Cell:
    run = runs[place[0].newest]
    return Cell(
        scenario=run.workload.scenario,
        workload=run.workload.label,
        newest_run_id=run.pk,
        newest_state=run.state,
        newest_at=run.ended_at or run.started_at or run.created_at,
        measure=measures.get(place[0].measured or 0),
        others=len(place) - 1,
    )


def _measures(pairs: Iterable[_Pair], runs: dict[int, Run]) -> dict[int, Measure]:
    """The headline value of each pair's measured run, with the values before it."""
    scenarios = {
        pair.measured: runs[pair.newest].workload.scenario for pair in pairs if pair.measured
    }
    values = _values(scenarios)
    history = _histories([pair for pair in pairs if pair.measured])
    found: dict[int, Measure] = {}
    for run_id, scenario in scenarios.items():
        row = values.get((run_id, HEADLINE[scenario]))
        if row is not None:
            found[run_id] = _measure(run_id, row, history.get((run_id, row.name), ()))
    return found


def _values(run_ids: Iterable[int]) -> dict[tuple[int, str], MetricValue]:
    rows = MetricValue.objects.filter(
        result__run_id__in=list(run_ids), name__in=HEADLINE.values()
    ).select_related("result")
    light = rows.defer("samples", "percentiles", "result__document", "result__environment")
    return {(row.result.run_id, row.name): row for row in light}


def _histories(pairs: Sequence[_Pair]) -> dict[tuple[int, str], tuple[float, ...]]:
    """Headline values of the last runs of each pair, oldest first; key: measured run, metric."""
    owner = {(pair.workload_id, pair.platform_id): pair.measured or 0 for pair in pairs}
    since = max(owner.values(), default=0) - RECENT_RUNS
    rows = MetricValue.objects.filter(
        name__in=HEADLINE.values(),
        result__run_id__gt=since,
        result__run__workload_id__in={pair.workload_id for pair in pairs},
    ).order_by("-result__run_id")
    found: dict[tuple[int, str], list[float]] = defaultdict(list)
    columns = ("result__run__workload_id", "result__run__platform_id", "name", "value")
    for workload_id, platform_id, name, value in rows.values_list(*columns):
        run_id = owner.get((workload_id, platform_id))
        if run_id is not None and len(found[run_id, name]) < HISTORY:
            found[run_id, name].append(value)
    return {key: tuple(reversed(values)) for key, values in found.items()}


def _measure(run_id: int, row: MetricValue, history: tuple[float, ...]) -> Measure:
    return Measure(
        run_id=run_id,
        metric=row.name,
        title=METRICS[row.name].title,
        unit=row.unit,
        direction=row.direction,
        value=row.value,
        spread=row.iqr / 2 if row.iqr is not None and row.n > 1 else None,
        n=row.n,
        history=history,
    )


def _attention(run: Run) -> Attention:
    return Attention(
        run_id=run.pk,
        model=run.workload.model.name,
        scenario=run.workload.scenario,
        workload=run.workload.label,
        platform=run.platform.slug,
        state=run.state,
        kind=run.get_failure_kind_display(),
        message=run.failure_message,
        ended_at=run.ended_at,
    )
