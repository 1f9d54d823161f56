"""Everything on one machine as one supervised group: `python -m workers.up [--no-demo]`.

Broker, keeper, workers, ingest worker and web; Ctrl-C or SIGTERM ends every
process that was started, and so does the end of this one, however it ends.
"""

from __future__ import annotations

import argparse
import http.client
import io
import os
import signal
import socket
import sys
import time
from pathlib import Path
from types import FrameType

from django.core.exceptions import ImproperlyConfigured

from dashboard import environ
from profiler.errors import ExitCode, UserError, printable
from workers import processes
from workers.broker import find_program
from workers.group import Group, Program
from workers.job import FileLock
from workers.prepare import ROOT, PrepareError, prepare

DEFAULT_PORT = 8000
READY_LIMIT_S = 120.0
WEB_THREADS = 8
WEB_PROCESSES = 2
SAME_SIGNAL_S = 1.0
_TICK_S = 0.1


class UpError(UserError):
    """The group cannot start here."""

    kind = "up"


class Up:
    """One group in one VAR_DIR."""

    def __init__(self, var_dir: Path, workers: int, *, demo: bool) -> None:
        self._var_dir = var_dir
        self._workers = workers
        self._demo = demo
        self._told_at_s: float | None = None
        self._in_a_hurry = False
        self._screen_is_gone = False
        self._lock = FileLock(var_dir / "up.lock")

    def run(self) -> int:
        """Until told to stop."""
        started_s = time.monotonic()
        listener = self._claim_place()
        port = int(listener.getsockname()[1])
        processes.adopt_orphans()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        group = Group(self._environment(port), ROOT, self._var_dir / "log", self._show)
        try:
            self._start(group, listener)
            link = self._first_words(port)
            self._wait_until_ready(group, port)
            if not self._stopping:
                self._welcome(port, link, time.monotonic() - started_s)
            while not self._stopping:
                group.keep()
                time.sleep(_TICK_S)
        except PrepareError:
            if not self._stopping:  # Ctrl-C reached its steps as well
                raise
        finally:
            self._show("stopping; once more Ctrl-C does not wait for anybody")
            group.stop(lambda: self._in_a_hurry)
            listener.close()
            self._lock.release()
        return int(ExitCode.FINE)

    @property
    def _stopping(self) -> bool:
        return self._told_at_s is not None

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        """The first tells to stop; one that comes later on purpose tells to hurry.

        A terminal or make may pass one and the same signal on twice within a moment.
        """
        now_s = time.monotonic()
        if self._told_at_s is None:
            self._told_at_s = now_s
        elif now_s - self._told_at_s > SAME_SIGNAL_S:
            self._in_a_hurry = True

    def _claim_place(self) -> socket.socket:
        """The lock of the folder and the port; raises `UpError` naming who has them."""
        self._var_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._lock.take():
            raise UpError(
                f"Daybreak already runs in {self._var_dir}",
                "stop it first, or set VAR_DIR to another folder",
            )
        if not environ.text("BROKER_URL"):
            find_program()
        port = int(environ.number("PORT", DEFAULT_PORT, low=0, high=65535))
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError as error:
            raise UpError(
                f"port {port} cannot be used: {error.strerror}", f"try PORT={port + 1} make up"
            ) from None
        listener.listen(128)
        return listener

    def _environment(self, port: int) -> dict[str, str]:
        return {
            **os.environ,
            "VAR_DIR": str(self._var_dir),
            "PORT": str(port),
            "DJANGO_SETTINGS_MODULE": "dashboard.settings",
            "PYTHONUNBUFFERED": "1",
        }

    def _start(self, group: Group, listener: socket.socket) -> None:
        python = sys.executable
        if not environ.text("BROKER_URL"):
            group.add(Program(name="broker", command=[python, "-m", "workers.broker"], rank=0))
        taken = prepare(self._var_dir)
        if taken:
            self._show(f"prepared: {', '.join(taken)}")
        web = [
            *(python, "-m", "gunicorn", "dashboard.wsgi", "--bind", f"fd://{listener.fileno()}"),
            *("--worker-class", "gthread", "--workers", str(WEB_PROCESSES), "--preload"),
            *("--threads", str(WEB_THREADS), "--graceful-timeout", "5", "--no-control-socket"),
        ]
        group.add(Program(name="web", command=web, descriptors=(listener.fileno(),)))
        group.add(Program(name="keeper", command=[python, "-m", "workers.keeper"]))
        for number in range(1, self._workers + 1):
            name = "worker" if self._workers == 1 else f"worker-{number}"
            group.add(Program(name=name, command=[python, "-m", "workers.worker", "run"], rank=2))
        group.add(
            Program(name="ingest", command=[python, "-m", "workers.worker", "ingest"], rank=2)
        )

    def _first_words(self, port: int) -> str:
        """Make the first admin and the demo where they are missing; the address to sign in."""
        from workers.server import set_up_django

        os.environ["VAR_DIR"] = str(self._var_dir)
        set_up_django()
        from workers.first_start import admin_link, known_platform, queue_demo

        known_platform()

        if self._demo:
            made = queue_demo()
            if made:
                self._show(f"queued the demo: {len(made)} runs")
        return f"http://127.0.0.1:{port}{admin_link()}"

    def _wait_until_ready(self, group: Group, port: int) -> None:
        deadline = time.monotonic() + READY_LIMIT_S
        while not self._stopping and not _is_healthy(port):
            if time.monotonic() > deadline:
                raise UpError(
                    f"the web process does not answer after {READY_LIMIT_S:g} s",
                    f"see {self._var_dir / 'log' / 'web.log'}",
                )
            group.keep()
            time.sleep(0.05)

    def _welcome(self, port: int, link: str, seconds: float) -> None:
        self._show("")
        self._show(f"Daybreak is ready after {seconds:.1f} s: http://127.0.0.1:{port}/")
        self._show(f"Sign in as admin, once, within a day: {link}")
        self._show("Ctrl-C ends it. Logs are in " + str(self._var_dir / "log"))
        self._show("")

    def _show(self, line: str) -> None:
        if self._screen_is_gone:
            return
        try:
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
        except (BrokenPipeError, ValueError):  # nobody reads any more; the logs are in files
            self._screen_is_gone = True


def _is_healthy(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def main(arguments: list[str] | None = None) -> int:
    """Command line of `python -m workers.up`."""
    parser = argparse.ArgumentParser(prog="manage.py up", description=__doc__)
    parser.add_argument("--no-demo", action="store_true", help="queue no demo on the first start")
    parser.add_argument("--workers", type=int, default=1, help="one per device (default: 1)")
    chosen = parser.parse_args(arguments)
    if not 1 <= chosen.workers <= 64:
        parser.error(f"--workers {chosen.workers}: use 1 to 64")
    var_dir = Path(environ.text("VAR_DIR", str(ROOT / "var"))).resolve()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return Up(var_dir, chosen.workers, demo=not chosen.no_demo).run()
    except UserError as error:
        sys.stderr.write(f"{error.line()}\n")
        return int(error.exit_code)
    except ImproperlyConfigured as error:
        sys.stderr.write(f"{printable(str(error))}\n")
        return int(ExitCode.USAGE)


if __name__ == "__main__":
    sys.exit(main())
