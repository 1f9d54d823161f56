"""Reads a trace file into columns: streams, cuts, decodes (in parallel when it is worth it)."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from profiler.errors import TraceError
from profiler.trace.blocks import Blocks
from profiler.trace.decode import Decoder
from profiler.trace.header import parse_header
from profiler.trace.limits import Limits
from profiler.trace.raw import Joiner, RawTrace
from profiler.trace.source import Source


def read(path: Path, limits: Limits | None = None) -> RawTrace:
    """The columns of the trace at `path`.

    Memory is bounded by the columns plus a few blocks, not by the text.
    Raises `TraceError` for anything that is no usable trace.
    """
    limits = limits or Limits()
    source = Source(path, limits)
    blocks = Blocks(source)
    joiner = Joiner(limits)
    with _without_gc():
        decoder = Decoder(limits.name_chars)
        for number, text in enumerate(blocks):
            if joiner.ended_at is None:
                joiner.add(number, 0, decoder.batch(text))
    raw, tail = joiner.finish()
    raw.header = parse_header(blocks.header, tail)
    raw.sha256 = source.sha256
    raw.warnings += source.warnings
    if raw.events == 0:
        raise TraceError(
            f"{path.name} has no events", "the profiler recorded nothing; check its schedule"
        )
    return raw


@contextmanager
def _without_gc() -> Iterator[None]:
    """Bulk decoding makes no cycles; collecting while at it costs more than the decoding."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
