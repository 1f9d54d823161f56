"""The bytes of a trace: plain or gzip by content, bounded, hashed on the way."""

from __future__ import annotations

import hashlib
import os
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

from profiler import units
from profiler.errors import TraceError
from profiler.trace.limits import MIB, Limits

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_BOM = b"\xef\xbb\xbf"
_WIDE = (b"\xff\xfe", b"\xfe\xff")
_SMALL_PIECE = 4096
_HASH_PIECE = 2 * MIB


class Source:
    """One trace file.

    A plain file is read by place (`read_at`), a compressed one once from start
    to end (`chunks`). `sha256` is that of the file as stored, if `hashed`;
    `warnings` says what was wrong with the container. Raises `TraceError` for
    files that cannot be read, are empty or exceed the limits.
    """

    def __init__(self, path: Path, limits: Limits, *, hashed: bool = True) -> None:
        self.path = path
        self.limits = limits
        self.inflated_bytes = 0
        self.stored_bytes = 0
        self.warnings: list[str] = []
        self._frame = bytearray()
        try:
            self._file = path.open("rb", buffering=0)
            self.size = os.fstat(self._file.fileno()).st_size
            magic = os.pread(self._file.fileno(), 4, 0)
        except OSError as error:
            raise self._unreadable(error) from None
        self.compressed = magic.startswith(_GZIP)
        self.text_start = len(_BOM) if magic.startswith(_BOM) else 0
        try:
            self._check_container(magic)
        except TraceError:
            self._file.close()
            raise
        self._digest = hashlib.sha256()
        self._hashing = threading.Thread(target=self._hash) if hashed else None
        if self._hashing is not None:
            self._hashing.start()

    def _check_container(self, magic: bytes) -> None:
        name = self.path.name
        if not magic:
            raise TraceError(f"{name} is empty (0 bytes)", "choose a trace with events")
        if magic.startswith(_ZSTD):
            raise TraceError(f"{name} is zstd-compressed", "store it as .json.gz")
        if magic.startswith(_WIDE):
            raise TraceError(f"{name} is UTF-16 text", "save it as UTF-8")
        if not self.compressed:
            self._check_size(self.size)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._hashing is not None:
            self._hashing.join()
        self._file.close()

    @property
    def sha256(self) -> str:
        """Hex digest of the stored bytes."""
        if self._hashing is not None:
            self._hashing.join()
        return self._digest.hexdigest()

    def read_at(self, start: int, size: int) -> bytes:
        """Up to `size` bytes of a plain file from `start`."""
        try:
            return os.pread(self._file.fileno(), size, start)
        except OSError as error:
            raise self._unreadable(error) from None

    def framed_at(self, start: int, size: int) -> memoryview:
        """The same bytes between `[` and `]`; only until the next call, which reuses the memory."""
        if len(self._frame) < size + 2:
            self._frame = bytearray(size + size // 8 + 2)
        view = memoryview(self._frame)
        try:
            got = os.preadv(self._file.fileno(), [view[1 : size + 1]], start)
        except OSError as error:
            raise self._unreadable(error) from None
        view[0:1], view[got + 1 : got + 2] = b"[", b"]"
        return view[: got + 2]

    def chunks(self) -> Iterator[bytes]:
        """The text of a compressed file in pieces of at most a block."""
        start = True
        for text in self._inflated():
            self.inflated_bytes += len(text)
            self._check_size(self.inflated_bytes)
            self._check_ratio()
            if start and text.startswith(_WIDE):
                raise TraceError(f"{self.path.name} is UTF-16 text", "save it as UTF-8")
            yield text.removeprefix(_BOM) if start else text
            start = False

    def _hash(self) -> None:
        """Runs in a thread: reading and hashing leave the interpreter free for decoding."""
        place = 0
        while True:
            try:
                piece = os.pread(self._file.fileno(), _HASH_PIECE, place)
            except OSError:
                # The reading side meets the same error and reports it.
                return
            if not piece:
                return
            self._digest.update(piece)
            place += len(piece)

    def _stored(self) -> Iterator[bytes]:
        while piece := self.read_at(self.stored_bytes, self.limits.block_bytes):
            self.stored_bytes += len(piece)
            yield piece

    def _inflated(self) -> Iterator[bytes]:
        """The text of all gzip members; of a damaged one what comes before the damage."""
        inflate = zlib.decompressobj(wbits=31)
        for stored in self._stored():
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

    def _check_size(self, size: int) -> None:
        if size > self.limits.inflated_bytes:
            allowed = units.size(self.limits.inflated_bytes)
            raise TraceError(
                f"{self.path.name} holds more than {allowed} of text", "record fewer steps"
            )

    def _check_ratio(self) -> None:
        limits = self.limits
        grown = self.inflated_bytes > limits.ratio_after_bytes
        if grown and self.inflated_bytes > limits.ratio * self.stored_bytes:
            raise TraceError(
                f"{self.path.name} inflates to more than {limits.ratio} times its size",
                "real traces compress 10 to 40 times; this looks like a decompression bomb",
            )

    def _unreadable(self, error: OSError) -> TraceError:
        reason = error.strerror or str(error)
        return TraceError(f"{self.path} cannot be read: {reason}", "check the path")


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
