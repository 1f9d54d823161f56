"""Small writes that several services share: events, attempts' ends and messages."""

from __future__ import annotations

from datetime import datetime

from dashboard.models import Attempt, Outbox, Run, RunEvent, Trace

INGEST_QUEUE = "ingest"
RUN_TASK = "run_benchmark"
TRACE_TASK = "ingest_trace"


def platform_queue(slug: str) -> str:
    """The broker queue of a platform."""
    return f"platform.{slug}"


def record(run: Run, kind: str, at: datetime, text: str = "") -> None:
    """Append one event; a second terminal event of a run is refused by the database."""
    RunEvent.objects.create(run=run, kind=kind, at=at, attempt=run.attempt, text=text[:500])


def close_attempt(run_id: int, fence: int, at: datetime, outcome: str) -> None:
    """Note how the attempt that held `fence` ended; the first word stands."""
    Attempt.objects.filter(run_id=run_id, fence=fence, ended_at__isnull=True).update(
        ended_at=at, outcome=outcome[:40]
    )


def ring_for_run(run: Run, at: datetime) -> None:
    """Write the message that makes a worker look at `run`; the keeper publishes it."""
    Outbox.objects.create(
        queue=platform_queue(run.platform.slug),
        task=RUN_TASK,
        subject_id=run.pk,
        attempt=run.attempt + 1,
        created_at=at,
        not_before=run.not_before,
    )


def ring_for_trace(trace: Trace, at: datetime) -> None:
    """Write the message that makes an ingest worker look at `trace`."""
    Outbox.objects.create(
        queue=INGEST_QUEUE,
        task=TRACE_TASK,
        subject_id=trace.pk,
        attempt=trace.attempt + 1,
        created_at=at,
        not_before=at,
    )
