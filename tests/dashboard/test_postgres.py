"""The same rows and services on PostgreSQL: a real server of this test's own."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SERVICES = "tests/dashboard/services"


def server_binaries() -> Path | None:
    """The folder of initdb and pg_ctl, where they are installed."""
    tool = shutil.which("pg_config")
    if tool is None:
        return None
    shown = subprocess.run([tool, "--bindir"], capture_output=True, text=True, check=True)
    folder = Path(shown.stdout.strip())
    return folder if (folder / "initdb").is_file() else None


def unprivileged() -> str | None:
    """Whom the server runs as: it refuses to run as root."""
    if os.getuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


class Server:
    """A PostgreSQL that listens on a unix socket in its own folder."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self.binaries = binaries
        self.folder = folder
        self.owner = unprivileged()

    def run(self, tool: str, *arguments: str) -> None:
        command = [str(self.binaries / tool), *arguments]
        subprocess.run(command, check=True, user=self.owner, cwd="/", stdout=subprocess.DEVNULL)

    def start(self) -> None:
        if self.owner:
            shutil.chown(self.folder, user=self.owner)
        data = str(self.folder / "data")
        self.run("initdb", "-D", data, "-U", "daybreak", "--auth=trust", "-E", "UTF8")
        options = f"-k {self.folder} -c listen_addresses= -c fsync=off"
        log = str(self.folder / "log")
        self.run("pg_ctl", "-D", data, "-l", log, "-o", options, "-w", "start")

    def stop(self) -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "-w", "stop")

    @property
    def url(self) -> str:
        return f"postgres://daybreak@{str(self.folder).replace('/', '%2F')}/postgres"


@pytest.fixture
def server() -> Iterator[Server]:
    binaries = server_binaries()
    if binaries is None:
        pytest.skip("PostgreSQL's server binaries are not installed")
    # pytest's own temporary folders are closed to the server's user, and socket paths are short.
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        postgres = Server(binaries, Path(folder))
        postgres.start()
        try:
            yield postgres
        finally:
            postgres.stop()


def test_the_services_hold_on_postgresql(server: Server, tmp_path: Path) -> None:
    environment = {**os.environ, "DATABASE_URL": server.url, "VAR_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", SERVICES]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
