"""An end that was seen reaches the server, later and from another process if need be."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from django.db import OperationalError

from dashboard.models import Run, RunState
from dashboard.services import lifecycle
from dashboard.services.contract import Beat, Claim, Outcome, StoredFile, WorkerIdentity
from tests.workers.bench import Bench
from tests.workers.fake_result import write
from tests.workers.system import wait_for
from workers import processes
from workers.delivery import Delivery, Janitor
from workers.duty import places
from workers.job import OWNER_LOCK, SUPERVISOR_LOCK, FileLock, Spool
from workers.local import LocalServer

pytestmark = pytest.mark.fault

OTHER = WorkerIdentity(name="other:1", platform="cpu")


class UnreliableServer(LocalServer):
    """Fails a few times before it answers; where `loses_answers`, only after doing the work."""

    def __init__(self, failures: int, *, loses_answers: bool = False) -> None:
        self.failures = failures
        self.loses_answers = loses_answers

    def deliver(self, run_id: int, fence: int, outcome: Outcome) -> None:
        if self.loses_answers:
            super().deliver(run_id, fence, outcome)
        if self.failures > 0:
            self.failures -= 1
            raise OperationalError("database is locked")
        super().deliver(run_id, fence, outcome)


def claimed(bench: Bench) -> tuple[Run, Claim, Spool]:
    """A run that is ours, and its folder with a good result."""
    run = bench.queue("quick")
    claim = lifecycle.claim_run(run.pk, 1, OTHER)
    assert claim is not None
    spool = Spool.of(places().spool, run.pk, claim.fence)
    spool.output.mkdir(parents=True)
    (spool.folder / "spec.json").write_bytes(claim.spec)
    write(spool.folder / "spec.json", spool.output)
    return run, claim, spool


def good(spool: Spool) -> Outcome:
    names = ("result.json", "env.json")
    files = tuple(StoredFile(name=name, path=spool.output / name) for name in names)
    return Outcome(state="succeeded", files=files)


def delivery(server: LocalServer) -> Delivery:
    return Delivery(server, places().timing, threading.Event())


@pytest.mark.parametrize("loses_answers", [False, True])
def test_it_delivers_once_over_a_server_that_stumbles(bench: Bench, *, loses_answers: bool) -> None:
    run, _, spool = claimed(bench)
    server = UnreliableServer(2, loses_answers=loses_answers)
    assert delivery(server).deliver(spool, good(spool), patience_s=30)
    run.refresh_from_db()
    assert (run.state, run.result.attempt) == (RunState.SUCCEEDED, 1)
    assert not spool.folder.exists()


def test_it_keeps_the_spool_while_the_server_is_away(bench: Bench) -> None:
    run, _, spool = claimed(bench)
    spool.write_outcome(good(spool))
    assert not delivery(UnreliableServer(99)).deliver(spool, good(spool), patience_s=0)
    Janitor(places().spool, delivery(LocalServer())).clean()
    run.refresh_from_db()
    assert run.state == RunState.SUCCEEDED
    assert not spool.folder.exists()


def test_it_drops_the_spool_of_an_attempt_that_lost_its_lease(bench: Bench) -> None:
    run, claim, spool = claimed(bench)
    lifecycle.deliver_run(run.pk, claim.fence, Outcome(state="cancelled", failure_kind="cancelled"))
    Run.objects.filter(pk=run.pk).update(fence=claim.fence + 1)
    run.attempts.update(outcome="superseded")
    assert delivery(LocalServer()).deliver(spool, good(spool), patience_s=0)
    assert not spool.folder.exists()
    assert not hasattr(Run.objects.get(pk=run.pk), "result")


def test_it_keeps_the_lease_while_a_delivery_takes_long(bench: Bench) -> None:
    run, claim, spool = claimed(bench)
    before = Run.objects.get(pk=run.pk).heartbeat_at
    server = UnreliableServer(99)
    thread = threading.Thread(
        target=delivery(server).deliver, args=(spool, good(spool)), kwargs={"patience_s": 30}
    )
    thread.start()
    wait_for(lambda: Run.objects.get(pk=run.pk).heartbeat_at != before)
    assert Run.objects.get(pk=run.pk).phase == "uploading"
    server.failures = 0
    thread.join()
    assert lifecycle.next_runs("cpu", 1) == []
    assert Run.objects.get(pk=run.pk).fence == claim.fence


def test_it_hands_back_the_run_of_a_worker_that_left_no_word(bench: Bench) -> None:
    run, _, _ = claimed(bench)
    Janitor(places().spool, delivery(LocalServer())).clean()
    run.refresh_from_db()
    assert (run.state, run.attempt) == (RunState.QUEUED, 1)
    assert not list(places().spool.iterdir())


def test_it_ends_what_a_dead_worker_left_running(bench: Bench) -> None:
    _, _, spool = claimed(bench)
    environment = {**os.environ, processes.MARKER: spool.marker}
    code = "import time; time.sleep(600)"
    left = subprocess.Popen([sys.executable, "-S", "-c", code], env=environment)
    wait_for(lambda: processes.marked(spool.marker))
    Janitor(places().spool, delivery(LocalServer())).clean()
    assert left.wait(10) != 0


@pytest.mark.parametrize("name", [OWNER_LOCK, SUPERVISOR_LOCK])
def test_it_leaves_the_spool_of_the_living_alone(bench: Bench, name: str) -> None:
    run, _, spool = claimed(bench)
    lock = FileLock(spool.folder / name)
    assert lock.take()
    Janitor(places().spool, delivery(LocalServer())).clean()
    lock.release()
    run.refresh_from_db()
    assert (run.state, spool.folder.exists()) == (RunState.RUNNING, True)


def test_it_leaves_runs_of_another_installation_alone(bench: Bench, tmp_path: Path) -> None:
    here = Spool.of(places().spool, 1, 1)
    there = Spool.of(tmp_path / "other", 1, 1)
    assert here.marker != there.marker


def test_it_remembers_an_outcome_with_its_files(tmp_path: Path) -> None:
    spool = Spool.of(tmp_path, 3, 4)
    spool.folder.mkdir()
    outcome = Outcome(
        state="failed",
        failure_kind="crashed",
        message="why",
        hint="what next",
        counts=False,
        files=(StoredFile(name="log.txt", path=spool.folder / "log.txt"),),
    )
    assert spool.read_outcome() is None
    spool.write_outcome(outcome)
    assert spool.read_outcome() == outcome
    assert spool.run_and_fence == (3, 4)


def test_it_says_what_it_hears_to_a_cancelled_run(bench: Bench) -> None:
    run, claim, _ = claimed(bench)
    Run.objects.filter(pk=run.pk).update(cancel_requested_at=run.created_at)
    assert LocalServer().heartbeat(run.pk, claim.fence, Beat()).cancel
