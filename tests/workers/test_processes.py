"""Finding and ending everything that belongs together, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest

from tests.workers.system import wait_for
from workers import processes

pytestmark = pytest.mark.fault

SLEEP = "import time; time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}"
ESCAPE = (
    "import subprocess, sys;"
    f"subprocess.Popen([sys.executable, '-S', '-c', {STUBBORN!r}], start_new_session=True)"
)


@pytest.fixture
def marker() -> Iterator[str]:
    """A marker of this test; whatever carries it is gone afterwards."""
    value = uuid.uuid4().hex
    yield value
    for process in processes.marked(value):
        processes.send(process, signal.SIGKILL)


def start(code: str, marker: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, processes.MARKER: marker}
    return subprocess.Popen([sys.executable, "-S", "-c", code], env=environment)


def test_it_finds_an_orphan_by_its_marker(marker: str) -> None:
    assert start(ESCAPE, marker).wait() == 0
    (orphan,) = processes.marked(marker)
    assert orphan.pid not in {process.pid for process in processes.descendants(os.getpid())}


def test_it_ends_an_orphan_that_ignores_term(marker: str) -> None:
    start(ESCAPE, marker).wait()
    (orphan,) = processes.marked(marker)
    left = processes.end_all(lambda: processes.marked(marker), 0.3, lambda: None)
    assert not left
    assert not processes.is_alive(orphan)


def test_it_spares_processes_of_another_marker(marker: str) -> None:
    other = start(SLEEP, marker + "0")
    processes.end_all(lambda: processes.marked(marker), 0.1, lambda: None)
    assert other.poll() is None
    other.kill()
    other.wait()


def test_it_does_not_signal_a_later_process_of_the_same_number(marker: str) -> None:
    child = start(SLEEP, marker)
    processes.send(processes.Process(child.pid, 1), signal.SIGKILL)
    assert child.poll() is None
    child.kill()
    assert child.wait() == -signal.SIGKILL


def test_it_does_not_count_a_zombie_as_alive(marker: str) -> None:
    child = start("pass", marker)
    process = processes.identify(child.pid)
    wait_for(lambda: process is None or not processes.is_alive(process))
    assert not processes.marked(marker)
    child.wait()


def test_it_counts_memory_shared_by_a_fork_once(marker: str) -> None:
    hold = "held = bytearray(b'x') * (100 << 20)"
    child = start(f"import os, time; {hold}; os.fork(); os.fork(); time.sleep(600)", marker)
    wait_for(lambda: len(processes.marked(marker)) == 4)
    family = processes.marked(marker)
    wait_for(lambda: processes.proportional_bytes(family) > 100 << 20)
    assert processes.proportional_bytes(family) < 200 << 20
    assert processes.resident_bytes(family) > 350 << 20
    processes.end_all(lambda: processes.marked(marker), 1, child.poll)
    child.wait()


def test_it_dies_with_its_parent(marker: str) -> None:
    code = (
        "import os, subprocess, sys, time; from workers.launch import command_line; import signal;"
        "command = [sys.executable, '-S', '-c', 'import time; time.sleep(600)'];"
        "subprocess.Popen(command_line(command, on_parent_end=signal.SIGKILL, session=True,"
        " limits={'core': 0})); time.sleep(600)"
    )
    environment = {**os.environ, processes.MARKER: marker}
    parent = subprocess.Popen([sys.executable, "-c", code], env=environment)
    wait_for(lambda: len(processes.marked(marker)) == 2)
    parent.kill()
    parent.wait()
    wait_for(lambda: not processes.marked(marker))
