"""`manage.py up`: one command starts everything, and its end ends everything."""

from __future__ import annotations

import http.client
import re
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.workers.system import System, assert_invariants, own_marked, wait_for, wait_for_end
from workers import processes
from workers.job import FileLock
from workers.prepare import tables_stamp

pytestmark = pytest.mark.fault


@pytest.fixture
def up(system: System, collected: Path) -> System:
    """A system that has been started before, and whose group takes any free port."""
    system.variables["PORT"] = "0"
    for name in ("static", "collectstatic.stamp"):
        source = collected / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, system.var_dir / name)
    (system.var_dir / "migrate.stamp").write_text(tables_stamp(system.var_dir))
    return system


def start(system: System) -> tuple[subprocess.Popen[bytes], str]:
    """The group and what it said once it was ready."""
    group = system.start("manage.py", "up", "--no-demo")
    log = sorted(system.var_dir.glob(f"{len(system.started) - 1}-*.log"))[0]
    wait_for(lambda: "Daybreak is ready" in log.read_text() or group.poll() is not None, 120)
    assert group.poll() is None, log.read_text()
    return group, log.read_text()


def port_in(words: str) -> int:
    found = re.search(r"is ready after .*: http://127\.0\.0\.1:(\d+)/", words)
    assert found is not None, words
    return int(found[1])


def get(port: int, path: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse()
    finally:
        connection.close()


def test_it_starts_everything_and_ends_everything(up: System) -> None:
    group, words = start(up)
    port = port_in(words)
    assert get(port, "/healthz").status == 200
    run = up.queue()
    assert wait_for_end(run).state == "succeeded", up.logs()
    assert_invariants(up.var_dir)
    group.send_signal(signal.SIGINT)
    assert group.wait(60) == 0
    assert up.left_over() == []
    assert {"web.log", "keeper.log", "worker.log", "ingest.log", "broker.log"} <= {
        path.name for path in (up.var_dir / "log").iterdir()
    }


def test_one_signal_that_arrives_twice_is_no_hurry(up: System) -> None:
    group, _ = start(up)
    group.terminate()
    group.terminate()
    assert group.wait(60) == 0
    logs = [path.read_text() for path in (up.var_dir / "log").iterdir()]
    assert not any("killed" in log.splitlines() for log in logs)


def test_it_prepares_only_what_changed(up: System) -> None:
    group, words = start(up)
    assert "prepared" not in words
    group.terminate()
    group.wait(60)
    (up.var_dir / "migrate.stamp").write_text("older")
    _, words = start(up)
    assert "prepared: migrate\n" in words


def test_it_makes_what_is_missing_and_prints_a_link_on_the_first_start(var_dir: Path) -> None:
    system = System(var_dir, {"PORT": "0"})
    try:
        _, words = start(system)
        assert "prepared: migrate, collectstatic" in words
        assert (var_dir / "static" / "staticfiles.json").is_file()
        link = re.search(r"http://127\.0\.0\.1:\d+(/sign-in/link/[^/\s]+/)", words)
        assert link is not None
        assert get(port_in(words), link[1]).status in (200, 302)
        assert link[1] not in "".join(p.read_text() for p in (var_dir / "log").iterdir())
    finally:
        system.stop()


def test_it_leaves_nothing_when_it_is_killed(up: System) -> None:
    up.benchmark("fork")
    group, _ = start(up)
    run = up.queue()
    wait_for(lambda: len(own_marked(run)) >= 7)
    up.kill(group)
    wait_for(lambda: not up.left_over() and not own_marked(run))


def test_it_starts_again_what_dies(up: System) -> None:
    group, words = start(up)
    port = port_in(words)
    children = processes.descendants(group.pid)
    for process in children:
        processes.send(process, signal.SIGKILL)
    wait_for(lambda: not any(processes.is_alive(process) for process in children))
    wait_for(lambda: is_up(port))
    assert wait_for_end(up.queue()).state == "succeeded", up.logs()


def is_up(port: int) -> bool:
    try:
        return get(port, "/healthz").status == 200
    except OSError:
        return False


def test_it_refuses_to_run_twice_in_one_folder(up: System) -> None:
    other = FileLock(up.var_dir / "up.lock")
    assert other.take()
    assert up.start("manage.py", "up", "--no-demo").wait(30) == 65
    other.release()
    assert "Daybreak already runs in" in up.logs()


def test_it_says_that_the_port_is_taken(up: System) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        up.variables["PORT"] = str(port)
        assert up.start("manage.py", "up").wait(30) == 65
    assert f"port {port} cannot be used: Address already in use" in up.logs()


def test_it_uses_the_broker_that_is_configured(up: System) -> None:
    up.start_broker()
    from workers.broker import broker_url

    up.variables["BROKER_URL"] = broker_url(up.var_dir)
    start(up)
    assert wait_for_end(up.queue()).state == "succeeded", up.logs()
    assert not (up.var_dir / "log" / "broker.log").exists()


@pytest.mark.parametrize("port", ["abc", "70000"])
def test_it_says_that_the_port_is_no_port(up: System, port: str) -> None:
    up.variables["PORT"] = port
    assert up.start("manage.py", "up").wait(30) == 64
    assert f"PORT={port}" in up.logs().replace("'", "")
    assert "Traceback" not in up.logs()
