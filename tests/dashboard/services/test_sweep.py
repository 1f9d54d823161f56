"""What the sweeper ends, takes back and leaves alone."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings

from dashboard.models import Attempt, IdempotencyKey, Outbox, Run, RunState, Trace
from dashboard.services import artifacts, lifecycle, runs, traces
from dashboard.services.contract import Beat, Claim
from dashboard.services.sweep import sweep
from tests.dashboard.services import scene
from tests.dashboard.services.scene import Clock

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store_root")]

STEP = 20.0


def claimed() -> Claim:
    claim = lifecycle.claim_run(scene.queued().pk, 1, scene.WORKER)
    assert claim is not None
    return claim


def pass_time(clock: Clock, seconds: float, beating: Claim | None = None) -> None:
    """Let time pass while the sweeper works on time, and `beating` sends heartbeats."""
    sweep()
    for _ in range(int(seconds / STEP)):
        clock.advance(STEP)
        if beating:
            lifecycle.heartbeat_run(beating.run_id, beating.fence, Beat())
        sweep()


def test_it_takes_a_run_back_after_lease_and_grace(clock: Clock) -> None:
    claim = claimed()
    pass_time(clock, settings.LEASE_S + settings.GRACE_S - STEP)
    assert Run.objects.get().state == RunState.RUNNING
    pass_time(clock, 2 * STEP)
    run = Run.objects.get()
    assert (run.state, run.attempt, run.fence) == (RunState.QUEUED, 1, claim.fence + 1)
    assert Attempt.objects.get().outcome == "delivered requeue"
    assert Outbox.objects.filter(task="run_benchmark", attempt=2).count() == 1


def test_it_leaves_a_run_alone_that_sends_heartbeats(clock: Clock) -> None:
    claim = claimed()
    pass_time(clock, 600, beating=claim)
    assert Run.objects.get().fence == claim.fence


def test_it_loses_a_run_whose_workers_all_vanish(clock: Clock) -> None:
    run = scene.queued()
    for attempt in range(1, settings.MAX_ATTEMPTS + 1):
        assert lifecycle.claim_run(run.pk, attempt, scene.WORKER)
        pass_time(clock, 200)
    run.refresh_from_db()
    assert (run.state, run.failure_kind) == (RunState.LOST, "worker_lost")
    assert "stopped answering" in run.failure_message


def test_it_grants_more_time_after_a_pause_of_its_own(clock: Clock) -> None:
    claimed()
    sweep()
    lease = Run.objects.get().lease_until
    clock.advance(3600)
    report = sweep()
    run = Run.objects.get()
    assert report.extended_s == 3600
    assert lease is not None and run.lease_until == lease + timedelta(seconds=3600)
    assert run.state == RunState.RUNNING


def test_it_ends_a_run_far_over_its_deadline_despite_heartbeats(clock: Clock) -> None:
    claim = claimed()
    Run.objects.update(deadline_at=clock.now + timedelta(seconds=60))
    pass_time(clock, 640, beating=claim)
    assert Run.objects.get().state == RunState.RUNNING
    clock.advance(STEP + 1)
    sweep()
    assert Run.objects.get().state == RunState.TIMED_OUT


def test_it_ends_a_cancelled_run_whose_worker_does_not_react(clock: Clock) -> None:
    claim = claimed()
    runs.cancel_run(claim.run_id, scene.user())
    pass_time(clock, settings.CANCEL_TIMEOUT_S + STEP)
    run = Run.objects.get()
    assert (run.state, run.fence) == (RunState.CANCELLED, claim.fence + 1)


def test_it_expires_what_no_worker_took(clock: Clock) -> None:
    scene.queued()
    sweep()
    clock.advance(settings.QUEUE_TTL_S + 1)
    sweep()  # after the pause leases come first
    sweep()
    run = Run.objects.get()
    assert (run.state, run.failure_kind) == (RunState.EXPIRED, "no_worker")


def test_it_forgets_idempotency_keys_after_a_day(clock: Clock) -> None:
    runs.create_runs([scene.SPEC], platform=scene.platform(), user=scene.user(), key="k")
    sweep()
    clock.advance(86_401)
    sweep()
    sweep()
    assert not IdempotencyKey.objects.exists()


def pending_trace(tmp_path: Path) -> Trace:
    path = tmp_path / "trace"
    path.write_bytes(b"{}")
    raw = artifacts.keep(path)
    return Trace.objects.create(name="t", raw=raw, created_at=raw.created_at)


def test_it_reads_a_trace_again_when_its_reader_vanished(clock: Clock, tmp_path: Path) -> None:
    trace = pending_trace(tmp_path)
    claim = traces.claim_trace(trace.pk, 1, scene.WORKER)
    assert claim is not None
    pass_time(clock, 180)
    assert traces.next_traces(5) == [(trace.pk, 2)]


def test_it_rejects_a_trace_that_kills_every_reader(clock: Clock, tmp_path: Path) -> None:
    trace = pending_trace(tmp_path)
    for attempt in range(1, settings.MAX_ATTEMPTS + 1):
        assert traces.claim_trace(trace.pk, attempt, scene.WORKER)
        pass_time(clock, 180)
    trace.refresh_from_db()
    assert (trace.state, trace.reason) == ("rejected", "Reading it was interrupted 3 times")
