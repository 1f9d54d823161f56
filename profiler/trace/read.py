"""Reads a trace file into columns: streams, cuts, decodes (in parallel when it is worth it)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from profiler.errors import TraceError
from profiler.trace.helpers import Helper, Numbers, processes_for
from profiler.trace.limits import Limits
from profiler.trace.source import Source

if TYPE_CHECKING:
    from profiler.trace.blocks import Blocks
    from profiler.trace.raw import Joiner, RawTrace


def read(path: Path, limits: Limits | None = None) -> RawTrace:
    """The columns of the trace at `path`.

    Memory is bounded by the columns plus a few blocks, not by the text.
    Raises `TraceError` for anything that is no usable trace.
    """
    with Reading(path, limits or Limits()) as reading:
        return reading.finish()


class Reading:
    """A trace being read: helpers start at once, `finish` takes part and collects.

    What the caller does between the two costs no time as long as the helpers
    are busy.
    """

    def __init__(self, path: Path, limits: Limits) -> None:
        self._limits = limits
        self._source = Source(path, limits)
        others = processes_for(path, limits) - 1
        self._numbers = Numbers() if others > 0 else None
        self._helpers = (
            [Helper(path, self._numbers, limits) for _ in range(others)] if self._numbers else []
        )

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, *_: object) -> None:
        for helper in self._helpers:
            helper.close()
        if self._numbers is not None:
            self._numbers.close()
        self._source.close()

    def finish(self) -> RawTrace:
        """The joined columns; raises `TraceError` for anything that is no usable trace."""
        # Loaded while helpers already decode.
        from profiler.trace.blocks import Blocks
        from profiler.trace.heap import give_big_blocks_back
        from profiler.trace.raw import Joiner
        from profiler.trace.share import taken_batches, without_gc

        give_big_blocks_back()
        blocks = Blocks(self._source)
        joiner = Joiner(self._limits)
        numbers = None if self._numbers is None else self._numbers.reader
        with without_gc():
            for number, batch in taken_batches(blocks, numbers, self._limits.name_chars):
                joiner.add(number, 0, batch)
            for place, helper in enumerate(self._helpers, start=1):
                for number, batch in helper.batches():
                    joiner.add(number, place, batch)
            self._fill_gaps(joiner, blocks.count)
        return self._joined(blocks, joiner)

    def _fill_gaps(self, joiner: Joiner, blocks: int) -> None:
        """Decode here what a helper did not deliver (it may have been killed for memory)."""
        missing = joiner.missing(blocks)
        if not missing:
            return
        from profiler.trace.blocks import Blocks
        from profiler.trace.decode import Decoder

        decoder = Decoder(self._limits.name_chars)
        with Source(self._source.path, self._limits, hashed=False) as source:
            for number, text in enumerate(Blocks(source)):
                if number in missing:
                    joiner.add(number, -1, decoder.batch(text()))

    def _joined(self, blocks: Blocks, joiner: Joiner) -> RawTrace:
        from profiler.trace.header import parse_header
        from profiler.trace.heap import trim

        raw, tail = joiner.finish()
        trim()
        raw.header = parse_header(blocks.header, tail)
        raw.sha256 = self._source.sha256
        raw.warnings += self._source.warnings
        if raw.events == 0:
            raise TraceError(
                f"{self._source.path.name} has no events",
                "the profiler recorded nothing; check its schedule",
            )
        return raw
