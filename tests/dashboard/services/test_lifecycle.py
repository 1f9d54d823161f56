"""Claim, heartbeat and delivery of one run."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import IntegrityError, transaction

from dashboard.models import (
    Attempt,
    MetricValue,
    Outbox,
    Result,
    Run,
    RunArtifact,
    RunEvent,
    RunState,
    Trace,
)
from dashboard.services import lifecycle, runs
from dashboard.services.contract import (
    Beat,
    Claim,
    StoredFile,
    SupersededError,
    WorkerIdentity,
)
from tests.dashboard.services import scene
from tests.dashboard.services.scene import Clock

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store_root")]


def claimed(attempt: int = 1) -> Claim:
    run = scene.queued()
    claim = lifecycle.claim_run(run.pk, attempt, scene.WORKER)
    assert claim is not None
    return claim


def test_it_gives_a_run_to_the_first_who_claims() -> None:
    run = scene.queued()
    first = lifecycle.claim_run(run.pk, 1, scene.WORKER)
    second = lifecycle.claim_run(run.pk, 1, scene.WORKER)
    assert first is not None and (first.attempt, first.fence) == (1, 1)
    assert second is None
    assert Attempt.objects.count() == 1


def test_it_gives_nothing_for_another_attempt() -> None:
    assert lifecycle.claim_run(scene.queued().pk, 2, scene.WORKER) is None


@pytest.mark.parametrize(
    "worker",
    [
        WorkerIdentity(name="other", platform="cuda"),
        WorkerIdentity(name="older", platform="cpu", protocol=0),
    ],
)
def test_it_gives_nothing_to_a_worker_that_does_not_fit(worker: WorkerIdentity) -> None:
    assert lifecycle.claim_run(scene.queued().pk, 1, worker) is None


def test_it_gives_nothing_for_a_run_that_does_not_exist() -> None:
    assert lifecycle.claim_run(12345, 1, scene.WORKER) is None


def test_it_leases_the_run_and_sets_its_deadline(clock: Clock) -> None:
    claim = claimed()
    run = Run.objects.get(pk=claim.run_id)
    assert run.lease_until == clock.now + timedelta(seconds=settings.LEASE_S)
    assert run.deadline_at == clock.now + timedelta(seconds=run.limit_s)


def test_it_extends_the_lease_with_every_heartbeat(clock: Clock) -> None:
    claim = claimed()
    clock.advance(60)
    beat = Beat(phase="timed", step=3, steps=10, log_tail="step 3")
    answer = lifecycle.heartbeat_run(claim.run_id, claim.fence, beat)
    run = Run.objects.get(pk=claim.run_id)
    assert not answer.cancel
    assert run.lease_until == clock.now + timedelta(seconds=settings.LEASE_S)
    assert (run.phase, run.step, run.steps, run.log_tail) == ("timed", 3, 10, "step 3")


def test_it_tells_the_worker_of_a_cancel() -> None:
    claim = claimed()
    runs.cancel_run(claim.run_id, scene.user())
    assert lifecycle.heartbeat_run(claim.run_id, claim.fence, Beat()).cancel


def test_it_refuses_a_heartbeat_with_an_old_fence() -> None:
    claim = claimed()
    with pytest.raises(SupersededError):
        lifecycle.heartbeat_run(claim.run_id, claim.fence - 1, Beat())


def test_it_stores_result_metrics_files_and_trace_together(tmp_path: Path) -> None:
    claim = claimed()
    lifecycle.deliver_run(claim.run_id, claim.fence, scene.succeeded(tmp_path))
    run = Run.objects.get(pk=claim.run_id)
    value = MetricValue.objects.get(result__run=run)
    assert run.state == RunState.SUCCEEDED and run.lease_until is None
    assert (value.name, value.value, value.n) == ("ttft", 2_000_000.0, 3)
    assert value.samples == [1_900_000.0, 2_000_000.0, 2_100_000.0]
    assert set(RunArtifact.objects.values_list("name", flat=True)) == {
        "result.json",
        "env.json",
        "trace.json.gz",
    }
    trace = Trace.objects.get(run=run)
    assert Outbox.objects.filter(task="ingest_trace", subject_id=trace.pk).count() == 1


def test_it_opens_one_trace_per_rank(tmp_path: Path) -> None:
    claim = claimed()
    outcome = scene.succeeded(tmp_path)
    (tmp_path / "trace-rank1.json.gz").write_bytes(b"\x1f\x8b rank 1")
    other = StoredFile(name="trace-rank1.json.gz", path=tmp_path / "trace-rank1.json.gz")
    outcome = dataclasses.replace(outcome, files=(*outcome.files, other))
    lifecycle.deliver_run(claim.run_id, claim.fence, outcome)
    assert list(Trace.objects.order_by("rank").values_list("rank", "name")) == [
        (0, "trace.json.gz"),
        (1, "trace-rank1.json.gz"),
    ]


def test_it_accepts_the_same_delivery_again(tmp_path: Path) -> None:
    claim = claimed()
    outcome = scene.succeeded(tmp_path)
    for _ in range(3):
        lifecycle.deliver_run(claim.run_id, claim.fence, outcome)
    assert Result.objects.count() == 1
    assert RunEvent.objects.filter(kind="succeeded").count() == 1


def test_it_refuses_the_result_of_an_attempt_that_was_replaced(tmp_path: Path) -> None:
    claim = claimed()
    Run.objects.filter(pk=claim.run_id).update(fence=claim.fence + 1)
    with pytest.raises(SupersededError):
        lifecycle.deliver_run(claim.run_id, claim.fence, scene.succeeded(tmp_path))
    assert not Result.objects.exists()


def test_it_keeps_the_reason_of_a_failure() -> None:
    claim = claimed()
    lifecycle.deliver_run(claim.run_id, claim.fence, scene.failed("oom_device"))
    run = Run.objects.get(pk=claim.run_id)
    assert (run.state, run.failure_kind) == (RunState.FAILED, "oom_device")
    assert (run.failure_message, run.failure_hint) == ("it broke", "see the log")


def test_it_queues_the_run_again_after_a_fault_of_the_machine(clock: Clock) -> None:
    claim = claimed()
    lifecycle.deliver_run(claim.run_id, claim.fence, scene.requeue())
    assert lifecycle.next_runs("cpu", 5) == []
    clock.advance(6)
    assert lifecycle.next_runs("cpu", 5) == [(claim.run_id, 2)]


def test_it_does_not_count_a_drained_attempt(clock: Clock) -> None:
    claim = claimed()
    lifecycle.deliver_run(claim.run_id, claim.fence, scene.requeue(counts=False))
    clock.advance(6)
    assert lifecycle.next_runs("cpu", 5) == [(claim.run_id, 1)]
    again = lifecycle.claim_run(claim.run_id, 1, scene.WORKER)
    assert again is not None and again.fence == 3


def test_it_gives_a_run_up_after_its_last_attempt(clock: Clock) -> None:
    run = scene.queued()
    for attempt in range(1, settings.MAX_ATTEMPTS + 1):
        claim = lifecycle.claim_run(run.pk, attempt, scene.WORKER)
        assert claim is not None
        lifecycle.deliver_run(run.pk, claim.fence, scene.requeue())
        clock.advance(6)
    run.refresh_from_db()
    assert (run.state, run.failure_kind) == (RunState.LOST, "worker_fault")


def test_it_ends_a_cancelled_run_instead_of_queueing_it_again() -> None:
    claim = claimed()
    runs.cancel_run(claim.run_id, scene.user())
    lifecycle.deliver_run(claim.run_id, claim.fence, scene.requeue())
    assert Run.objects.get(pk=claim.run_id).state == RunState.CANCELLED


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"spec_hash": "0" * 64}, "another specification"),
        ({"metrics": ()}, "holds no metric"),
        ({"metrics": (scene.metric(value=-1.0),)}, "ttft is not a finite"),
        ({"metrics": (scene.metric(name="speed"),)}, "'speed' (ns) is not defined"),
    ],
)
def test_it_turns_an_impossible_result_into_a_failure(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    claim = claimed()
    answer = dataclasses.replace(scene.result(), **change)  # type: ignore[arg-type]
    lifecycle.deliver_run(claim.run_id, claim.fence, scene.succeeded(tmp_path, answer))
    run = Run.objects.get(pk=claim.run_id)
    assert (run.state, run.failure_kind) == (RunState.FAILED, "invalid_result")
    assert said in run.failure_message
    assert not Result.objects.exists()


@pytest.mark.parametrize("content", [b"", b"{", b'{"value": NaN}', b"[]", b"\xff\xfe"])
def test_it_turns_an_unreadable_result_into_a_failure(tmp_path: Path, content: bytes) -> None:
    claim = claimed()
    outcome = scene.succeeded(tmp_path)
    (tmp_path / "result.json").write_bytes(content)
    lifecycle.deliver_run(claim.run_id, claim.fence, outcome)
    assert Run.objects.get(pk=claim.run_id).failure_kind == "invalid_result"


WRONG_STATES: list[dict[str, object]] = [
    {"state": "done"},
    {"state": "succeeded"},
    {"ended_at": "2026-01-01T00:00:00Z"},
    {"state": "running"},
    {"failure_kind": "crashed"},
    {"attempt": 5},
    {"lease_until": "2026-01-01T00:00:00Z"},
]


@pytest.mark.parametrize("wrong", WRONG_STATES, ids=str)
def test_the_database_refuses_a_wrong_state(wrong: dict[str, object]) -> None:
    run = scene.queued()
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.filter(pk=run.pk).update(**wrong)


def test_the_database_refuses_a_second_end() -> None:
    claim = claimed()
    lifecycle.deliver_run(claim.run_id, claim.fence, scene.failed())
    event = RunEvent.objects.get(run_id=claim.run_id, kind="failed")
    event.pk, event.kind = None, "succeeded"
    with pytest.raises(IntegrityError), transaction.atomic():
        event.save()
