"""Reads behind the overview: how every model stands on every platform, and what needs a look."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q
from django.urls import reverse

from dashboard.models import (
    Change,
    ChangeDirection,
    ChangeState,
    ComparedWorkload,
    Run,
    RunState,
)
from dashboard.queries.standings import Measure, StandingFacts, all_standings
from dashboard.queries.status import Pulse, pulse
from dashboard.services.clock import db_now
from profiler import units
from profiler.metrics import HEADLINE, METRICS
from profiler.types import SCENARIOS, Definition

ROWS = 25
ATTENTION = 8
COMPARISONS = 300
"""The newest compared workloads with a verdict: a row's last change is looked for among them."""

STALE_AFTER = timedelta(days=30)
"""A model that nobody measured for so long is stale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One scenario of a model on a platform.

    `measure` is that of the workload which ran last, `ratio` the geometric
    mean over all workloads that have a Day-0 and a later point.
    """

    scenario: str
    workload: str
    workload_id: int
    measure: Measure | None
    ratio: float | None
    ratios: int
    others: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LastChange:
    """The newest verdict of a paired comparison of a model on a platform."""

    scenario: str
    verdict: str
    effect: float | None
    tone: str
    address: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A model on a platform, a cell (or None) per scenario; `roofline` is of its newest trace."""

    model: str
    title: str
    platform: str
    cells: tuple[Cell | None, ...]
    roofline: float | None
    counted: float | None
    change: LastChange | None
    newest_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """One thing that needs a look: a confirmed slow-down, a failed newest run, or silence.

    `kind` is slower, failed, stale or never.
    """

    kind: str
    title: str
    model: str
    platform: str
    scenario: str
    workload: str
    text: str
    address: str
    at: datetime | None
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The whole page; lists are cut, totals say how many there are."""

    rows: tuple[Row, ...]
    rows_total: int
    models: int
    platforms: int
    workloads: int
    measured: int
    attention: tuple[Attention, ...]
    attention_total: int
    slower: int
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


