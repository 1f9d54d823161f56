"""Reads behind the list of runs: filter, order, page, and one headline value a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, Q, QuerySet

from dashboard.models import MetricValue, Run, RunState
from dashboard.models.runs import ACTIVE, TERMINAL
from dashboard.queries.columns import constant
from profiler.metrics import HEADLINE, METRICS

PAGE_SIZE = 50
EXPORT_LIMIT = 10_000

SORTS: dict[str, tuple[str, ...]] = {
    "run": ("id",),
    "model": ("workload__model__name", "workload__scenario", "id"),
    "scenario": ("workload__scenario", "workload__model__name", "id"),
    "platform": ("platform__slug", "id"),
    "state": ("state", "id"),
    "duration": ("took", "id"),
}
"""Columns a reader may sort by; ties are broken by the run's number."""

GROUPS: dict[str, tuple[str, ...]] = {
    "active": tuple(str(state) for state in ACTIVE),
    "unsuccessful": tuple(str(state) for state in TERMINAL if state != RunState.SUCCEEDED),
}
"""Names for several states at once, beside the states themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """What a reader asks the list for; the default is everything, newest first."""

    model: str = ""
    scenario: str = ""
    state: str = ""
    platform: str = ""
    template: str = ""
    group: int | None = None
    text: str = ""
    sort: str = "-run"
    page: int = 1

    @property
    def narrows(self) -> bool:
        words = (self.model, self.scenario, self.state, self.platform, self.template, self.text)
        return any(words) or self.group is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The metric that stands for a run: its value with half the interquartile range."""

    title: str
    unit: str
    value: float
    spread: float | None
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One line of the list."""

    id: int
    model: str
    scenario: str
    workload: str
    platform: str
    state: str
    reason: str
    trace_state: str
    by: str
    created_at: datetime
    ended_at: datetime | None
    took_ns: float | None
    headline: Headline | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """One page of the list, and how many rows there are in all."""

    rows: tuple[RunRow, ...]
    total: int
    page: int
    pages: int
    same: dict[str, str]
    """Columns that say the same in every row of the whole list, with what they say."""


_COLUMNS: dict[str, Callable[[RunRow], str]] = {
    "model": lambda row: row.model,
    "scenario": lambda row: row.scenario,
    "parameters": lambda row: row.workload,
    "platform": lambda row: row.platform,
    "metric": lambda row: row.headline.title if row.headline else "",
}


def run_page(wanted: RunFilter) -> RunPage:
    """The page asked for; a page past the end is the last one."""
    found = _found(wanted)
    total = found.count()
    pages = max(1, -(-total // PAGE_SIZE))
    page = min(wanted.page, pages)
    start = (page - 1) * PAGE_SIZE
    rows = tuple(_rows(_ordered(found, wanted.sort)[start : start + PAGE_SIZE]))
    # On one of several pages equal rows say nothing of the other pages.
    same = constant(rows, _COLUMNS) if pages == 1 else {}
    return RunPage(rows=rows, total=total, page=page, pages=pages, same=same)


def run_export(wanted: RunFilter) -> tuple[RunRow, ...]:
    """Every row the filter leaves, up to `EXPORT_LIMIT`, in the order of the page."""
    return tuple(_rows(_ordered(_found(wanted), wanted.sort)[:EXPORT_LIMIT]))


def all_runs() -> tuple[RunRow, ...]:
    """Every run, oldest first: what `manage.py runs` prints."""
    return tuple(_rows(_ordered(Run.objects.all(), "run")))


def _found(wanted: RunFilter) -> QuerySet[Run]:
    runs = Run.objects.all()
    if wanted.model:
        runs = runs.filter(workload__model__name=wanted.model)
    if wanted.scenario:
        runs = runs.filter(workload__scenario=wanted.scenario)
    if wanted.platform:
        runs = runs.filter(platform__slug=wanted.platform)
    if wanted.template:
        runs = runs.filter(group__version__template__name=wanted.template)
    if wanted.group is not None:
        runs = runs.filter(group_id=wanted.group)
    if wanted.state:
        runs = runs.filter(state__in=GROUPS.get(wanted.state, (wanted.state,)))
    return runs.filter(_text(wanted.text)) if wanted.text else runs


def _text(text: str) -> Q:
    hit = (
        Q(workload__model__name__icontains=text)
        | Q(workload__model__title__icontains=text)
        | Q(failure_message__icontains=text)
        | Q(worker__icontains=text)
        | Q(created_by__username__icontains=text)
    )
    number = text.lstrip("#")
    if number.isascii() and number.isdigit() and len(number) < 19:
        hit |= Q(id=int(number))
    return hit


def _ordered(runs: QuerySet[Run], sort: str) -> QuerySet[Run]:
    down = sort.startswith("-")
    columns = SORTS[sort.removeprefix("-")]
    if "took" in columns:
        runs = runs.annotate(took=F("ended_at") - F("started_at"))
    order = [
        F(name).desc(nulls_last=True) if down else F(name).asc(nulls_last=True) for name in columns
    ]
    return runs.order_by(*order)


def _rows(runs: QuerySet[Run]) -> Iterator[RunRow]:
    page = list(
        runs.select_related("workload__model", "platform", "created_by").prefetch_related("traces")
    )
    headlines = _headlines(run.pk for run in page)
    for run in page:
        yield _row(run, headlines.get((run.pk, HEADLINE[run.workload.scenario])))


def _headlines(run_ids: Iterable[int]) -> dict[tuple[int, str], MetricValue]:
    values = MetricValue.objects.filter(
        result__run_id__in=list(run_ids), name__in=set(HEADLINE.values())
    )
    return {
        (value.result.run_id, value.name): value
        for value in values.select_related("result").defer(
            "samples", "result__document", "result__environment"
        )
    }


def _row(run: Run, value: MetricValue | None) -> RunRow:
    traces = sorted(run.traces.all(), key=lambda trace: trace.rank)
    return RunRow(
        id=run.pk,
        model=run.workload.model.name,
        scenario=run.workload.scenario,
        workload=run.workload.label,
        platform=run.platform.slug,
        state=run.state,
        reason=run.get_failure_kind_display() if run.failure_kind else "",
        trace_state=traces[0].state if traces else "",
        by=run.created_by.username if run.created_by else "",
        created_at=run.created_at,
        ended_at=run.ended_at,
        took_ns=took_ns(run),
        headline=_headline(value) if value else None,
    )


def _headline(value: MetricValue) -> Headline:
    return Headline(
        title=METRICS[value.name].title,
        unit=value.unit,
        value=value.value,
        spread=value.iqr / 2 if value.iqr is not None and value.n > 1 else None,
        n=value.n,
    )


def took_ns(run: Run) -> float | None:
    """Nanoseconds from the first claim to the end; `None` while either is missing."""
    if run.started_at is None or run.ended_at is None:
        return None
    return (run.ended_at - run.started_at).total_seconds() * 1e9
