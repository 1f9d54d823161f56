"""Catching what a benchmark prints, whatever and however much it prints.

JSON lines of progress on stdout become signs of life; everything else is kept
raw up to a cap, the first and the last half of it, and made printable once at
the end. Memory stays bounded: no line, no flood is ever held whole.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from profiler.types import Progress

LOG_LIMIT_BYTES = 10 << 20
LINE_LIMIT_BYTES = 8 << 10
TAIL_LIMIT_BYTES = 8 << 10
PROGRESS_LINE_LIMIT_BYTES = 4 << 10
_READ_BYTES = 64 << 10

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?"
    r"|[PX^_][^\x1b]*(?:\x1b\\)?|[@-Z\\-_])"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable_text(raw: bytes) -> str:
    """Foreign bytes as text with line breaks and tabs, and nothing else that drives a terminal.

    Invalid UTF-8 is shown as `\\xNN`; a carriage return begins a new line, as
    in a progress bar; lines over the limit are cut and say by how much.
    """
    text = raw.decode("utf-8", "backslashreplace")
    text = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    text = _CONTROLS.sub("", text)
    return "\n".join(_cut(line) for line in text.split("\n"))


def _cut(line: str) -> str:
    if len(line) <= LINE_LIMIT_BYTES:
        return line
    return f"{line[:LINE_LIMIT_BYTES]} [{len(line) - LINE_LIMIT_BYTES:,} characters of it cut]"


class Log:
    """A capped log: the first half of the limit goes to a file, the last half is kept in memory."""

    def __init__(self, path: Path, limit_bytes: int = LOG_LIMIT_BYTES) -> None:
        self.path = path
        self._head_path = path.with_name(f"{path.name}.head")
        self._head: BinaryIO = self._head_path.open("wb", buffering=0)
        self._head_left = limit_bytes // 2
        self._half = limit_bytes - limit_bytes // 2
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._recent = b""
        self.cut_bytes = 0

    def write(self, data: bytes) -> None:
        """Append raw bytes."""
        self._recent = (self._recent + data[-TAIL_LIMIT_BYTES:])[-TAIL_LIMIT_BYTES:]
        head, data = data[: self._head_left], data[self._head_left :]
        if head:
            self._head_left -= len(head)
            self._write_head(head)
        if data:
            self._tail.append(data)
            self._tail_bytes += len(data)
        while self._tail_bytes - len(self._tail[0] if self._tail else b"") > self._half:
            dropped = len(self._tail.popleft())
            self._tail_bytes -= dropped
            self.cut_bytes += dropped

    def _write_head(self, data: bytes) -> None:
        try:
            self._head.write(data)
        except OSError as error:  # a full disk must not end a good measurement
            self._head_left = 0
            self.cut_bytes += len(data)
            self.note(f"the log cannot be written: {error.strerror}")

    def note(self, text: str) -> None:
        """A line of the supervisor's own."""
        fresh = b"" if not self._recent or self._recent.endswith(b"\n") else b"\n"
        self.write(fresh + f"[supervisor] {text}\n".encode("utf-8", "backslashreplace"))

    def recent(self) -> str:
        """The last few kilobytes, printable."""
        return printable_text(self._recent)

    def close(self) -> None:
        """Give up writing; `finish` does so itself."""
        self._head.close()

    def finish(self) -> Path:
        """Write the printable log and return its path."""
        self._head.close()
        with self.path.open("w", encoding="utf-8", errors="backslashreplace") as out:
            for part in _blocks(self._head_path):
                out.write(printable_text(part))
            if self.cut_bytes:
                out.write(f"\n[supervisor] {self.cut_bytes:,} bytes of output cut here\n")
            out.write(printable_text(b"".join(self._tail)))
            out.flush()
            os.fsync(out.fileno())
        self._head_path.unlink()
        return self.path


def _blocks(path: Path) -> Iterator[bytes]:
    """The file in pieces that end with a line where one ends in time."""
    with path.open("rb") as file:
        rest = b""
        while data := file.read(1 << 20):
            whole, rest = split_lines(rest + data, limit_bytes=1 << 20)
            yield whole
        yield rest


def split_lines(data: bytes, *, limit_bytes: int) -> tuple[bytes, bytes]:
    """Whole lines and the unfinished rest; a rest over the limit counts as whole."""
    cut = data.rfind(b"\n") + 1
    if len(data) - cut > limit_bytes:
        return data, b""
    return data[:cut], data[cut:]


class Stream:
    """One pipe of the benchmark; `progress` says whether its JSON lines are signs of life."""

    def __init__(self, descriptor: int, log: Log, *, progress: bool) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self.latest: Progress | None = None
        self._log = log
        self._progress = progress
        self._rest = b""

    def read(self) -> bool:
        """Take what is there, one bounded piece; False at the end of the stream."""
        try:
            data = os.read(self.descriptor, _READ_BYTES)
        except BlockingIOError:
            return True
        if not data:
            self.flush()
            return False
        whole, self._rest = split_lines(self._rest + data, limit_bytes=LINE_LIMIT_BYTES)
        self._take(whole)
        return True

    def flush(self) -> None:
        """Take the unfinished last line as it is."""
        self._take(self._rest)
        self._rest = b""

    def _take(self, whole: bytes) -> None:
        if not self._progress or b"{" not in whole:
            if whole:
                self._log.write(whole)
            return
        kept = [line for line in whole.splitlines(keepends=True) if not self._is_progress(line)]
        if kept:
            self._log.write(b"".join(kept))

    def _is_progress(self, line: bytes) -> bool:
        if not line.startswith(b"{") or len(line) > PROGRESS_LINE_LIMIT_BYTES:
            return False
        try:
            self.latest = msgspec.json.decode(line, type=Progress)
        except (msgspec.DecodeError, UnicodeDecodeError):  # some other line: it is log
            return False
        return True
