"""Helper processes that decode part of a file.

Importing this is cheap on purpose: helpers start before the libraries that
the ingesting process itself needs are loaded.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import profiler
from profiler.cpus import usable_cpus
from profiler.trace.limits import MIB, Limits

if TYPE_CHECKING:
    from profiler.trace.batch import Batch

_WORTH_IT_BYTES = 24 * MIB
_WORTH_IT_GZIP_BYTES = 2 * MIB
_MOST_PROCESSES = 4
_NUMBERS = 8192
NUMBER_BYTES = 4


class Numbers:
    """Block numbers 0, 1, 2 ... that several processes take from one pipe."""

    def __init__(self) -> None:
        self.reader, writer = os.pipe()
        os.write(writer, b"".join(n.to_bytes(NUMBER_BYTES, "little") for n in range(_NUMBERS)))
        os.close(writer)

    def close(self) -> None:
        """Give the pipe back."""
        os.close(self.reader)


def processes_for(path: Path, limits: Limits) -> int:
    """How many processes decode this file: more than one only where it saves time."""
    if limits.processes is not None:
        return limits.processes
    try:
        size = path.stat().st_size
    except OSError:
        return 1
    worth_it = _WORTH_IT_GZIP_BYTES if path.suffix == ".gz" else _WORTH_IT_BYTES
    if size < worth_it:
        return 1
    return max(1, min(_MOST_PROCESSES, usable_cpus()))


@dataclass(frozen=True, slots=True)
class Task:
    """What a helper is asked to do; `numbers` is the pipe it inherits."""

    path: str
    numbers: int
    limits: Limits


class Helper:
    """A process that decodes blocks of a file."""

    def __init__(self, path: Path, numbers: Numbers, limits: Limits) -> None:
        self._results: IO[bytes] = tempfile.TemporaryFile(prefix="daybreak-")  # noqa: SIM115
        package_root = str(Path(profiler.__file__).resolve().parents[1])
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, package_root],
            stdin=subprocess.PIPE,
            stdout=self._results,
            stderr=subprocess.DEVNULL,
            pass_fds=(numbers.reader,),
        )
        assert self._process.stdin is not None
        task = Task(os.fsdecode(path), numbers.reader, limits)
        try:
            self._process.stdin.write(pickle.dumps(task))
            self._process.stdin.close()
        except BrokenPipeError:
            self._process.wait()

    def batches(self) -> Iterator[tuple[int, Batch]]:
        """The batches, once the process is done; fewer than it took if it died."""
        self._process.wait()
        self._results.seek(0)
        while True:
            try:
                item: tuple[int, Batch] = pickle.load(self._results)
            except (EOFError, pickle.UnpicklingError):
                return
            yield item

    def close(self) -> None:
        """End the process if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._results.close()


_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from profiler.trace.share import main
main()
"""
