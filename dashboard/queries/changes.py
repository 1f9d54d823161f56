"""Reads behind the inbox of changes and the page of one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Count, QuerySet

from dashboard.models import Change, ChangeKind, ChangeState, Commit, Comparison
from dashboard.queries.comparisons import Between, between
from dashboard.services.change_series import Point, Series, floor_of, series_of
from profiler.metrics import METRICS
from profiler.types import Definition
from profiler.units import significant

PAGE_SIZE = 50
EXPORT_LIMIT = 10_000
AROUND = 12
OPEN = "open"
EVERY = "every"

GROUPS: dict[str, tuple[str, ...]] = {
    OPEN: tuple(
        str(state) for state in (ChangeState.NEW, ChangeState.CONFIRMING, ChangeState.CONFIRMED)
    ),
    EVERY: tuple(ChangeState.values),
}
"""Names for several states at once; the first is what the inbox opens with."""

_RELATED = (
    "repository",
    "workload__model",
    "platform",
    "before_commit",
    "after_commit",
    "comparison",
    "acknowledged_by",
    "fixed_by",
    "fixed_commit",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFilter:
    """What a reader asks the inbox for; the default is what is open, newest first."""

    state: str = OPEN
    direction: str = ""
    model: str = ""
    platform: str = ""
    page: int = 1

    @property
    def narrows(self) -> bool:
        """Whether anything beside the state leaves rows out."""
        return bool(self.direction or self.model or self.platform)

    @property
    def states(self) -> tuple[str, ...]:
        return GROUPS.get(self.state, (self.state,))


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCount:
    """One of the inbox's views: how many changes it holds for the rest of the filter."""

    key: str
    title: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """One change of the list with what its metric is called."""

    row: Change
    metric: Definition


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePage:
    """One page of the inbox; `any` says whether there is any change at all."""

    rows: tuple[ChangeRow, ...]
    states: tuple[StateCount, ...]
    page: int
    pages: int
    total: int
    any: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PointView:
    """One point of the history around a change.

    `side` is before or after; empty within a leak and once a change is mended.
    """

    number: int
    sha: str
    subject: str
    run_id: int
    runs: int
    value: float
    side: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeView:
    """A change with everything its page shows."""

    row: Change
    metric: Definition
    between: Between
    points: tuple[PointView, ...]
    floor: float | None
    fixes: tuple[Change, ...]
    others: int
    """Further changes of the same workload on the same platform."""

    @property
    def values(self) -> tuple[float, ...]:
        return tuple(point.value for point in self.points)

    @property
    def p_shown(self) -> str:
        """The p of the detection; beyond a millionth its digits say nothing."""
        return significant(self.row.p_value) if self.row.p_value >= 1e-6 else "below 0.000001"

    @property
    def can_confirm(self) -> bool:
        return self.row.state in {ChangeState.NEW, ChangeState.REJECTED}

    @property
    def can_acknowledge(self) -> bool:
        return self.row.state in {
            ChangeState.NEW,
            ChangeState.CONFIRMED,
            ChangeState.ACKNOWLEDGED,
        }

    @property
    def sentence(self) -> str:
        """What is known of it, in one sentence."""
        return _SENTENCES[ChangeState(self.row.state)]


_SENTENCES: dict[ChangeState, str] = {
    ChangeState.NEW: "The history suggests it; pairs have not decided it yet",
    ChangeState.CONFIRMING: "The two commits are being measured in pairs",
    ChangeState.CONFIRMED: "Pairs of launches of the two commits confirm it",
    ChangeState.REJECTED: "It is none",
    ChangeState.ACKNOWLEDGED: "It is known and stays",
    ChangeState.FIXED: "It is fixed",
}