def overview() -> Overview:
    """The grid and what needs a look, in a fixed number of queries."""
    now = pulse()
    standings = all_standings()
    rows = _rows(standings, _last_changes())
    attention = [*_slower(), *_failed(standings), *_silent(standings, now.at)]
    return Overview(
        rows=rows[:ROWS],
        rows_total=len(rows),
        models=len({row.model for row in rows}),
        platforms=len({row.platform for row in rows}),
        workloads=len(standings),
        measured=sum(one.measure is not None for one in standings),
        attention=tuple(attention[:ATTENTION]),
        attention_total=len(attention),
        slower=sum(item.kind == "slower" for item in attention),
        succeeded_today=Run.objects.filter(
            state=RunState.SUCCEEDED, ended_at__gt=now.at - timedelta(hours=24)
        ).count(),
        now=now,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPage:
    """One page of the models on platforms, by name."""

    rows: tuple[Row, ...]
    total: int
    page: int
    pages: int


def model_page(text: str, page: int) -> ModelPage:
    """Those whose name or platform holds the text; a page past the end is the last one."""
    wanted = text.casefold()
    found = [
        one
        for one in all_standings()
        if wanted in one.model.casefold() or wanted in one.platform.casefold()
    ]
    rows = _rows(found, _last_changes())
    pages = max(1, -(-len(rows) // ROWS))
    page = min(page, pages)
    shown = rows[(page - 1) * ROWS : page * ROWS]
    return ModelPage(rows=shown, total=len(rows), page=page, pages=pages)


def columns() -> tuple[Column, ...]:
    """The columns of the grid, in the order of each row's cells."""
    return tuple(Column(scenario=name, metric=METRICS[HEADLINE[name]]) for name in SCENARIOS)


def _rows(
    standings: Sequence[StandingFacts], changes: dict[tuple[int, int], LastChange]
) -> tuple[Row, ...]:
    places: dict[tuple[str, str], list[StandingFacts]] = defaultdict(list)
    for one in standings:
        places[one.model, one.platform].append(one)
    return tuple(_row(places[place], changes) for place in sorted(places))


def _row(found: Sequence[StandingFacts], changes: dict[tuple[int, int], LastChange]) -> Row:
    first = found[0]
    traced = max(
        (one for one in found if one.roofline is not None),
        key=lambda one: one.trace_run_id or 0,
        default=None,
    )
    return Row(
        model=first.model,
        title=first.title,
        platform=first.platform,
        cells=tuple(_cell([one for one in found if one.scenario == name]) for name in SCENARIOS),
        roofline=traced.roofline if traced else None,
        counted=traced.counted if traced else None,
        change=changes.get((first.model_id, first.platform_id)),
        newest_at=first.newest.at if first.newest else None,
    )


def _cell(found: Sequence[StandingFacts]) -> Cell | None:
    """The workload that ran last stands for the scenario; those measured come first."""
    if not found:
        return None
    shown = next((one for one in found if one.measure), found[0])
    ratios = [ratio for one in found if one.measure and (ratio := one.measure.ratio)]
    return Cell(
        scenario=shown.scenario,
        workload=shown.workload,
        workload_id=shown.workload_id,
        measure=shown.measure,
        ratio=math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if ratios else None,
        ratios=len(ratios),
        others=len(found) - 1,
    )


def _last_changes() -> dict[tuple[int, int], LastChange]:
    """The newest verdict by model and platform, in one query."""
    rows = ComparedWorkload.objects.filter(~Q(verdict=""), comparison__ended_at__isnull=False)
    columns = (
        "workload__model_id",
        "comparison__platform_id",
        "workload__scenario",
        "verdict",
        "effect",
        "comparison_id",
        "comparison__ended_at",
    )
    found: dict[tuple[int, int], LastChange] = {}
    for row in rows.order_by("-comparison_id", "position").values_list(*columns)[:COMPARISONS]:
        if row[6] is None or (row[0], row[1]) in found:
            continue
        found[row[0], row[1]] = LastChange(
            scenario=row[2],
            verdict=row[3],
            effect=row[4],
            tone={"faster": "better", "slower": "worse"}.get(row[3], ""),
            address=reverse("comparison-detail", args=[row[5]]),
            at=row[6],
        )
    return found


def _slower() -> Iterator[Attention]:
    """Confirmed slow-downs that nobody has acknowledged or fixed, the newest first."""
    rows = Change.objects.filter(
        state=ChangeState.CONFIRMED, direction=ChangeDirection.SLOWER
    ).select_related("workload__model", "platform", "after_commit")
    for row in rows.order_by("-state_at", "-id"):
        sha = row.after_commit.sha[:10]
        yield Attention(
            kind="slower",
            title=f"{units.change(row.shown_effect)} with {sha}",
            model=row.workload.model.name,
            platform=row.platform.slug,
            scenario=row.workload.scenario,
            workload=row.workload.label,
            text=_culprit(row),
            address=reverse("change-detail", args=[row.pk]),
            at=row.state_at,
        )


def _culprit(row: Change) -> str:
    """The commit's subject, and the operator that took most of it where that is known."""
    operator = f" Most of it: {row.culprit}." if row.culprit else ""
    return f"{row.after_commit.subject}.{operator}"


def _failed(standings: Iterable[StandingFacts]) -> list[Attention]:
    """Workloads whose newest run did not succeed, the last to end first."""
    found = [
        Attention(
            kind="failed",
            title=one.newest.kind,
            model=one.model,
            platform=one.platform,
            scenario=one.scenario,
            workload=one.workload,
            text=one.newest.message,
            address=reverse("run-detail", args=[one.newest.run_id]),
            at=one.newest.at,
            state=one.newest.state,
        )
        for one in standings
        if one.newest is not None and one.newest.unsuccessful
    ]
    return sorted(found, key=lambda item: item.at or db_now(), reverse=True)


def _silent(standings: Iterable[StandingFacts], now: datetime) -> list[Attention]:
    """Models on platforms without any result, and those measured too long ago."""
    places: dict[tuple[str, str], list[StandingFacts]] = defaultdict(list)
    for one in standings:
        places[one.model, one.platform].append(one)
    found = [item for place in places.values() if (item := _silence(place, now))]
    return sorted(found, key=lambda item: (item.kind, item.model, item.platform))


def _silence(found: Sequence[StandingFacts], now: datetime) -> Attention | None:
    newest = [one.newest for one in found if one.newest]
    if any(run.active or run.unsuccessful for run in newest):
        return None  # something is on its way, or is told as a failure already
    first = found[0]
    moments = [one.measure.at for one in found if one.measure and one.measure.at]
    if moments and now - max(moments) < STALE_AFTER:
        return None
    kind = "stale" if moments else "never"
    said = "not measured for a long time" if moments else "never measured"
    return Attention(
        kind=kind,
        title=said,
        model=first.model,
        platform=first.platform,
        scenario="",
        workload="",
        text="Its last result is old: what holds today is not known."
        if moments
        else "No run of it has a result yet.",
        address=reverse("model-detail", args=[first.model, first.platform]),
        at=max(moments) if moments else None,
    )
