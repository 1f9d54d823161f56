"""Cuts the text of a trace into its header and blocks of whole events."""

from __future__ import annotations

import re
from collections.abc import Iterator

from profiler import units
from profiler.errors import TraceError
from profiler.trace.limits import MIB
from profiler.trace.salvage import BOUNDARY
from profiler.trace.source import Source

_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*\[')
_HEADER_LIMIT = 64 * MIB
_TAIL_ROOM = MIB


class Blocks:
    """Iterates over the event text of `source`; `header` is known once the first block is out,
    `count` is the number of blocks given out.

    Every block ends between two events. The last one holds at least the last
    MiB of the file, so that the keys behind the event array stay in one piece.
    Raises `TraceError` when there is no event array or one event exceeds the
    limit.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._chunks = source.chunks()
        self.header = b""
        self.count = 0
        self.is_list = False

    def __iter__(self) -> Iterator[bytes]:
        buffer = self._find_events()
        target = self._source.limits.block_bytes
        for chunk in self._chunks:
            buffer += chunk
            while len(buffer) >= target + _TAIL_ROOM:
                cut = self._cut(buffer, target)
                if cut is None:
                    break
                self.count += 1
                yield bytes(memoryview(buffer)[: cut[0]])
                del buffer[: cut[1]]
        self.count += 1
        yield bytes(buffer).rstrip().removesuffix(b",")

    def drain(self) -> None:
        """Read on to the end of the file, for its checksum and limits."""
        for _ in self._chunks:
            pass

    def _cut(self, buffer: bytearray, target: int) -> tuple[int, int] | None:
        """End of the last event at or before `target` and start of the next one."""
        reach = 1 << 16
        while reach < 2 * target:
            low = max(0, target - reach)
            found = None
            for found in BOUNDARY.finditer(buffer, low, target + 64):  # noqa: B007  the last one
                pass
            if found is not None:
                return found.start() + 1, found.end()
            reach *= 8
        later = BOUNDARY.search(buffer, max(0, target - 64))
        if later is not None:
            return later.start() + 1, later.end()
        if len(buffer) > max(self._source.limits.event_bytes, target) + _TAIL_ROOM:
            limit = units.size(self._source.limits.event_bytes)
            raise TraceError(
                f"{self._source.path.name} holds a single event larger than {limit}",
                "no profiler writes such events; check how the file was made",
            )
        return None

    def _find_events(self) -> bytearray:
        """The buffer from the first event on; keeps what stood before it as `header`."""
        buffer = bytearray()
        for chunk in self._chunks:
            buffer += chunk
            start = bytes(buffer.lstrip()[:1])
            if start == b"[":
                self.is_list = True
                del buffer[: buffer.index(b"[") + 1]
                return buffer
            if start not in (b"{", b""):
                break
            if found := _EVENTS_KEY.search(buffer):
                self.header = bytes(buffer[: found.start()])
                del buffer[: found.end()]
                return buffer
            if len(buffer) > _HEADER_LIMIT:
                break
        name = self._source.path.name
        if not buffer.lstrip().startswith(b"{"):
            raise TraceError(f"{name} is no trace: it is not JSON", "choose a torch.profiler trace")
        raise TraceError(
            f"{name} is no trace: it has no traceEvents", "choose a file made by torch.profiler"
        )
