"""What a waiting or running run is doing now: the part of its page that is polled."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from dashboard.models import Heartbeat, Run, RunState
from dashboard.queries.runs import took_ns

ALIVE = timedelta(minutes=2)
"""A worker heard of within this time counts as up."""

LIVELY = timedelta(seconds=60)
"""For this long after a change the page asks every 2 seconds, then every 5."""

EARLIER_RUNS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """State, place in the queue, progress and signs of life.

    `usual_ns` is the median time of earlier successful runs of the same
    specification on the same platform; `None` when there was none.
    """

    run: Run
    position: int | None
    workers_up: int
    elapsed_ns: float | None
    heartbeat_age_ns: float | None
    usual_ns: float | None
    every: str

    @property
    def progress(self) -> float | None:
        """Steps done of the current phase, between 0 and 1."""
        if self.run.state != RunState.RUNNING or not self.run.steps:
            return None
        return min(1.0, self.run.step / self.run.steps)


def run_status(run: Run) -> RunStatus:
    """The status of `run` as of now."""
    now = timezone.now()
    active = not run.is_terminal
    changed_at = run.started_at or run.created_at
    waiting = run.state == RunState.QUEUED
    elapsed = (now - changed_at).total_seconds() * 1e9 if active else took_ns(run)
    heard = run.heartbeat_at if run.state == RunState.RUNNING else None
    return RunStatus(
        run=run,
        position=_position(run) if waiting else None,
        workers_up=workers_up(run.platform.slug) if waiting else 0,
        elapsed_ns=elapsed,
        heartbeat_age_ns=(now - heard).total_seconds() * 1e9 if heard else None,
        usual_ns=_usual_ns(run) if active else None,
        every="2s" if now - changed_at < LIVELY else "5s",
    )


def _position(run: Run) -> int:
    """Place in the queue of the platform; the next to start is 1."""
    ahead = Run.objects.filter(
        platform_id=run.platform_id,
        state=RunState.QUEUED,
        cancel_requested_at__isnull=True,
        pk__lt=run.pk,
    )
    return ahead.count() + 1


def workers_up(platform: str) -> int:
    """Workers of the platform of that name that were heard of lately."""
    since = timezone.now() - ALIVE
    return Heartbeat.objects.filter(kind="worker", platform=platform, at__gte=since).count()


def _usual_ns(run: Run) -> float | None:
    earlier = Run.objects.filter(
        spec_hash=run.spec_hash,
        platform_id=run.platform_id,
        state=RunState.SUCCEEDED,
        compared__isnull=run.compared_id is None,
    ).only("started_at", "ended_at")
    times = [took for past in earlier[:EARLIER_RUNS] if (took := took_ns(past)) is not None]
    return statistics.median(times) if times else None
