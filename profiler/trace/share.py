"""Decoding shared between processes.

Every process finds the cuts of the whole file itself, which is cheap next to
decoding, and decodes the blocks whose numbers it takes from a pipe filled
beforehand: whoever is free takes the next. A helper writes its batches to a
file it inherits as standard output; the parent takes them from there when no
block is left.
"""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec

import profiler
from profiler.trace.batch import Batch
from profiler.trace.blocks import Blocks
from profiler.trace.decode import Decoder
from profiler.trace.limits import MIB, Limits
from profiler.trace.source import Source

_WORTH_IT_BYTES = 24 * MIB
_WORTH_IT_GZIP_BYTES = 2 * MIB
_MOST_PROCESSES = 4
_NUMBERS = 8192
_NUMBER_BYTES = 4


class Numbers:
    """Block numbers 0, 1, 2 ... that several processes take from one pipe."""

    def __init__(self) -> None:
        self.reader, writer = os.pipe()
        os.write(writer, b"".join(n.to_bytes(_NUMBER_BYTES, "little") for n in range(_NUMBERS)))
        os.close(writer)

    def close(self) -> None:
        """Give the pipe back."""
        os.close(self.reader)


def taken_batches(
    blocks: Blocks, numbers: int | None, name_chars: int
) -> Iterator[tuple[int, Batch]]:
    """Number and columns of the blocks this process gets, until the event array ends.

    `numbers` is the pipe the numbers come from; None takes all blocks.
    """
    decoder = Decoder(name_chars)
    mine = _next(numbers, 0)
    for number, text in enumerate(blocks):
        if number != mine:
            continue
        batch = decoder.batch(text())
        yield number, batch
        if batch.tail is not None:
            return
        mine = _next(numbers, number + 1)


def _next(numbers: int | None, following: int) -> int:
    if numbers is None:
        return following
    taken = os.read(numbers, _NUMBER_BYTES)
    return int.from_bytes(taken, "little") if taken else -1


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
    return max(1, min(_MOST_PROCESSES, len(os.sched_getaffinity(0))))


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
            self._process.stdin.write(msgspec.json.encode(task))
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


def main() -> None:
    """What a helper process runs: a task on standard input, batches on standard output."""
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    with Source(Path(task.path), task.limits, hashed=False) as source, without_gc():
        for item in taken_batches(Blocks(source), task.numbers, task.limits.name_chars):
            pickle.dump(item, sys.stdout.buffer, protocol=5)
    sys.stdout.buffer.flush()


@contextmanager
def without_gc() -> Iterator[None]:
    """Bulk decoding makes no cycles; collecting while at it costs more than the decoding."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
