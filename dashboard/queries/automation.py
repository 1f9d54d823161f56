"""Reads behind the pages of schedules: what they do, what they did, and what the queues hold."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Count, Max, Q

from dashboard.models import (
    Firing,
    FiringState,
    Platform,
    Run,
    RunState,
    Schedule,
    ScheduleKind,
)
from dashboard.models.runs import ACTIVE
from dashboard.queries.status import heartbeats
from dashboard.services.automation_due import next_time
from dashboard.services.automation_queue import runs_of_today, used_of
from dashboard.services.clock import db_now
from dashboard.services.estimates import Place, usual_times

PAGE_SIZE = 50
_NS_A_MINUTE = 60e9


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRow:
    """One schedule with what it did last and when it acts next."""

    id: int
    name: str
    when: str
    template: str
    platform: str
    enabled: bool
    problem: str
    waiting: int
    last_at: datetime | None
    next_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringRow:
    """One firing with how far its runs are."""

    firing: Firing
    ended: int
    succeeded: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FiringPage:
    """One page of firings, the newest first."""

    rows: tuple[FiringRow, ...]
    total: int
    page: int
    pages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a platform has before it; times are usual ones, of work that has history."""

    platform: str
    workers: int
    queued: int
    running: int
    known_ns: float | None
    unknown: int
    waiting: int
    waiting_ns: float | None
    waiting_unknown: int
    budget_ns: float | None
    used_ns: float
    reasons: tuple[str, ...] = field(default=())

    @property
    def empty_in_ns(self) -> float | None:
        """When the queue is empty, should nothing be added; None without history or worker."""
        if self.known_ns is None or not self.workers:
            return None
        return self.known_ns / self.workers

    @property
    def left_ns(self) -> float | None:
        """What schedules may still use today; None without a limit."""
        return None if self.budget_ns is None else max(0.0, self.budget_ns - self.used_ns)


def when_words(schedule: Schedule) -> str:
    """`every day at 02:00 UTC`, `at each new commit of models, branch main`."""
    if schedule.kind == ScheduleKind.COMMITS:
        return f"at each new commit of {schedule.repository}, branch {schedule.branch}"
    branch = f" on {schedule.repository}, branch {schedule.branch}" if schedule.repository else ""
    if schedule.kind == ScheduleKind.STACK:
        return f"when the software stack changes{branch}"
    at = f"{schedule.at_minute // 60:02}:{schedule.at_minute % 60:02} UTC"
    every = {1: "every hour", 24: "every day"}.get(schedule.every_h or 0)
    return f"{every or f'every {schedule.every_h} h'}, counted from {at}{branch}"


def schedule_rows(now: datetime) -> tuple[ScheduleRow, ...]:
    """Every schedule by name, in a fixed number of queries."""
    rows = Schedule.objects.select_related("template", "platform", "repository").annotate(
        last_at=Max("firings__created_at"),
        waiting=Count("firings", filter=Q(firings__state=FiringState.WAITING)),
    )
    return tuple(
        ScheduleRow(
            id=row.pk,
            name=row.name,
            when=when_words(row),
            template=row.template.name,
            platform=row.platform.slug,
            enabled=row.enabled,
            problem=row.problem,
            waiting=row.waiting,
            last_at=row.last_at,
            next_at=_next_at(row, now),
        )
        for row in rows
    )


def _next_at(row: Schedule, now: datetime) -> datetime | None:
    timed = row.enabled and row.kind == ScheduleKind.INTERVAL
    return next_time(row, now) if timed else None


def get_schedule(schedule_id: int) -> Schedule | None:
    """The schedule with what it names, or None."""
    related = ("template", "platform", "repository", "created_by")
    return Schedule.objects.select_related(*related).filter(pk=schedule_id).first()


def get_firing(firing_id: int) -> Firing | None:
    """The firing, or None."""
    return Firing.objects.select_related("schedule").filter(pk=firing_id).first()


