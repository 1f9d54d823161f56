"""Whatever is killed, every run ends exactly once and no process is left behind."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psutil
import pytest
import redis

from dashboard.models import Run, RunState
from dashboard.services import runs
from tests.factories import make_user
from tests.workers.system import (
    System,
    assert_invariants,
    outbox_tries,
    own_marked,
    parent_of,
    runs_rung,
    state_of,
    wait_for,
    wait_for_end,
    wait_until_benchmark_runs,
)
from workers import broker, processes
from workers.app import app

pytestmark = pytest.mark.fault


def supervisor_of(worker: subprocess.Popen[bytes]) -> int:
    """The one child of the worker."""
    wait_for(lambda: children_of(worker.pid))
    return children_of(worker.pid)[0]


def children_of(pid: int) -> list[int]:
    return [p.pid for p in processes.descendants(pid) if parent_of(p.pid) == pid]


def freeze(system: System, *pids: int) -> None:
    """Stop processes between two writes: one stopped within a write locks everybody out."""

    def is_frozen() -> bool:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        wait_for(lambda: all(psutil.Process(pid).status() == psutil.STATUS_STOPPED for pid in pids))
        if can_write(system):
            return True
        thaw(*pids)
        return False

    wait_for(is_frozen)


def thaw(*pids: int) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def can_write(system: System) -> bool:
    with closing(sqlite3.connect(system.var_dir / "daybreak.sqlite3", timeout=0)) as database:
        try:
            database.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        database.rollback()
    return True


def cancel(run: Run) -> None:
    runs.cancel_run(run.pk, make_user())


def test_it_retries_a_run_whose_worker_was_killed(system: System) -> None:
    system.benchmark("slow")
    run = system.queue()
    system.start_broker()
    system.start_keeper()
    worker = system.start_worker()
    wait_until_benchmark_runs(run)
    system.kill(worker)
    wait_for(lambda: not own_marked(run), limit_s=10)
    system.start_worker()
    ended = wait_for_end(run)
    assert (ended.state, ended.attempt) == (RunState.SUCCEEDED, 2), system.logs()
    assert_invariants(system.var_dir)


def test_it_retries_after_the_lease_without_the_help_of_a_janitor(system: System) -> None:
    system.benchmark("sleep")
    run = system.queue()
    system.start_broker()
    worker = system.start_worker()
    keeper = system.start_keeper()
    wait_until_benchmark_runs(run)
    system.kill(worker)
    wait_for(lambda: state_of(run) == RunState.QUEUED)
    assert keeper.poll() is None
    assert not own_marked(run)


def test_it_retries_a_run_whose_supervisor_was_killed(system: System) -> None:
    system.benchmark("fork")
    run = system.queue()
    system.start_broker()
    system.start_keeper()
    worker = system.start_worker()
    wait_until_benchmark_runs(run)
    wait_for(lambda: len(own_marked(run)) >= 7)
    first = own_marked(run)
    os.kill(supervisor_of(worker), signal.SIGKILL)
    wait_for(lambda: not any(processes.is_alive(process) for process in first), limit_s=20)
    wait_for(lambda: Run.objects.get(pk=run.pk).attempt == 2)
    cancel(run)
    assert wait_for_end(run).state == RunState.CANCELLED
    assert_invariants(system.var_dir)


def test_it_leaves_nothing_when_worker_and_supervisor_are_killed_together(system: System) -> None:
    system.benchmark("fork")
    run = system.queue()
    system.start_broker()
    system.start_keeper()
    worker = system.start_worker()
    wait_until_benchmark_runs(run)
    supervisor = supervisor_of(worker)
    os.kill(supervisor, signal.SIGKILL)
    system.kill(worker)
    cancel(run)
    system.benchmark("quick")
    system.start_worker()
    assert wait_for_end(run).state == RunState.CANCELLED
    assert_invariants(system.var_dir)


def test_it_finishes_a_run_while_the_broker_is_killed(system: System) -> None:
    system.benchmark("slow")
    run = system.queue()
    server = system.start_broker()
    system.start_keeper()
    system.start_worker()
    wait_until_benchmark_runs(run)
    system.kill(server)
    waiting = system.queue()
    assert wait_for_end(run).state == RunState.SUCCEEDED
    system.start_broker()
    assert wait_for_end(waiting).state == RunState.SUCCEEDED
    assert [Run.objects.get(pk=r.pk).attempt for r in (run, waiting)] == [1, 1]
    assert_invariants(system.var_dir)


def test_it_finishes_a_run_while_the_keeper_is_killed(system: System) -> None:
    system.benchmark("slow")
    run = system.queue()
    system.start_broker()
    keeper = system.start_keeper()
    system.start_worker()
    wait_until_benchmark_runs(run)
    system.kill(keeper)
    assert wait_for_end(run).state == RunState.SUCCEEDED
    system.start_keeper()
    assert wait_for_end(system.queue()).attempt == 1
    assert_invariants(system.var_dir)


def test_it_takes_runs_without_broker_and_keeper(system: System) -> None:
    run = system.queue()
    system.start_worker()
    assert wait_for_end(run).state == RunState.SUCCEEDED
    assert_invariants(system.var_dir)


def test_it_keeps_messages_until_the_broker_comes(system: System) -> None:
    run = system.queue()
    system.start_keeper()
    wait_for(lambda: runs_rung() == 0 and outbox_tries() >= 1)
    system.start_broker()
    wait_for(lambda: runs_rung() == 1)
    system.start_worker()
    assert wait_for_end(run).state == RunState.SUCCEEDED


def test_it_rings_again_for_a_message_that_was_lost(system: System) -> None:
    system.start_broker()
    run = system.queue()
    system.start_keeper()
    wait_for(lambda: runs_rung() == 1)
    redis.Redis(
        unix_socket_path=str(broker.socket_path(system.var_dir)),
        password=(system.var_dir / "broker" / "password").read_text(),
    ).flushall()
    first = Run.objects.get(pk=run.pk).rung_at
    wait_for(lambda: Run.objects.get(pk=run.pk).rung_at != first)
    system.start_worker()
    assert wait_for_end(run).attempt == 1


def test_it_runs_once_when_the_message_comes_twenty_times(system: System) -> None:
    system.benchmark("slow")
    system.start_broker()
    run = system.queue()
    app.conf.broker_url = broker.broker_url(system.var_dir)
    senders = [threading.Thread(target=ring, args=(run.pk, 5)) for _ in range(4)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    workers = [system.start_worker(), system.start_worker()]
    ended = wait_for_end(run)
    assert (ended.state, ended.attempt, ended.attempts.count()) == (RunState.SUCCEEDED, 1, 1)
    assert all(worker.poll() is None for worker in workers)
    assert_invariants(system.var_dir)


def ring(run_id: int, times: int) -> None:
    for _ in range(times):
        app.send_task("run_benchmark", args=[run_id, 1], queue="platform.cpu", retry=False)


def test_it_rejects_the_result_of_a_worker_that_was_frozen(system: System) -> None:
    system.benchmark("slow")
    run = system.queue()
    system.start_broker()
    system.start_keeper()
    worker = system.start_worker()
    wait_until_benchmark_runs(run)
    frozen = [worker.pid, supervisor_of(worker)]
    first = own_marked(run)
    freeze(system, *frozen)
    wait_for(lambda: state_of(run) == RunState.QUEUED)
    second = system.start_worker()
    thaw(*frozen)
    ended = wait_for_end(run)
    assert (ended.state, ended.result.fence) == (RunState.SUCCEEDED, ended.fence), system.logs()
    assert ended.attempt == 2
    assert not any(processes.is_alive(process) for process in first)
    assert second.poll() is None
    assert_invariants(system.var_dir)


def test_it_measures_one_run_at_a_time_on_a_device(system: System) -> None:
    marks = system.var_dir / "marks"
    system.variables["FAKE_BENCH_MARKS"] = str(marks)
    system.variables["FAKE_BENCH_SECONDS"] = "0.5"
    system.benchmark("slow")
    queued = [system.queue() for _ in range(4)]
    system.start_all()
    system.start_worker()
    assert {wait_for_end(run).state for run in queued} == {RunState.SUCCEEDED}
    words = [line.split()[0] for line in marks.read_text().splitlines()]
    assert words == ["start", "end"] * 4
    assert_invariants(system.var_dir)


def test_it_hands_a_run_back_when_the_worker_is_told_to_stop(system: System) -> None:
    system.benchmark("sleep")
    run = system.queue()
    system.start_broker()
    system.start_keeper()
    worker = system.start_worker()
    wait_until_benchmark_runs(run)
    worker.terminate()
    assert worker.wait(30) == 0, system.logs()
    handed_back = Run.objects.get(pk=run.pk)
    assert (handed_back.state, handed_back.attempt) == (RunState.QUEUED, 0)
    system.benchmark("quick")
    system.start_worker()
    assert wait_for_end(run).state == RunState.SUCCEEDED
    assert_invariants(system.var_dir)


def test_it_cancels_a_running_run(system: System) -> None:
    system.benchmark("hang")
    run = system.queue()
    system.start_all()
    wait_until_benchmark_runs(run)
    cancel(run)
    assert wait_for_end(run).state == RunState.CANCELLED
    assert_invariants(system.var_dir)


def test_it_cancels_a_run_whose_worker_is_unreachable(system: System) -> None:
    system.benchmark("sleep")
    run = system.queue()
    system.start_broker()
    system.start_keeper()
    worker = system.start_worker()
    wait_until_benchmark_runs(run)
    frozen = [worker.pid, supervisor_of(worker)]
    freeze(system, *frozen)
    cancel(run)
    assert wait_for_end(run).state == RunState.CANCELLED
    thaw(*frozen)
    assert_invariants(system.var_dir)


def test_it_gives_up_a_run_that_kills_every_worker(system: System) -> None:
    system.benchmark("kill-parent")
    run = system.queue()
    system.start_broker()
    system.start_keeper()
    for _ in range(3):
        worker = system.start_worker()
        assert worker.wait(30) == -signal.SIGKILL, system.logs()
    system.benchmark("quick")
    system.start_worker()
    ended = wait_for_end(run)
    assert (ended.state, ended.failure_kind) == (RunState.LOST, "worker_lost")
    assert_invariants(system.var_dir)


def test_it_waits_for_a_busy_database_when_a_run_ends(system: System) -> None:
    system.variables["FAKE_BENCH_SECONDS"] = "0.5"
    system.benchmark("slow")
    run = system.queue()
    system.start_all()
    wait_until_benchmark_runs(run)
    with locked_database(system):
        wait_for(lambda: not own_marked(run))
    ended = wait_for_end(run)
    assert (ended.state, ended.attempt) == (RunState.SUCCEEDED, 1), system.logs()
    assert_invariants(system.var_dir)


def test_it_ends_a_benchmark_that_the_server_no_longer_hears_of(system: System) -> None:
    system.benchmark("sleep")
    run = system.queue()
    system.start_broker()
    system.start_worker()
    wait_until_benchmark_runs(run)
    with locked_database(system):
        wait_for(lambda: not own_marked(run), limit_s=20)
    wait_for(lambda: Run.objects.get(pk=run.pk).attempt == 2)
    first = run.attempts.get(number=1)
    assert first.outcome == "delivered requeue"
    cancel(run)
    assert wait_for_end(run).state == RunState.CANCELLED
    assert_invariants(system.var_dir)


@contextmanager
def locked_database(system: System) -> Iterator[None]:
    """Nobody else can write meanwhile; reading goes on."""
    with closing(sqlite3.connect(system.var_dir / "daybreak.sqlite3", timeout=20)) as holder:
        holder.isolation_level = None
        holder.execute("BEGIN IMMEDIATE")
        yield
        holder.execute("ROLLBACK")


def test_it_goes_on_while_the_broker_hangs(system: System) -> None:
    system.benchmark("slow")
    run = system.queue()
    server = system.start_broker()
    system.start_keeper()
    system.start_worker()
    wait_until_benchmark_runs(run)
    server.send_signal(signal.SIGSTOP)
    waiting = system.queue()
    assert wait_for_end(run).state == RunState.SUCCEEDED
    server.send_signal(signal.SIGCONT)
    assert wait_for_end(waiting).state == RunState.SUCCEEDED
    assert_invariants(system.var_dir)
