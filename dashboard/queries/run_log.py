"""The end of a run's log: from its heartbeats while it runs, from its file afterwards."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace

from dashboard.models import Run
from dashboard.queries.run_detail import run_file
from dashboard.services import artifacts
from profiler.errors import printable

LOG_FILE = "log.txt"
LINES = 200
TAIL_BYTES = 256 * 1024
LINE_LIMIT = 2000
_TROUBLE = re.compile(r"\b\w*(error|exception|traceback|fatal|killed)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One printable line; `trouble` marks the first that looks like an error."""

    text: str
    trouble: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTail:
    """The last lines; `cut` says that there are earlier ones. `size_bytes` of the whole file."""

    lines: tuple[LogLine, ...]
    cut: bool
    size_bytes: int | None
    attempt: int | None
    problem: str = ""

    @property
    def has_trouble(self) -> bool:
        return any(line.trouble for line in self.lines)


_EMPTY = LogTail(lines=(), cut=False, size_bytes=None, attempt=None)


def log_tail(run: Run) -> LogTail:
    """The last `LINES` lines of the run's last attempt that wrote any."""
    stored = run_file(run, LOG_FILE, None) if run.is_terminal else None
    if stored is None:
        return _tail(run.log_tail, cut=False, size_bytes=None, attempt=None)
    size = stored.artifact.size_bytes
    try:
        with artifacts.open_artifact(stored.artifact.sha256) as handle:
            handle.seek(max(0, size - TAIL_BYTES), os.SEEK_SET)
            text = handle.read(TAIL_BYTES).decode("utf-8", errors="replace")
    except OSError as error:
        # One file that is gone must not take the page of the run with it.
        return replace(_EMPTY, problem=f"The stored log cannot be read: {error.strerror}.")
    return _tail(text, cut=size > TAIL_BYTES, size_bytes=size, attempt=stored.attempt)


def _tail(text: str, *, cut: bool, size_bytes: int | None, attempt: int | None) -> LogTail:
    # A progress bar rewrites its line with \r: only what a terminal would show last counts.
    rows = [row.rstrip("\r").rsplit("\r", 1)[-1].expandtabs(4) for row in text.split("\n")]
    while rows and not rows[-1].strip():
        rows.pop()
    shown = [printable(row, LINE_LIMIT) for row in rows[-LINES:]]
    first = next((i for i, row in enumerate(shown) if _TROUBLE.search(row)), None)
    return LogTail(
        lines=tuple(LogLine(text=row, trouble=i == first) for i, row in enumerate(shown)),
        cut=cut or len(rows) > LINES,
        size_bytes=size_bytes,
        attempt=attempt,
    )
