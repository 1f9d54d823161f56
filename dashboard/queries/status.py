"""Reads behind the status page and `/healthz`: what is up, what waits, what broke."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Count, Min, Q, QuerySet

from dashboard import assets, sqlite
from dashboard.models import Heartbeat, Outbox, Platform, Run, RunState, Trace, TraceState
from dashboard.models.runs import ACTIVE
from dashboard.services.clock import db_now

KINDS = ("keeper", "worker", "ingest")
"""Processes that the product needs, beside the web server that answers."""

MISSED_BEATS = 4
"""A process is silent after so many heartbeats that did not come."""

SHOWN_FOR = timedelta(hours=24)
ROWS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One long-running process, as far as anybody heard."""

    name: str
    kind: str
    platform: str
    version: str
    detail: str
    started_at: datetime
    at: datetime
    alive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """What waits on one platform, and who could take it."""

    platform: str
    title: str
    queued: int
    running: int
    oldest_at: datetime | None
    workers: int

    @property
    def stuck(self) -> bool:
        return self.queued > 0 and self.workers == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningRun:
    """One run that a worker has."""

    id: int
    name: str
    platform: str
    worker: str
    phase: str
    step: int
    steps: int
    heartbeat_at: datetime | None
    started_at: datetime | None
    cancelling: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRun:
    """One run of the last day that did not succeed."""

    id: int
    name: str
    state: str
    kind: str
    message: str
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Where things lie and whether they are well."""

    database: str
    version: str
    safe: bool
    free_bytes: int
    total_bytes: int
    viewer: bool

    @property
    def used(self) -> float:
        return 1 - self.free_bytes / self.total_bytes if self.total_bytes else 0.0

    @property
    def short(self) -> bool:
        return self.free_bytes < 2 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Messages and traces that wait."""

    messages: int
    oldest_message_at: datetime | None
    traces_pending: int
    traces_ingesting: int
    traces_rejected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """Who is alive and what waits: the part of the status that other pages show too."""

    at: datetime
    processes: tuple[Process, ...]
    queues: tuple[Queue, ...]
    waiting: Waiting
    silent_kinds: tuple[str, ...]

    @property
    def queued(self) -> int:
        return sum(queue.queued for queue in self.queues)

    @property
    def running(self) -> int:
        return sum(queue.running for queue in self.queues)

    @property
    def stuck(self) -> tuple[Queue, ...]:
        return tuple(queue for queue in self.queues if queue.stuck)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The whole page."""

    pulse: Pulse
    running: tuple[RunningRun, ...]
    failed: tuple[FailedRun, ...]
    failed_total: int
    storage: Storage

    @property
    def well(self) -> bool:
        storage_well = self.storage.safe and not self.storage.short and self.storage.viewer
        return not self.pulse.silent_kinds and not self.pulse.stuck and storage_well


def status() -> Status:
    """Everything the status page shows, in a fixed number of queries."""
    now = pulse()
    failed = _failed(now.at)
    return Status(
        pulse=now,
        running=_running(),
        failed=failed,
        failed_total=_failed_rows(now.at).count() if len(failed) == ROWS else len(failed),
        storage=storage(),
    )


def pulse() -> Pulse:
    """Who is alive and what waits, now."""
    now = db_now()
    processes = heartbeats(now)
    return Pulse(
        at=now,
        processes=processes,
        queues=_queues(processes),
        waiting=_waiting(now),
        silent_kinds=silent_kinds(processes),
    )


def heartbeats(now: datetime) -> tuple[Process, ...]:
    """Processes heard of within a day, the living first."""
    rows = Heartbeat.objects.filter(kind__in=KINDS, at__gt=now - SHOWN_FOR)
    limit = now - timedelta(seconds=MISSED_BEATS * settings.HEARTBEAT_S)
    found = [_process(row, alive=row.at > limit) for row in rows]
    return tuple(sorted(found, key=lambda p: (not p.alive, KINDS.index(p.kind), p.name)))


def silent_kinds(processes: Sequence[Process]) -> tuple[str, ...]:
    """Kinds of which no process is alive."""
    alive = {process.kind for process in processes if process.alive}
    return tuple(kind for kind in KINDS if kind not in alive)


def _process(row: Heartbeat, *, alive: bool) -> Process:
    return Process(
        name=row.name,
        kind=row.kind,
        platform=row.platform,
        version=row.version,
        detail=row.detail,
        started_at=row.started_at,
        at=row.at,
        alive=alive,
    )


def _queues(processes: Sequence[Process]) -> tuple[Queue, ...]:
    waiting = Q(state=RunState.QUEUED)
    counts = (
        Run.objects.filter(state__in=ACTIVE)
        .values("platform_id")
        .annotate(queued=Count("id", filter=waiting), oldest=Min("created_at", filter=waiting))
        .annotate(active=Count("id"))
        .order_by()
    )
    busy = {row["platform_id"]: row for row in counts}
    workers = Counter(p.platform for p in processes if p.alive and p.kind == "worker")
    return tuple(
        _queue(platform, busy.get(platform.pk, {}), workers[platform.slug])
        for platform in Platform.objects.order_by("slug")
    )


def _queue(platform: Platform, counts: Mapping[str, Any], workers: int) -> Queue:
    queued = counts.get("queued", 0)
    return Queue(
        platform=platform.slug,
        title=platform.title,
        queued=queued,
        running=counts.get("active", 0) - queued,
        oldest_at=counts.get("oldest"),
        workers=workers,
    )


def _name(run: Run) -> str:
    return f"{run.workload.model.name} {run.workload.scenario}"


def _running() -> tuple[RunningRun, ...]:
    rows = Run.objects.filter(state=RunState.RUNNING).select_related("workload__model", "platform")
    return tuple(
        RunningRun(
            id=run.pk,
            name=_name(run),
            platform=run.platform.slug,
            worker=run.worker,
            phase=run.phase,
            step=run.step,
            steps=run.steps,
            heartbeat_at=run.heartbeat_at,
            started_at=run.started_at,
            cancelling=run.cancel_requested_at is not None,
        )
        for run in rows.defer("spec", "log_tail").order_by("id")[:ROWS]
    )


def _failed_rows(now: datetime) -> QuerySet[Run]:
    bad = [RunState.FAILED, RunState.TIMED_OUT, RunState.LOST, RunState.EXPIRED]
    return Run.objects.filter(state__in=bad, ended_at__gt=now - timedelta(hours=24))


def _failed(now: datetime) -> tuple[FailedRun, ...]:
    rows = _failed_rows(now).select_related("workload__model").defer("spec", "log_tail")
    return tuple(
        FailedRun(
            id=run.pk,
            name=_name(run),
            state=run.state,
            kind=run.get_failure_kind_display(),
            message=run.failure_message,
            ended_at=run.ended_at,
        )
        for run in rows.order_by("-ended_at")[:ROWS]
    )


def _waiting(now: datetime) -> Waiting:
    outbox = Outbox.objects.filter(not_before__lte=now).aggregate(
        n=Count("id"), oldest=Min("created_at")
    )
    # Traces that were read are many: the index on the state leaves them alone.
    open_states = (TraceState.PENDING, TraceState.INGESTING, TraceState.REJECTED)
    traces = Trace.objects.filter(state__in=open_states).aggregate(
        pending=Count("id", filter=Q(state=TraceState.PENDING)),
        ingesting=Count("id", filter=Q(state=TraceState.INGESTING)),
        rejected=Count(
            "id",
            filter=Q(state=TraceState.REJECTED, ended_at__gt=now - timedelta(hours=24)),
        ),
    )
    return Waiting(
        messages=outbox["n"],
        oldest_message_at=outbox["oldest"],
        traces_pending=traces["pending"],
        traces_ingesting=traces["ingesting"],
        traces_rejected=traces["rejected"],
    )


def storage() -> Storage:
    """The database's kind and version, and the disk under VAR_DIR."""
    disk = shutil.disk_usage(settings.VAR_DIR)
    name, version, safe = _database()
    return Storage(
        database=name,
        version=version,
        safe=safe,
        free_bytes=disk.free,
        total_bytes=disk.total,
        viewer=assets.speedscope_present(),
    )


def _database() -> tuple[str, str, bool]:
    if connection.vendor == "sqlite":
        major, minor, patch = sqlite3.sqlite_version_info
        return "SQLite", sqlite3.sqlite_version, sqlite.is_safe((major, minor, patch))
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        row: tuple[str] = cursor.fetchone()
    return "PostgreSQL", row[0].split()[0], True
