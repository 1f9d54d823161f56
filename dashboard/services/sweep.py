"""The sweeper: ends what nobody owns any more. Guards make it idempotent."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F

from dashboard.models import (
    FailureKind,
    Heartbeat,
    IdempotencyKey,
    Run,
    RunState,
    SignInFailure,
    Trace,
    TraceState,
)
from dashboard.services import events, groups, lifecycle, pairs, traces
from dashboard.services.clock import db_now
from dashboard.services.contract import Outcome, SupersededError, SweepReport

TICK = "sweep"
OVERDUE = timedelta(seconds=600)
LOST_MESSAGE = "The worker stopped answering"
LOST_HINT = "see Status for the workers, then run it again"


def sweep() -> SweepReport:
    """One pass over leases, deadlines, cancellations, the queue's age and traces.

    After a pause of its own longer than the grace (the keeper was down, the
    machine slept) every lease is first extended by that pause: nobody could
    tell whether the workers were alive.
    """
    now = db_now()
    pause = _pause(now)
    if pause > settings.GRACE_S:
        extend_leases(pause)
        return SweepReport(extended_s=pause)
    ended = [*_overdue(now), *_stuck_cancels(now), *_expired(now)]
    requeued = _expired_leases(now)
    swept = traces.sweep_traces(now)
    _forget(now)
    return SweepReport(requeued=tuple(requeued), ended=tuple(ended), traces=tuple(swept))


@transaction.atomic
def _pause(now: datetime) -> float:
    """Seconds since the last sweep by anybody; this one becomes the last."""
    row = Heartbeat.objects.filter(name=TICK).first()
    Heartbeat.objects.update_or_create(
        name=TICK,
        defaults={"kind": TICK, "at": now},
        create_defaults={"kind": TICK, "at": now, "started_at": now, "version": ""},
    )
    return (now - row.at).total_seconds() if row else 0.0


@transaction.atomic
def extend_leases(seconds: float) -> None:
    """Grant every holder `seconds` more."""
    more = timedelta(seconds=seconds)
    Run.objects.filter(state=RunState.RUNNING).update(
        lease_until=F("lease_until") + more, deadline_at=F("deadline_at") + more
    )
    Trace.objects.filter(state=TraceState.INGESTING).update(lease_until=F("lease_until") + more)


def _expired_leases(now: datetime) -> list[int]:
    """Running runs whose lease and grace are over go back to the queue, or are lost."""
    limit = now - timedelta(seconds=settings.GRACE_S)
    rows = Run.objects.select_related("platform").filter(
        state=RunState.RUNNING, lease_until__lt=limit
    )
    return [run.pk for run in rows if _take_back(run)]


def _take_back(run: Run) -> bool:
    outcome = Outcome(
        state="requeue",
        failure_kind=FailureKind.WORKER_LOST,
        message=f"{LOST_MESSAGE} ({run.worker})",
        hint=LOST_HINT,
    )
    try:
        with transaction.atomic():
            lifecycle.hand_back(run, run.fence, outcome, {})
    except SupersededError:
        return False  # its worker delivered after all: that word stands
    return True


def _overdue(now: datetime) -> list[int]:
    """Runs far over their deadline although somebody still sends heartbeats."""
    rows = Run.objects.filter(
        state=RunState.RUNNING, deadline_at__lt=now - OVERDUE / settings.TIME_SCALE
    )
    message = "Far over its time limit, and its worker did not end it"
    return [
        run.pk for run in rows if end_run(run, RunState.TIMED_OUT, FailureKind.TIME_LIMIT, message)
    ]


def _stuck_cancels(now: datetime) -> list[int]:
    """Cancelled runs whose worker did not react in time."""
    limit = now - timedelta(seconds=settings.CANCEL_TIMEOUT_S)
    rows = Run.objects.filter(state=RunState.RUNNING, cancel_requested_at__lt=limit)
    message = "Cancelled; its worker did not answer"
    return [
        run.pk for run in rows if end_run(run, RunState.CANCELLED, FailureKind.CANCELLED, message)
    ]


def _expired(now: datetime) -> list[int]:
    """Queued runs that no worker took within a week."""
    rows = Run.objects.filter(state=RunState.QUEUED, expires_at__lt=now)
    message = "No worker of its platform took it in time"
    return [
        run.pk for run in rows if end_run(run, RunState.EXPIRED, FailureKind.NO_WORKER, message)
    ]


@transaction.atomic
def end_run(run: Run, state: RunState, kind: FailureKind, message: str) -> bool:
    """End a run from the server's side, if it is still as `run` was read."""
    now = db_now()
    won = Run.objects.filter(pk=run.pk, state=run.state, fence=run.fence).update(
        state=state,
        fence=run.fence + 1,
        lease_until=None,
        ended_at=now,
        failure_kind=kind,
        failure_message=message,
    )
    if not won:
        return False
    events.close_attempt(run.pk, run.fence, now, f"ended by the server: {state}")
    events.record(run, state, now, message)
    groups.settle(run, now)
    pairs.settle(run, now)
    return True


def _forget(now: datetime) -> None:
    """Drop what is only kept for a while."""
    day = now - timedelta(days=1)
    IdempotencyKey.objects.filter(created_at__lt=day).delete()
    SignInFailure.objects.filter(at__lt=day).delete()
    Heartbeat.objects.filter(at__lt=now - timedelta(days=7)).exclude(name=TICK).delete()
