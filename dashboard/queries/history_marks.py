"""What stands beside a history: annotations, comparisons, changes and tuning iterations.

Each source is one function and one query; a new one is a line in `_SOURCES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q
from django.urls import reverse

from dashboard.models import Annotation, Change, ChangeState, ComparedWorkload, Iteration
from profiler import units

MARKS = 200
"""Of each kind, the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Whose marks are wanted."""

    model_id: int
    platform_id: int
    workload_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One remark at a commit (`sha`), or without one at the first run made `at` or later.

    `workload_id` None: it holds for every workload. `tone` is better, worse or
    empty; `address` is where it is explained.
    """

    kind: str
    words: str
    at: datetime
    sha: str = ""
    workload_id: int | None = None
    tone: str = ""
    address: str = ""
    id: int = 0

    def concerns(self, workload_id: int) -> bool:
        return self.workload_id is None or self.workload_id == workload_id


def marks_of(window: Window) -> tuple[Mark, ...]:
    """Every mark, oldest first."""
    if not window.workload_ids:
        return ()
    found = [mark for source in _SOURCES for mark in source(window)]
    return tuple(sorted(found, key=lambda mark: mark.at))


def _annotations(window: Window) -> Iterable[Mark]:
    mine = Q(model=None) | Q(model=window.model_id)
    rows = Annotation.objects.filter(mine, platform=window.platform_id)
    for row in rows.select_related("commit", "author").order_by("-at")[:MARKS]:
        by = f" ({row.author.username})" if row.author else ""
        yield Mark(
            kind="annotation",
            words=f"{row.text}{by}",
            at=row.at,
            sha=row.commit.sha if row.commit else "",
            id=row.pk,
        )


def _comparisons(window: Window) -> Iterable[Mark]:
    """Values and not rows: every pair of commits would be two more rows to make."""
    rows = ComparedWorkload.objects.filter(
        ~Q(verdict=""),
        workload__in=window.workload_ids,
        comparison__platform=window.platform_id,
        comparison__candidate__isnull=False,
    ).values_list(
        "comparison_id",
        "workload_id",
        "verdict",
        "effect",
        "comparison__created_at",
        "comparison__baseline__sha",
        "comparison__candidate__sha",
    )
    newest = rows.order_by("-comparison_id")[:MARKS]
    for number, workload, verdict, effect, at, before, after in newest:
        against = f" against {before[:10]}" if before else ""
        change = f" {units.change(effect)}" if effect is not None else ""
        yield Mark(
            kind="comparison",
            words=f"comparison {number}: {verdict}{change}{against}",
            at=at,
            sha=after or "",
            workload_id=workload,
            tone={"faster": "better", "slower": "worse"}.get(verdict, ""),
            address=reverse("comparison-detail", args=[number]),
        )


def _changes(window: Window) -> Iterable[Mark]:
    rows = Change.objects.filter(
        workload__in=window.workload_ids, platform=window.platform_id
    ).exclude(state=ChangeState.REJECTED)
    for row in rows.select_related("after_commit").order_by("-id")[:MARKS]:
        yield Mark(
            kind="change",
            words=f"change {row.pk}: {row.state}, {row.direction} {units.change(row.shown_effect)}",
            at=row.found_at,
            sha=row.after_commit.sha,
            workload_id=row.workload_id,
            tone="worse" if row.direction == "slower" else "better",
            address=reverse("change-detail", args=[row.pk]),
        )


def _iterations(window: Window) -> Iterable[Mark]:
    rows = Iteration.objects.filter(
        tuning__workload__in=window.workload_ids,
        tuning__platform=window.platform_id,
        commit__isnull=False,
    ).select_related("tuning", "commit")
    for row in rows.order_by("-id")[:MARKS]:
        effect = f" {units.change(row.effect)}" if row.effect is not None else ""
        yield Mark(
            kind="iteration",
            words=f"iteration {row.number}: {row.state}{effect}, {row.hypothesis[:80]}",
            at=row.created_at,
            sha=row.commit.sha if row.commit else "",
            workload_id=row.tuning.workload_id,
            address=reverse("iteration-detail", args=[row.pk]),
        )


_SOURCES: tuple[Callable[[Window], Iterable[Mark]], ...] = (
    _annotations,
    _comparisons,
    _changes,
    _iterations,
)
