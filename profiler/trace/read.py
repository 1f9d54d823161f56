"""Reads a trace file into columns: streams, cuts, decodes (in parallel when it is worth it)."""

from __future__ import annotations

from pathlib import Path

from profiler.errors import TraceError
from profiler.trace.blocks import Blocks
from profiler.trace.decode import Decoder
from profiler.trace.header import parse_header
from profiler.trace.limits import Limits
from profiler.trace.raw import Joiner, RawTrace
from profiler.trace.share import Helper, Share, processes_for, without_gc
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
    count = processes_for(path, limits)
    helpers = [Helper(path, Share(n, count), limits) for n in range(1, count)]
    try:
        with without_gc():
            for number, batch in Share(0, count).batches(blocks, limits.name_chars):
                joiner.add(number, 0, batch)
            for helper in helpers:
                for number, batch in helper.batches():
                    joiner.add(number, helper.share.index, batch)
            _fill_gaps(path, limits, joiner, blocks.count)
    finally:
        for helper in helpers:
            helper.close()
    return _finished(path, source, blocks, joiner)


def _finished(path: Path, source: Source, blocks: Blocks, joiner: Joiner) -> RawTrace:
    raw, tail = joiner.finish()
    raw.header = parse_header(blocks.header, tail)
    raw.sha256 = source.sha256
    raw.warnings += source.warnings
    if raw.events == 0:
        raise TraceError(
            f"{path.name} has no events", "the profiler recorded nothing; check its schedule"
        )
    return raw


def _fill_gaps(path: Path, limits: Limits, joiner: Joiner, blocks: int) -> None:
    """Decode here what a helper did not deliver (it may have been killed for memory)."""
    missing = joiner.missing(blocks)
    if not missing:
        return
    decoder = Decoder(limits.name_chars)
    for number, text in enumerate(Blocks(Source(path, limits, hashed=False))):
        if number in missing:
            joiner.add(number, -1, decoder.batch(text))
