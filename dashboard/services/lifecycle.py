"""A worker's verbs on a run: claim, heartbeat, deliver. One guarded transaction each."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from dashboard.models import Artifact, Attempt, FailureKind, Run, RunArtifact, RunState, Trace
from dashboard.services import artifacts, change_scan, events, groups, pairs, results, sources
from dashboard.services.clock import db_now
from dashboard.services.contract import (
    PROTOCOL,
    Answer,
    Beat,
    Claim,
    Outcome,
    SupersededError,
    WorkerIdentity,
)
from profiler.errors import UserError

LOG_TAIL_LIMIT = 16_384
RETRY_DELAY = timedelta(seconds=5)
TRACE_FILE = re.compile(r"trace(?:-rank(\d{1,5}))?\.json\.gz")
"""The trace of rank 0, and those of the other ranks beside it."""


def next_runs(platform: str, limit: int) -> list[tuple[int, int]]:
    """Claimable runs of a platform, oldest first: (run id, attempt a claim would make)."""
    rows = (
        Run.objects.filter(
            platform__slug=platform,
            state=RunState.QUEUED,
            cancel_requested_at__isnull=True,
            not_before__lte=db_now(),
        )
        .order_by("id")
        .values_list("pk", "attempt")[:limit]
    )
    return [(pk, attempt + 1) for pk, attempt in rows]


@transaction.atomic
def claim_run(run_id: int, attempt: int, worker: WorkerIdentity) -> Claim | None:
    """Take a queued run; None when it is not to be had (taken, cancelled, other attempt)."""
    related = ("platform", "commit__repository", "compared__comparison__repository")
    run = Run.objects.select_related(*related).filter(pk=run_id).first()
    if run is None or worker.protocol != PROTOCOL or run.platform.slug != worker.platform:
        return None
    now = db_now()
    source = sources.source_of(run.commit) if run.commit else None
    build_s = source.build_limit_s if source else pairs.longest_s(run)
    taken = Run.objects.filter(
        pk=run_id,
        state=RunState.QUEUED,
        attempt=attempt - 1,
        fence=run.fence,
        cancel_requested_at__isnull=True,
        not_before__lte=now,
    ).update(
        state=RunState.RUNNING,
        phase="preparing",
        step=0,
        steps=0,
        log_tail="",
        attempt=attempt,
        fence=run.fence + 1,
        worker=worker.name,
        lease_until=now + timedelta(seconds=settings.LEASE_S),
        heartbeat_at=now,
        started_at=now,
        deadline_at=now + timedelta(seconds=run.limit_s + build_s),
    )
    if not taken:
        return None
    run.attempt, run.fence = attempt, run.fence + 1
    Attempt.objects.create(
        run=run, number=attempt, fence=run.fence, worker=worker.name, started_at=now
    )
    events.record(run, "running", now, f"attempt {attempt} on {worker.name}")
    return Claim(
        run_id=run_id,
        attempt=attempt,
        fence=run.fence,
        spec=json.dumps(run.spec).encode(),
        limit_s=run.limit_s,
        memory_bytes=settings.RUN_MEMORY_BYTES,
        source=source,
        session=pairs.plan(run),
    )


def heartbeat_run(run_id: int, fence: int, beat: Beat) -> Answer:
    """Extend the lease; raises `SupersededError` when the run is not ours any more."""
    now = db_now()
    changed = Run.objects.filter(pk=run_id, state=RunState.RUNNING, fence=fence).update(
        lease_until=now + timedelta(seconds=settings.LEASE_S),
        heartbeat_at=now,
        phase=beat.phase[:16],
        step=beat.step,
        steps=beat.steps,
        log_tail=beat.log_tail[-LOG_TAIL_LIMIT:],
    )
    if not changed:
        raise SupersededError(f"run {run_id} fence {fence}")
    cancel = Run.objects.filter(pk=run_id, cancel_requested_at__isnull=False).exists()
    return Answer(cancel=cancel)


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """A checked outcome, ready for one transaction."""

    outcome: Outcome
    parsed: results.Parsed | None
    files: dict[str, Artifact]


def deliver_run(run_id: int, fence: int, outcome: Outcome) -> None:
    """Store how an attempt ended, exactly once; repeating a delivery is accepted.

    Raises `SupersededError` when another attempt owns the run or it has ended.
    """
    run = Run.objects.select_related("platform").get(pk=run_id)
    if run.state != RunState.RUNNING or run.fence != fence:
        return _accept_repeat(run_id, fence)
    outcome, parsed = _checked(run, outcome)
    files = artifacts.keep_all((file.name, file.path) for file in outcome.files)
    end = _End(outcome=outcome, parsed=parsed, files=files)
    with transaction.atomic():
        if outcome.state == "requeue":
            hand_back(run, fence, outcome, files)
        else:
            _finish(run, fence, end)


def _accept_repeat(run_id: int, fence: int) -> None:
    """A repeated delivery of an attempt whose end is stored is fine; any other is superseded."""
    delivered = Attempt.objects.filter(
        run_id=run_id, fence=fence, ended_at__isnull=False, outcome__startswith="delivered"
    )
    if not delivered.exists():
        raise SupersededError(f"run {run_id} fence {fence}")


def _checked(run: Run, outcome: Outcome) -> tuple[Outcome, results.Parsed | None]:
    """The outcome, turned into a failure when its result cannot be what the run asked for."""
    if outcome.state != RunState.SUCCEEDED or run.compared_id is not None:
        return outcome, None  # a session stores its launches one by one
    try:
        return outcome, results.parse(outcome.files, run.spec_hash)
    except UserError as error:
        failed = Outcome(
            state=RunState.FAILED,
            failure_kind=FailureKind.INVALID_RESULT,
            message=error.message,
            hint=error.hint,
            files=outcome.files,
        )
        return failed, None


def _finish(run: Run, fence: int, end: _End) -> None:
    now = db_now()
    state = RunState(end.outcome.state)
    won = Run.objects.filter(pk=run.pk, state=RunState.RUNNING, fence=fence).update(
        state=state,
        lease_until=None,
        ended_at=now,
        failure_kind=end.outcome.failure_kind,
        failure_message=end.outcome.message[:1000],
        failure_hint=end.outcome.hint[:500],
    )
    if not won:
        raise SupersededError(f"run {run.pk} fence {fence}")
    events.close_attempt(run.pk, fence, now, f"delivered {state}")
    events.record(run, state, now, end.outcome.message)
    _attach(run, end.files)
    if end.parsed is not None:
        results.store(run, fence, end.parsed)
        change_scan.want_scan(run, now)
    if state == RunState.SUCCEEDED:
        _open_traces(run, end.files, now)
    groups.settle(run, now)
    pairs.settle(run, now)


def hand_back(run: Run, fence: int, outcome: Outcome, files: dict[str, Artifact]) -> None:
    """Put a running run back into the queue, or end it when its attempts are used up."""
    now = db_now()
    used_up = outcome.counts and run.attempt >= settings.MAX_ATTEMPTS
    flagged = Run.objects.filter(pk=run.pk, cancel_requested_at__isnull=False).exists()
    state = RunState.CANCELLED if flagged else RunState.LOST if used_up else RunState.QUEUED
    kind = {
        RunState.CANCELLED: FailureKind.CANCELLED,
        RunState.LOST: outcome.failure_kind or FailureKind.WORKER_LOST,
    }.get(state, "")
    attempt = run.attempt if outcome.counts else run.attempt - 1
    ended = state != RunState.QUEUED
    not_before = now + RETRY_DELAY / settings.TIME_SCALE
    won = Run.objects.filter(pk=run.pk, state=RunState.RUNNING, fence=fence).update(
        state=state,
        attempt=attempt,
        fence=fence + 1,
        lease_until=None,
        phase="",
        not_before=not_before,
        ended_at=now if ended else None,
        failure_kind=kind,
        failure_message=outcome.message[:1000] if ended else "",
        failure_hint=outcome.hint[:500] if ended else "",
    )
    if not won:
        raise SupersededError(f"run {run.pk} fence {fence}")
    events.close_attempt(run.pk, fence, now, f"delivered {outcome.state}")
    _attach(run, files)
    events.record(run, state if ended else "requeued", now, outcome.message)
    run.attempt, run.not_before = attempt, not_before
    if ended:
        groups.settle(run, now)
        pairs.settle(run, now)
    else:
        events.ring_for_run(run, now)


def _attach(run: Run, files: dict[str, Artifact]) -> None:
    for name, artifact in files.items():
        RunArtifact.objects.update_or_create(
            run=run, attempt=run.attempt, name=name[:80], defaults={"artifact": artifact}
        )


def _open_traces(run: Run, files: dict[str, Artifact], now: datetime) -> None:
    for name, raw in sorted(files.items()):
        found = TRACE_FILE.fullmatch(name)
        if found:
            rank = int(found[1] or 0)
            trace = Trace.objects.create(run=run, rank=rank, name=name, raw=raw, created_at=now)
            events.ring_for_trace(trace, now)
