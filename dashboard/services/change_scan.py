"""Looking through histories: what the detection says, kept as one row per change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from dashboard.models import (
    Change,
    ChangeDirection,
    ChangeKind,
    ChangeState,
    Run,
    WatchedSeries,
)
from dashboard.services.change_series import Series, floor_of, series_of
from dashboard.services.clock import db_now
from profiler.analysis.changepoints import STRETCH, change_points, slow_leak
from profiler.analysis.verdict import improves
from profiler.metrics import METRICS

NEAR = 2
"""A later point may move a step by so many commits: it stays the same change."""

BATCH = 10
"""Series looked through in one turn of a keeper."""

WITHDRAWN = "It no longer stands out from the runs that came after it"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A change as the detection places it: indices of the series' points beside it."""

    kind: ChangeKind
    before: int
    after: int
    before_value: float
    after_value: float
    effect: float
    p_value: float


def want_scan(run: Run, now: datetime) -> None:
    """Have the history of what `run` measured looked through; runs without a commit are in none.

    Call it in the transaction that stores the result.
    """
    if run.commit_id is None or run.compared_id is not None:
        return
    WatchedSeries.objects.update_or_create(
        workload_id=run.workload_id, platform_id=run.platform_id, defaults={"wanted_at": now}
    )


def scan_due(limit: int = BATCH) -> int:
    """Look through the histories that wait longest, for a keeper; how many it were.

    A run that ends meanwhile sets the wish anew, so it is not lost.
    """
    waiting = WatchedSeries.objects.filter(wanted_at__isnull=False).order_by("wanted_at")[:limit]
    for row in list(waiting):
        scan_series(row.workload_id, row.platform_id)
        WatchedSeries.objects.filter(pk=row.pk, wanted_at=row.wanted_at).update(
            wanted_at=None, scanned_at=db_now()
        )
    return len(waiting)


def scan_series(workload_id: int, platform_id: int) -> list[Change]:
    """Find the changes of every series of a workload on a platform; those that are new.

    Idempotent: the same history again changes nothing. Suspicions that later
    runs take back are withdrawn, and come back when the history shows them again.
    """
    return [change for series in series_of(workload_id, platform_id) for change in _scan(series)]


@transaction.atomic
def _scan(series: Series) -> list[Change]:
    known = list(_rows(series).select_for_update())
    floor = floor_of(series)
    steps = change_points(series.values, noise_floor=floor)
    found = [
        _Found(
            kind=ChangeKind.STEP,
            before=step.index - 1,
            after=step.index,
            before_value=step.before,
            after_value=step.after,
            effect=step.effect,
            p_value=step.p_value,
        )
        for step in steps
    ]
    made, kept = [], set()
    standing = []
    for one, step in zip(found, steps, strict=True):
        row, new = _keep(series, one, known)
        kept.add(row.pk)
        made += [row] if new else []
        standing += [] if _measured_away(row) else [step]
    direction = METRICS[series.metric].direction
    leak = slow_leak(series.values, direction=direction, steps=standing, noise_floor=floor)
    if leak is not None:
        one = _Found(
            kind=ChangeKind.LEAK,
            before=leak.end - 1,
            after=len(series.points) - 1,
            before_value=leak.before,
            after_value=leak.after,
            effect=leak.effect,
            p_value=leak.p_value,
        )
        row, new = _keep(series, one, known)
        kept.add(row.pk)
        made += [row] if new else []
    _withdraw(series, [row for row in known if row.pk not in kept])
    return made


def _rows(series: Series) -> QuerySet[Change]:
    return Change.objects.filter(
        repository_id=series.repository_id,
        workload_id=series.workload_id,
        platform_id=series.platform_id,
        metric=series.metric,
        comparable_hash=series.comparable_hash,
    )


def _measured_away(row: Change) -> bool:
    """Whether pairs said that there is no change: then the history's step explains nothing."""
    return row.state == ChangeState.REJECTED and row.comparison_id is not None


def _keep(series: Series, found: _Found, known: Sequence[Change]) -> tuple[Change, bool]:
    """The row of what was found, and whether it is new."""
    better = improves(found.effect, METRICS[series.metric].direction)
    direction = ChangeDirection.FASTER if better else ChangeDirection.SLOWER
    row = _same(series, found, [one for one in known if one.direction == direction])
    if row is None:
        now = db_now()
        made = Change(
            repository_id=series.repository_id,
            workload_id=series.workload_id,
            platform_id=series.platform_id,
            metric=series.metric,
            comparable_hash=series.comparable_hash,
            kind=found.kind,
            direction=direction,
            state=ChangeState.NEW,
            found_at=now,
            state_at=now,
        )
        _place(made, series, found)
        made.save()
        return made, True
    withdrawn = row.state == ChangeState.REJECTED and row.comparison_id is None
    if row.state == ChangeState.NEW or withdrawn:
        _move(row, series, found, known)
        if withdrawn:
            row.state, row.state_at, row.sentence = ChangeState.NEW, db_now(), ""
        row.save()
    return row, False


def _same(series: Series, found: _Found, known: Sequence[Change]) -> Change | None:
    """The row that already tells of it, the nearest one; None when there is none."""
    reach = NEAR if found.kind == ChangeKind.STEP else STRETCH
    near = []
    for row in known:
        place = series.index_of(row.after_commit_id)
        if row.kind != found.kind or place is None:
            continue
        distance = abs(place - found.after)
        waits = row.kind == ChangeKind.LEAK and row.state not in _OVER
        if distance <= reach or waits:
            near.append((distance, row.pk, row))
    return min(near)[2] if near else None


_OVER = (ChangeState.REJECTED, ChangeState.FIXED)


def _move(row: Change, series: Series, found: _Found, known: Sequence[Change]) -> None:
    """A suspicion follows what later points say, unless another row already stands there."""
    target = series.points[found.after].commit_id
    taken = any(
        one.after_commit_id == target and one.kind == row.kind for one in known if one.pk != row.pk
    )
    if not taken:
        _place(row, series, found)


def _place(row: Change, series: Series, found: _Found) -> None:
    before, after = series.points[found.before], series.points[found.after]
    row.before_commit_id, row.after_commit_id = before.commit_id, after.commit_id
    row.before_run_id, row.after_run_id = before.run_id, after.run_id
    row.before_value, row.after_value = found.before_value, found.after_value
    row.effect, row.p_value = found.effect, found.p_value


def _withdraw(series: Series, rows: Sequence[Change]) -> None:
    """Suspicions that the history no longer shows; those older than the series stay."""
    for row in rows:
        if row.state == ChangeState.NEW and series.index_of(row.before_commit_id) is not None:
            row.state, row.state_at, row.sentence = ChangeState.REJECTED, db_now(), WITHDRAWN
            row.save(update_fields=["state", "state_at", "sentence"])
