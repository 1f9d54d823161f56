"""The path of messages alone: these workers never poll the database."""

from __future__ import annotations

import subprocess
import time

import pytest

from tests.workers.system import LONG_S, System, runs_rung, wait_for, wait_for_end

pytestmark = pytest.mark.fault

SILENCE_S = 2.5
WORKER = """
import sys
import workers.worker as worker
worker.POLL_S = 1e6
worker.SILENCE_LIMIT_S = {silence_s}
sys.exit(worker.main(["run"]))
"""


def start_worker(system: System, silence_s: float = SILENCE_S) -> subprocess.Popen[bytes]:
    return system.start("-c", WORKER.format(silence_s=silence_s))


def test_it_consumes_again_after_the_broker_was_killed(system: System) -> None:
    server = system.start_broker()
    system.start_keeper()
    # A new broker takes seconds where all processors are busy: the worker is to wait for it.
    start_worker(system, silence_s=LONG_S)
    assert wait_for_end(system.queue()).state == "succeeded"
    system.kill(server)
    run = system.queue()
    system.start_broker()
    assert wait_for_end(run).state == "succeeded", system.logs()


def test_it_stays_while_the_broker_answers_and_has_nothing(system: System) -> None:
    system.start_broker()
    system.start_keeper()
    worker = start_worker(system)
    wait_for_end(system.queue())
    time.sleep(2 * SILENCE_S)
    assert worker.poll() is None, system.logs()


def test_it_leaves_when_the_broker_is_silent(system: System) -> None:
    server = system.start_broker()
    system.start_keeper()
    worker = start_worker(system)
    wait_for_end(system.queue())
    system.kill(server)
    assert worker.wait(60) == 1
    assert "no answer of the broker" in system.logs()


def test_it_stays_at_work_while_the_broker_is_silent(system: System) -> None:
    system.variables["FAKE_BENCH_SECONDS"] = str(3 * SILENCE_S)
    system.benchmark("slow")
    run = system.queue()
    server = system.start_broker()
    system.start_keeper()
    start_worker(system)
    wait_for(lambda: runs_rung() == 1)
    wait_for(lambda: type(run).objects.get(pk=run.pk).state == "running")
    system.kill(server)
    assert wait_for_end(run).state == "succeeded"