def firing_page(schedule: Schedule | None = None, page: int = 1) -> FiringPage:
    """What was fired, of one schedule or of all; a page past the end is the last one."""
    found = Firing.objects.all() if schedule is None else Firing.objects.filter(schedule=schedule)
    total = found.count()
    pages = max(1, -(-total // PAGE_SIZE))
    page = min(page, pages)
    related = ("schedule__platform", "schedule__template", "version", "commit__repository")
    part = found.select_related(*related, "created_by")[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
    return FiringPage(rows=_with_progress(list(part)), total=total, page=page, pages=pages)


def _with_progress(firings: Sequence[Firing]) -> tuple[FiringRow, ...]:
    groups = {firing.group_id for firing in firings if firing.group_id is not None}
    counted = (
        Run.objects.filter(group__in=groups)
        .order_by()
        .values("group_id")
        .annotate(
            total=Count("id"),
            ended=Count("id", filter=~Q(state__in=ACTIVE)),
            succeeded=Count("id", filter=Q(state=RunState.SUCCEEDED)),
        )
    )
    of_group = {row["group_id"]: row for row in counted}
    rows = []
    for firing in firings:
        counts = of_group.get(firing.group_id or 0, {"total": 0, "ended": 0, "succeeded": 0})
        rows.append(
            FiringRow(
                firing=firing,
                total=counts["total"],
                ended=counts["ended"],
                succeeded=counts["succeeded"],
            )
        )
    return tuple(rows)


def forecasts(now: datetime) -> tuple[Forecast, ...]:
    """Every platform, in a fixed number of queries."""
    workers = Counter(p.platform for p in heartbeats(now) if p.alive and p.kind == "worker")
    platforms = Platform.objects.select_related("budget").order_by("slug")
    return _forecasts(list(platforms), workers, now)


def forecast_of(platform: Platform, workers: int) -> Forecast:
    """One platform that `workers` workers serve."""
    (forecast,) = _forecasts([platform], {platform.slug: workers}, db_now())
    return forecast


def _forecasts(
    platforms: Sequence[Platform], workers: Mapping[str, int], now: datetime
) -> tuple[Forecast, ...]:
    runs: dict[int, list[Run]] = defaultdict(list)
    ids = {platform.pk for platform in platforms}
    for run in runs_of_today(now):
        if run.platform_id in ids:
            runs[run.platform_id].append(run)
    times = usual_times({run.workload_id for found in runs.values() for run in found})
    waiting: dict[int, list[Firing]] = defaultdict(list)
    fired = Firing.objects.filter(state=FiringState.WAITING, schedule__platform__in=platforms)
    for firing in fired.select_related("schedule").order_by("id"):
        waiting[firing.schedule.platform_id].append(firing)
    return tuple(
        _forecast(
            _Facts(
                platform=platform,
                workers=workers.get(platform.slug, 0),
                active=[run for run in runs[platform.pk] if not run.is_terminal],
                waiting=waiting[platform.pk],
                used_ns=used_of(filter(_is_fired, runs[platform.pk]), now),
            ),
            times,
            now,
        )
        for platform in platforms
    )


def _is_fired(run: Run) -> bool:
    return run.group is not None and hasattr(run.group, "firing")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """What one platform has."""

    platform: Platform
    workers: int
    active: Sequence[Run]
    waiting: Sequence[Firing]
    used_ns: float

    @property
    def budget_ns(self) -> float | None:
        """None without a limit."""
        limit = getattr(self.platform, "budget", None)
        return limit.minutes_per_day * _NS_A_MINUTE if limit else None


def _forecast(facts: _Facts, times: Mapping[Place, float], now: datetime) -> Forecast:
    known = [left for run in facts.active if (left := _left_ns(run, times, now)) is not None]
    usual = [row.usual_ns for row in facts.waiting if row.usual_ns is not None]
    queued = sum(run.state == RunState.QUEUED for run in facts.active)
    reasons = [row.reason for row in facts.waiting if row.reason]
    return Forecast(
        platform=facts.platform.slug,
        workers=facts.workers,
        queued=queued,
        running=len(facts.active) - queued,
        known_ns=sum(known) if known or not facts.active else None,
        unknown=len(facts.active) - len(known),
        waiting=len(facts.waiting),
        waiting_ns=sum(usual) if usual else None,
        waiting_unknown=len(facts.waiting) - len(usual),
        budget_ns=facts.budget_ns,
        used_ns=facts.used_ns,
        reasons=tuple(dict.fromkeys(reasons)),
    )


def _left_ns(run: Run, times: Mapping[Place, float], now: datetime) -> float | None:
    """What a run usually still takes; None without history."""
    usual = times.get(Place(run.platform_id, run.workload_id, run.compared_id is not None))
    if usual is None or run.state == RunState.QUEUED or run.started_at is None:
        return usual
    return max(0.0, usual - (now - run.started_at).total_seconds() * 1e9)


FIRING_COLUMNS = (
    "firing",
    "at",
    "cause",
    "cause_text",
    "state",
    "reason",
    "template",
    "version",
    "commit",
    "left_out",
    "group",
    "runs",
    "usual_ns",
)
EXPORT_LIMIT = 10_000


def firing_cells(schedule: Schedule) -> Iterable[tuple[str | int | float | None, ...]]:
    """The newest firings of a schedule, a line each, as `FIRING_COLUMNS` names them."""
    rows = Firing.objects.filter(schedule=schedule).select_related("version__template", "commit")
    for row in rows[:EXPORT_LIMIT]:
        yield (
            row.pk,
            row.created_at.isoformat(),
            row.cause,
            row.cause_text,
            row.state,
            row.reason,
            row.version.template.name,
            row.version.number,
            row.commit.sha if row.commit else "",
            row.left_out,
            row.group_id,
            row.runs,
            row.usual_ns,
        )
