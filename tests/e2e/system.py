"""The whole product as a person starts it, in a folder of its own, on a free port."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START_LIMIT_S = 180
STOP_LIMIT_S = 60
_LINK = re.compile(r"(http://127\.0\.0\.1:\d+)(/sign-in/link/\S+)")


class System:
    """`python -m workers.up`; `base` is its address, `link` the way in, once."""

    def __init__(self, folder: Path, *, demo: bool = False, time_scale: int = 5) -> None:
        self.lines: list[str] = []
        self.base = ""
        self.link = ""
        self._ready = threading.Event()
        # A fifth of the usual times: heartbeats and cancelling every three seconds.
        scaled = {"PORT": "0", "TIME_SCALE": str(time_scale)}
        environment = {**os.environ, "VAR_DIR": str(folder), **scaled}
        environment.pop("DJANGO_SETTINGS_MODULE", None)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "workers.up", *([] if demo else ["--no-demo"])],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip())
            found = _LINK.search(line)
            if found:
                self.base, self.link = found.groups()
                self._ready.set()
        self._ready.set()

    def wait_until_ready(self) -> None:
        """Until the link is printed; raises with the output when that does not happen."""
        self._ready.wait(START_LIMIT_S)
        if not self.link:
            self.stop()
            raise RuntimeError("the system did not start:\n" + "\n".join(self.lines[-40:]))

    def stop(self) -> int:
        """Ask it to end; the exit status."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            status = self._process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        self._reader.join(5)
        if self._process.stdout is not None:
            self._process.stdout.close()
        return status


def until(said: str, found: object, limit_s: float = 120, *, every_s: float = 0.2) -> None:
    """Call `found` until it is true; fails naming what was waited for."""
    assert callable(found)
    deadline = time.monotonic() + limit_s
    while not found():
        assert time.monotonic() < deadline, f"waited {limit_s:g} s for {said}"
        time.sleep(every_s)
