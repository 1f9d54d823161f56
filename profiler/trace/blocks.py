"""Cuts the text of a trace into its header and blocks of whole events."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from profiler import units
from profiler.errors import TraceError
from profiler.trace.limits import MIB
from profiler.trace.salvage import BOUNDARY
from profiler.trace.source import Source

_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_HEADER_LIMIT = 64 * MIB
_MOST_TAIL_ROOM = MIB
_FIRST_LOOK = 1 << 16

Text = Callable[[], memoryview]
"""Gives the text of a block as an array, in brackets; only until the next block is asked for."""


class Blocks:
    """Iterates over the event text of `source`; `header` is known once the first block is out.

    Every block ends between two events. The last one holds at least the last
    MiB of the file (or a block if that is less), so that the keys behind the
    event array stay in one piece.
    `count` is the number of blocks given out. Where the cuts lie depends on
    the file and the limits alone. Raises `TraceError` when there is no event
    array or one event exceeds the limit.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.header = b""
        self.count = 0
        self.is_list = False
        self._tail_room = min(_MOST_TAIL_ROOM, source.limits.block_bytes)

    def __iter__(self) -> Iterator[Text]:
        return self._streamed() if self.source.compressed else self._placed()

    def _placed(self) -> Iterator[Text]:
        """Blocks of a plain file: only the text around the cuts is read to find them."""
        source, target = self.source, self.source.limits.block_bytes
        start = self._place_of_events()
        while source.size - start >= target + self._tail_room:
            cut = self._cut_placed(start)
            if cut is None:
                break
            self.count += 1
            yield _reader(source, start, start + cut[0])
            start += cut[1]
        self.count += 1
        yield _reader(source, start, source.size, last=True)

    def _place_of_events(self) -> int:
        source = self.source
        text = bytearray()
        place = source.text_start
        while piece := source.read_at(place, source.limits.block_bytes):
            text += piece
            place += len(piece)
            found = self._events_in(text)
            if found is not None:
                return source.text_start + found
        raise self._no_events(text)

    def _cut_placed(self, start: int) -> tuple[int, int] | None:
        """Like `_cut`, with windows read from the file."""
        source, target = self.source, self.source.limits.block_bytes
        reach = _FIRST_LOOK
        while reach < 2 * target:
            low = max(0, target - reach)
            found = _last(source.read_at(start + low, target + 64 - low))
            if found is not None:
                return low + found[0], low + found[1]
            reach *= 8
        return self._cut_late(source.read_at(start, self._longest()), len_left=source.size - start)

    def _streamed(self) -> Iterator[Text]:
        target = self.source.limits.block_bytes
        buffer = bytearray()
        chunks = self.source.chunks()
        for chunk in chunks:
            buffer += chunk
            found = self._events_in(buffer)
            if found is not None:
                del buffer[:found]
                break
        else:
            raise self._no_events(buffer)
        for chunk in chunks:
            buffer += chunk
            while len(buffer) >= target + self._tail_room:
                cut = self._cut(buffer, target)
                if cut is None:
                    break
                self.count += 1
                yield _slice(buffer, cut[0])
                del buffer[: cut[1]]
        self.count += 1
        yield _slice(buffer, len(buffer), last=True)

    def _cut(self, buffer: bytearray, target: int) -> tuple[int, int] | None:
        """End of the last event at or before `target` and start of the next one."""
        reach = _FIRST_LOOK
        while reach < 2 * target:
            low = max(0, target - reach)
            found = _last(buffer[low : target + 64])
            if found is not None:
                return low + found[0], low + found[1]
            reach *= 8
        return self._cut_late(buffer, len_left=len(buffer))

    def _cut_late(self, text: bytes | bytearray, *, len_left: int) -> tuple[int, int] | None:
        """The first cut behind the target, for events larger than a block."""
        later = BOUNDARY.search(text, max(0, self.source.limits.block_bytes - 64))
        if later is not None:
            return later.start() + 1, later.end()
        if len_left > self._longest():
            limit = units.size(self.source.limits.event_bytes)
            raise TraceError(
                f"{self.source.path.name} holds a single event larger than {limit}",
                "no profiler writes such events; check how the file was made",
            )
        return None

    def _longest(self) -> int:
        limits = self.source.limits
        return max(limits.event_bytes, limits.block_bytes) + self._tail_room

    def _events_in(self, text: bytearray) -> int | None:
        """Where the first event may start; keeps what stands before it as `header`."""
        start = bytes(text[:4096].lstrip()[:1])
        if start == b"[":
            self.is_list = True
            return text.index(b"[") + 1
        if start not in (b"{", b""):
            raise self._no_events(text)
        found = _EVENTS_KEY.search(text)
        if found is not None:
            self.header = bytes(text[: found.start()])
            return found.end()
        if len(text) > _HEADER_LIMIT:
            raise self._no_events(text)
        return None

    def _no_events(self, text: bytearray) -> TraceError:
        name = self.source.path.name
        if not text[:4096].lstrip().startswith(b"{"):
            return TraceError(
                f"{name} is no trace: it is not JSON", "choose a torch.profiler trace"
            )
        return TraceError(
            f"{name} is no trace: it has no traceEvents", "choose a file made by torch.profiler"
        )


def _last(text: bytes | bytearray) -> tuple[int, int] | None:
    """End of the last event in `text` that another one follows, and start of that one."""
    found = None
    for match in BOUNDARY.finditer(text):
        found = match
    return None if found is None else (found.start() + 1, found.end())


def _reader(source: Source, start: int, end: int, *, last: bool = False) -> Text:
    def text() -> memoryview:
        if last:
            return _framed(source.read_at(start, end - start).rstrip().removesuffix(b","))
        return source.framed_at(start, end - start)

    return text


def _slice(buffer: bytearray, end: int, *, last: bool = False) -> Text:
    def text() -> memoryview:
        whole = bytes(memoryview(buffer)[:end])
        return _framed(whole.rstrip().removesuffix(b",") if last else whole)

    return text


def _framed(text: bytes) -> memoryview:
    return memoryview(b"[%b]" % text)
