"""The outbox: messages written with the rows they speak of, published by the keeper.

A message is a doorbell. Losing one costs time, never a run: `republish_unclaimed`
rings again for what nobody took.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

from dashboard.models import Outbox, Platform, Run, RunState, Trace, TraceState
from dashboard.services import events
from dashboard.services.clock import db_now
from dashboard.services.contract import Message

OLDEST = 5
"""Rung again per queue at a time: enough to wake a worker, too few to flood the broker."""

BACKOFF_LIMIT_S = 60.0


def due_messages(limit: int) -> list[Message]:
    """Messages whose time has come, oldest first."""
    rows = Outbox.objects.filter(not_before__lte=db_now()).order_by("id")[:limit]
    return [
        Message(
            outbox_id=row.pk,
            queue=row.queue,
            task=row.task,
            subject_id=row.subject_id,
            attempt=row.attempt,
        )
        for row in rows
    ]


@transaction.atomic
def published(outbox_ids: Sequence[int]) -> None:
    """The broker has them: forget the messages, remember when it rang."""
    now = db_now()
    rows = list(Outbox.objects.filter(pk__in=outbox_ids))
    runs = [row.subject_id for row in rows if row.task == events.RUN_TASK]
    traces = [row.subject_id for row in rows if row.task == events.TRACE_TASK]
    Run.objects.filter(pk__in=runs).update(rung_at=now)
    Trace.objects.filter(pk__in=traces).update(rung_at=now)
    Outbox.objects.filter(pk__in=outbox_ids).delete()


@transaction.atomic
def postponed(outbox_ids: Sequence[int], error: str) -> None:
    """The broker did not take them: try again later, at most a minute apart."""
    now = db_now()
    for row in Outbox.objects.filter(pk__in=outbox_ids):
        wait = min(BACKOFF_LIMIT_S, 2.0**row.tries) / settings.TIME_SCALE
        Outbox.objects.filter(pk=row.pk).update(
            tries=F("tries") + 1, not_before=now + timedelta(seconds=wait)
        )


@transaction.atomic
def republish_unclaimed() -> int:
    """Ring again for queued work that nobody took in time; how many."""
    now = db_now()
    before = now - timedelta(seconds=settings.RECONCILE_S)
    runs = [run for platform in Platform.objects.all() for run in _silent_runs(platform, before)]
    for run in runs:
        events.ring_for_run(run, now)
    traces = _silent_traces(before)
    for trace in traces:
        events.ring_for_trace(trace, now)
    return len(runs) + len(traces)


def _silent(before: datetime) -> Q:
    """Last rung, or created without ever being rung, before `before`."""
    return Q(rung_at__lt=before) | Q(rung_at__isnull=True, created_at__lt=before)


def _waiting(task: str) -> list[int]:
    """Subjects whose message still lies in the outbox."""
    return list(Outbox.objects.filter(task=task).values_list("subject_id", flat=True))


def _silent_runs(platform: Platform, before: datetime) -> list[Run]:
    rows = (
        Run.objects.select_related("platform")
        .filter(_silent(before), platform=platform, state=RunState.QUEUED)
        .filter(not_before__lt=before)
        .exclude(pk__in=_waiting(events.RUN_TASK))
    )
    return list(rows.order_by("id")[:OLDEST])


def _silent_traces(before: datetime) -> list[Trace]:
    rows = Trace.objects.filter(_silent(before), state=TraceState.PENDING)
    return list(rows.exclude(pk__in=_waiting(events.TRACE_TASK)).order_by("id")[:OLDEST])