def change_page(wanted: ChangeFilter) -> ChangePage:
    """The page that is asked for; one past the end is the last."""
    rest = _narrowed(wanted)
    counts: dict[str, int] = dict(rest.order_by().values_list("state").annotate(count=Count("pk")))
    total = sum(counts.get(state, 0) for state in wanted.states)
    pages = max(1, -(-total // PAGE_SIZE))
    page = min(wanted.page, pages)
    found = rest.filter(state__in=wanted.states).select_related(*_RELATED)
    start = (page - 1) * PAGE_SIZE
    return ChangePage(
        rows=tuple(_row(row) for row in found[start : start + PAGE_SIZE]),
        states=_counts(counts),
        page=page,
        pages=pages,
        total=total,
        any=bool(counts) or Change.objects.exists(),
    )


def _counts(counts: dict[str, int]) -> tuple[StateCount, ...]:
    views = [(OPEN, "Open"), *ChangeState.choices, (EVERY, "All")]
    return tuple(
        StateCount(
            key=str(key),
            title=str(title),
            count=sum(counts.get(state, 0) for state in GROUPS.get(str(key), (str(key),))),
        )
        for key, title in views
    )


def _narrowed(wanted: ChangeFilter) -> QuerySet[Change]:
    found = Change.objects.all()
    if wanted.direction:
        found = found.filter(direction=wanted.direction)
    if wanted.model:
        found = found.filter(workload__model__name=wanted.model)
    if wanted.platform:
        found = found.filter(platform__slug=wanted.platform)
    return found


def _row(row: Change) -> ChangeRow:
    return ChangeRow(row=row, metric=METRICS[row.metric])


def exported_changes(wanted: ChangeFilter) -> Iterator[ChangeRow]:
    """Every change that the filter leaves, up to `EXPORT_LIMIT`."""
    found = _narrowed(wanted).filter(state__in=wanted.states).select_related(*_RELATED)
    return map(_row, found[:EXPORT_LIMIT])


def get_change(change_id: int) -> Change | None:
    """The change with what its page names, or None."""
    return Change.objects.select_related(*_RELATED).filter(pk=change_id).first()


def change_view(row: Change) -> ChangeView:
    """Everything the page of a change shows."""
    series = next((one for one in _series(row) if _is_of(row, one)), None)
    others = Change.objects.filter(workload_id=row.workload_id, platform_id=row.platform_id)
    both = Comparison(
        repository=row.repository, baseline=row.before_commit, candidate=row.after_commit
    )
    return ChangeView(
        row=row,
        metric=METRICS[row.metric],
        between=between(both),
        points=_points(row, series) if series else (),
        floor=(floor_of(series) or None) if series else None,
        fixes=tuple(row.fixes.select_related("after_commit")),
        others=others.exclude(pk=row.pk).count(),
    )


def _series(row: Change) -> list[Series]:
    return series_of(row.workload_id, row.platform_id)


def _is_of(row: Change, series: Series) -> bool:
    of = (series.repository_id, series.comparable_hash, series.metric)
    return of == (row.repository_id, row.comparable_hash, row.metric)


def _points(row: Change, series: Series) -> tuple[PointView, ...]:
    """The history around a step, or from the best stretch of a leak to its end."""
    before, after = series.index_of(row.before_commit_id), series.index_of(row.after_commit_id)
    if before is None or after is None:
        return ()
    first, last = max(0, before - AROUND + 1), after + AROUND
    shown = list(enumerate(series.points))[first:last]
    known = _commits([point.commit_id for _, point in shown])
    return tuple(
        PointView(
            number=at + 1,
            sha=known[point.commit_id][0],
            subject=known[point.commit_id][1],
            run_id=point.run_id,
            runs=point.runs,
            value=point.value,
            side="" if _is_mended(row, point) else _side(row, at, before=before, after=after),
        )
        for at, point in shown
    )


def _side(row: Change, at: int, *, before: int, after: int) -> str:
    if at <= before:
        return "before"
    return "after" if at >= after or row.kind == ChangeKind.STEP else ""


def _is_mended(row: Change, point: Point) -> bool:
    return row.fixed_commit is not None and point.position >= row.fixed_commit.position


def _commits(ids: list[int]) -> dict[int, tuple[str, str]]:
    rows = Commit.objects.filter(pk__in=ids).values_list("pk", "sha", "subject")
    return {pk: (sha, subject) for pk, sha, subject in rows}
