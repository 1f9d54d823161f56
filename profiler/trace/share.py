"""Decoding shared between processes: each reads the whole file and decodes every n-th block.

Reading and cutting is cheap next to decoding, so the processes need not talk
to each other: a helper writes its batches to a file it inherits as standard
output, and the parent takes them from there when its own share is done.
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


@dataclass(frozen=True, slots=True)
class Share:
    """Which blocks one process decodes: those whose number is `index` modulo `of`."""

    index: int
    of: int

    def batches(self, blocks: Blocks, name_chars: int) -> Iterator[tuple[int, Batch]]:
        """Number and columns of the blocks of this share, until the event array ends."""
        decoder = Decoder(name_chars)
        for number, text in enumerate(blocks):
            if number % self.of != self.index:
                continue
            batch = decoder.batch(text)
            yield number, batch
            if batch.tail is not None:
                blocks.drain()
                return


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


class Helper:
    """A process that decodes one share of a file."""

    def __init__(self, path: Path, share: Share, limits: Limits) -> None:
        self.share = share
        self._results: IO[bytes] = tempfile.TemporaryFile(prefix="daybreak-")  # noqa: SIM115
        task = msgspec.json.encode((str(path), share.index, share.of, limits))
        package_root = str(Path(profiler.__file__).resolve().parents[1])
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, package_root],
            stdin=subprocess.PIPE,
            stdout=self._results,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(task)
            self._process.stdin.close()
        except BrokenPipeError:
            self._process.wait()

    def batches(self) -> Iterator[tuple[int, Batch]]:
        """The batches, once the process is done; fewer than its share if it died."""
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
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=tuple[str, int, int, Limits])
    path, index, of, limits = task
    blocks = Blocks(Source(Path(path), limits, hashed=False))
    with without_gc():
        for item in Share(index, of).batches(blocks, limits.name_chars):
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
