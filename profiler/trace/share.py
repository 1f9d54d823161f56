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
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from profiler.trace.batch import Batch
from profiler.trace.blocks import Blocks
from profiler.trace.decode import Decoder
from profiler.trace.helpers import NUMBER_BYTES, Task
from profiler.trace.source import Source


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
    taken = os.read(numbers, NUMBER_BYTES)
    return int.from_bytes(taken, "little") if taken else -1


def main() -> None:
    """What a helper process runs: a task on standard input, batches on standard output."""
    task: Task = pickle.load(sys.stdin.buffer)
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
