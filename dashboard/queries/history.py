"""Reads behind the page of a model on a platform: the histories of its workloads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
from django.db.models import QuerySet

from dashboard.models import MetricValue as Value
from dashboard.models import Model, Platform, Result, Run, RunState
from dashboard.queries.history_marks import Mark, Window, marks_of
from dashboard.queries.standings import StandingDetail, standings_of
from dashboard.services.history import from_source
from profiler.analysis import history
from profiler.analysis.compare import FieldDifference, environment_differences
from profiler.metrics import HEADLINE, METRICS
from profiler.types import SCENARIOS, Definition, Environment

RUNS = (200, 50, 1000, 5000)
"""How many of the last runs a chart may show, the default first; the CSV has every run."""

BOUNDARIES = 12
"""Environment changes whose differences are looked up, the newest of each chart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryWish:
    """Which workload of each scenario is drawn, from which source, and how far back.

    `source` None is that of the newest result, "" runs without a commit.
    """

    workloads: Mapping[str, int]
    source: str | None = None
    runs: int = RUNS[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One point with what its launches belong to; `sha` is empty for runs without a commit."""

    point: history.Point
    sha: str
    subject: str
    at: datetime

    @property
    def name(self) -> str:
        """How the point is called on the axis and in the table."""
        return self.sha[:10] if self.sha else f"run {self.point.run_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """Where the environment changed: before the place of that index."""

    index: int
    differences: tuple[FieldDifference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The history of one workload from one source, oldest place first.

    `left_out` earlier runs are not drawn; `others` are further workloads of
    the scenario.
    """

    facts: StandingDetail
    metric: Definition
    source: str
    places: tuple[Place, ...]
    boundaries: tuple[Boundary, ...]
    marks: tuple[Mark, ...]
    left_out: int
    others: tuple[StandingDetail, ...]

    @property
    def by_commit(self) -> bool:
        """Whether commits give the order, and not the runs themselves."""
        return bool(self.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelHistory:
    """The page: every standing, and the chosen one of each scenario drawn."""

    model: str
    title: str
    platform: str
    platform_id: int
    model_id: int
    standings: tuple[StandingDetail, ...]
    histories: tuple[History, ...]
    source: str | None

    @property
    def sources(self) -> tuple[str, ...]:
        """Where runs come from, the most frequent first."""
        counts: dict[str, int] = {}
        for one in self.standings:
            for source, runs in one.sources:
                counts[source] = counts.get(source, 0) + runs
        return tuple(sorted(counts, key=lambda name: (-counts[name], name)))


def model_history(model: str, platform: str, wish: HistoryWish) -> ModelHistory | None:
    """The page asked for; None where there is no such model or platform."""
    standings = standings_of(model, platform)
    if not standings:
        return _empty(model, platform)
    first = standings[0]
    chosen = [one for scenario in SCENARIOS if (one := _chosen(standings, scenario, wish))]
    drawn = [_drawn(one, wish) for one in chosen]
    boundaries = _boundaries(drawn)
    window = Window(
        model_id=first.model_id,
        platform_id=first.platform_id,
        workload_ids=tuple(one.workload_id for one in chosen),
    )
    marks = marks_of(window)
    return ModelHistory(
        model=first.model,
        title=first.title,
        platform=first.platform,
        platform_id=first.platform_id,
        model_id=first.model_id,
        standings=tuple(standings),
        source=wish.source,
        histories=tuple(
            History(
                facts=one.facts,
                metric=METRICS[HEADLINE[one.facts.scenario]],
                source=one.source,
                places=one.places,
                boundaries=boundaries[one.facts.id],
                marks=tuple(mark for mark in marks if mark.concerns(one.facts.workload_id)),
                left_out=one.left_out,
                others=tuple(
                    other
                    for other in standings
                    if other.scenario == one.facts.scenario and other.id != one.facts.id
                ),
            )
            for one in drawn
        ),
    )


def _empty(model: str, platform: str) -> ModelHistory | None:
    row, where = model_rows(model, platform)
    if row is None or where is None:
        return None
    return ModelHistory(
        model=row.name,
        title=row.title,
        platform=where.slug,
        platform_id=where.pk,
        model_id=row.pk,
        standings=(),
        histories=(),
        source=None,
    )


def _chosen(
    standings: Sequence[StandingDetail], scenario: str, wish: HistoryWish
) -> StandingDetail | None:
    """The workload asked for, else the measured one whose run is the newest."""
    found = [one for one in standings if one.scenario == scenario and one.measure]
    wanted = wish.workloads.get(scenario)
    return next((one for one in found if one.workload_id == wanted), found[0] if found else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    """Places of one history, without what needs a look at all of them together."""

    facts: StandingDetail
    source: str
    places: tuple[Place, ...]
    left_out: int


def _drawn(facts: StandingDetail, wish: HistoryWish) -> _Drawn:
    known = dict(facts.sources)
    source = facts.source if wish.source is None or wish.source not in known else wish.source
    rows = list(_readings(facts, source, runs=wish.runs))
    return _Drawn(
        facts=facts,
        source=source,
        places=_places(rows),
        left_out=max(0, known.get(source, 0) - len(rows)),
    )


_COLUMNS = (
    "result__run_id",
    "result__run__commit__position",
    "value",
    "iqr",
    "n",
    "result__comparable_hash",
    "result__run__commit__sha",
    "result__run__commit__subject",
    "result__run__created_at",
)


def _readings(
    facts: StandingDetail, source: str, *, runs: int | None = None
) -> QuerySet[Value, tuple[Any, ...]]:
    """Launches of a history from a source, the last in the order first; the last `runs` alone.

    The runs are chosen before anything is looked up for them: of a long history most is not drawn.
    """
    chosen = from_source(
        Run.objects.filter(
            workload=facts.workload_id, platform=facts.platform_id, state=RunState.SUCCEEDED
        ),
        "commit",
        source,
    ).order_by("-commit__position", "-id")
    wanted = chosen.values("pk") if runs is None else chosen.values("pk")[:runs]
    found = Value.objects.filter(name=HEADLINE[facts.scenario], result__run__in=wanted)
    return found.order_by("-result__run__commit__position", "-result__run_id").values_list(
        *_COLUMNS
    )


def _places(rows: Sequence[tuple[Any, ...]]) -> tuple[Place, ...]:
    about = {row[0]: row for row in rows}
    readings = [
        history.Reading(
            run_id=row[0],
            place=row[0] if row[1] is None else row[1],
            value=row[2],
            iqr=row[3],
            n=row[4],
            environment=row[5],
        )
        for row in rows
    ]
    found = []
    for point in history.points(readings):
        newest = about[point.run_id]
        place = Place(point=point, sha=newest[6] or "", subject=newest[7] or "", at=newest[8])
        found.append(place)
    return tuple(found)


def _boundaries(drawn: Sequence[_Drawn]) -> dict[int, tuple[Boundary, ...]]:
    """Where the environment changed in each history, with what changed, in one query."""
    starts = {
        one.facts.id: [
            first for first, _ in history.segments([place.point for place in one.places])
        ][1:][-BOUNDARIES:]
        for one in drawn
    }
    pairs = {
        (one.facts.id, index): (
            one.places[index - 1].point.run_id,
            one.places[index].point.run_id,
        )
        for one in drawn
        for index in starts[one.facts.id]
    }
    environments = _environments({run for pair in pairs.values() for run in pair})
    return {
        one.facts.id: tuple(
            Boundary(
                index=index,
                differences=environment_differences(
                    environments.get(pairs[one.facts.id, index][0]),
                    environments.get(pairs[one.facts.id, index][1]),
                ),
            )
            for index in starts[one.facts.id]
        )
        for one in drawn
    }


def _environments(run_ids: Iterable[int]) -> dict[int, Environment]:
    wanted = set(run_ids)
    if not wanted:
        return {}
    rows = Result.objects.filter(run_id__in=wanted).values_list("run_id", "environment")
    return {run_id: msgspec.convert(document, Environment) for run_id, document in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """One launch as the CSV tells it."""

    place: Place
    reading: history.Reading


def launches(facts: StandingDetail, source: str | None) -> Iterator[Launched]:
    """Every launch of a history from a source, oldest place first, for the CSV."""
    known = dict(facts.sources)
    chosen = facts.source if source is None or source not in known else source
    rows = list(_readings(facts, chosen))
    for row in reversed(rows):
        (place,) = _places([row])
        reading = history.Reading(
            run_id=row[0],
            place=place.point.place,
            value=row[2],
            iqr=row[3],
            n=row[4],
            environment=row[5],
        )
        yield Launched(place=place, reading=reading)


def model_rows(model: str, platform: str) -> tuple[Model | None, Platform | None]:
    """The rows that an address names."""
    return (
        Model.objects.filter(name=model).first(),
        Platform.objects.filter(slug=platform).first(),
    )
