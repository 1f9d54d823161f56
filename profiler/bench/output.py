"""What a run leaves behind: files that appear whole or not at all, and progress lines."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from profiler.errors import UserError
from profiler.types import Failure, Phase, Progress

RESULT, ENVIRONMENT, TRACE, ERROR = "result.json", "env.json", "trace.json.gz", "error.json"
RANK_TRACES = "trace-rank*.json.gz"
"""Traces of the ranks after the first."""

PROGRESS_INTERVAL_S = 0.2

log = logging.getLogger("daybreak")


class Staging:
    """Collects the files of a run beside its folder and publishes them together.

    `result.json` moves last, so a folder that holds it is complete. Left
    without `publish`, everything staged is removed.
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        self.folder = out / f".partial-{os.getpid()}"

    def path(self, name: str) -> Path:
        """Where to write the file that will be published as `name`."""
        return self.folder / name

    def write(self, name: str, value: object) -> None:
        """Stage `value` as indented JSON."""
        self.path(name).write_bytes(_pretty(value))

    def publish(self) -> None:
        """Move every staged file into the run's folder, the result last."""
        for staged in sorted(self.folder.iterdir(), key=lambda path: path.name == RESULT):
            staged.replace(self.out / staged.name)


@contextlib.contextmanager
def staging(out: Path) -> Iterator[Staging]:
    """A staging area for `out`; outputs of an earlier run in the same folder are removed first."""
    stage = Staging(out)
    prepare(out)
    try:
        stage.folder.mkdir()
        yield stage
    finally:
        shutil.rmtree(stage.folder, ignore_errors=True)


def prepare(out: Path) -> None:
    """Make the folder `out` without outputs of an earlier run; `UserError` when it cannot be."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        earlier = (out / name for name in (RESULT, ENVIRONMENT, TRACE, ERROR))
        for path in (*earlier, *out.glob(RANK_TRACES)):
            path.unlink(missing_ok=True)
        if not os.access(out, os.W_OK):
            raise UserError(f"folder {out} cannot be written", "choose another --out")
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"folder {out} cannot be used: {reason}", "choose another --out") from None


def sweep(out: Path) -> None:
    """Remove what is staged in `out`, and files published of a result that is not there."""
    for left in out.glob(".*partial-*"):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)
    if not (out / RESULT).exists():
        for path in (out / ENVIRONMENT, out / TRACE, *out.glob(RANK_TRACES)):
            path.unlink(missing_ok=True)


def write_failure(out: Path, failure: Failure) -> None:
    """Leave `error.json` in `out`, whole or not at all."""
    partial = out / f".{ERROR}.partial-{os.getpid()}"
    partial.write_bytes(_pretty(failure))
    partial.replace(out / ERROR)


class Reporter:
    """Writes `Progress` as JSON lines to `stream`, at most about five a second.

    The first and last step of a phase are always written. A reader that went
    away costs the run nothing: reporting stops, measuring goes on.
    """

    def __init__(
        self, stream: BinaryIO | None, *, seconds: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._seconds = seconds
        self._next = 0.0

    def step(self, phase: Phase, step: int, steps: int, message: str = "") -> None:
        """Report step `step` of `steps`; step 0 means that the phase begins."""
        now = self._seconds()
        if step == 0:
            log.info("%s%s", phase, f": {message}" if message else "")
        if self._stream is None or (0 < step < steps and now < self._next):
            return
        self._next = now + PROGRESS_INTERVAL_S
        line = msgspec.json.encode(Progress(phase=phase, step=step, steps=steps, message=message))
        try:
            self._stream.write(line + b"\n")
            self._stream.flush()
        except BrokenPipeError:
            log.warning("nobody reads the progress any more; measuring goes on")
            self._stream = None


def _pretty(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"
