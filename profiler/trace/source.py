"""The bytes of a trace: plain or gzip by content, bounded, hashed on the way."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from pathlib import Path

from profiler import units
from profiler.errors import TraceError
from profiler.trace.limits import Limits

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_SMALL_PIECE = 4096
_BOM = b"\xef\xbb\xbf"
_WIDE = (b"\xff\xfe", b"\xfe\xff")


class Source:
    """One trace file read once from start to end.

    `chunks()` yields its text; afterwards `sha256` (of the file as stored, if `hashed`),
    `stored_bytes` and `inflated_bytes` are known and `warnings` says what was
    wrong with the container. Raises `TraceError` for files that cannot be
    read, are empty or exceed the limits.
    """

    def __init__(self, path: Path, limits: Limits, *, hashed: bool = True) -> None:
        self.path = path
        self.limits = limits
        self.stored_bytes = 0
        self.inflated_bytes = 0
        self.warnings: list[str] = []
        self._hash = hashlib.sha256()
        self._hashed = hashed

    @property
    def sha256(self) -> str:
        """Hex digest of the bytes read so far."""
        return self._hash.hexdigest()

    def chunks(self) -> Iterator[bytes]:
        """The text in pieces of about a block."""
        pieces = self._stored()
        first = next(pieces, b"")
        if not first:
            raise TraceError(f"{self.path.name} is empty (0 bytes)", "choose a trace with events")
        if first.startswith(_ZSTD):
            raise TraceError(
                f"{self.path.name} is zstd-compressed", "store it as .json or .json.gz"
            )
        texts = self._inflated(first, pieces) if first.startswith(_GZIP) else _chain(first, pieces)
        start = True
        for text in texts:
            self._count(len(text))
            if start:
                self._refuse_wide(text)
                text = text.removeprefix(_BOM)
                start = False
            yield text

    def _stored(self) -> Iterator[bytes]:
        try:
            with self.path.open("rb", buffering=0) as file:
                while piece := file.read(self.limits.block_bytes):
                    if self._hashed:
                        self._hash.update(piece)
                    self.stored_bytes += len(piece)
                    yield piece
        except OSError as error:
            reason = error.strerror or str(error)
            raise TraceError(f"{self.path} cannot be read: {reason}", "check the path") from None

    def _inflated(self, first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
        """The text of all gzip members; of a damaged one what comes before the damage."""
        inflate = zlib.decompressobj(wbits=31)
        for stored in _chain(first, rest):
            data = stored
            while data:
                if inflate.eof:
                    data = data.lstrip(b"\0")
                    if not data.startswith(_GZIP):
                        return
                    inflate = zlib.decompressobj(wbits=31)
                before = inflate.copy()
                try:
                    text = inflate.decompress(data, self.limits.block_bytes)
                except zlib.error:
                    self.warnings.append("the gzip stream is damaged; events behind it are lost")
                    yield from _until_damage(before, data)
                    return
                data = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
                if text:
                    yield text
        if not inflate.eof:
            self.warnings.append("the gzip stream is cut off; events after the cut are lost")

    def _count(self, size: int) -> None:
        self.inflated_bytes += size
        limits = self.limits
        if self.inflated_bytes > limits.inflated_bytes:
            allowed = units.size(limits.inflated_bytes)
            raise TraceError(
                f"{self.path.name} holds more than {allowed} of text", "record fewer steps"
            )
        grown = self.inflated_bytes > limits.ratio_after_bytes
        if grown and self.inflated_bytes > limits.ratio * self.stored_bytes:
            raise TraceError(
                f"{self.path.name} inflates to more than {limits.ratio} times its size",
                "real traces compress 10 to 40 times; this looks like a decompression bomb",
            )

    def _refuse_wide(self, text: bytes) -> None:
        if text.startswith(_WIDE):
            raise TraceError(f"{self.path.name} is UTF-16 text", "save it as UTF-8")


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _until_damage(inflate: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    """What still comes out in small pieces before the error."""
    while data:
        try:
            text = inflate.decompress(data, _SMALL_PIECE)
        except zlib.error:
            return
        data = inflate.unconsumed_tail
        if not text:
            return
        yield text
