"""One step of one rank cut out of a trace, for viewers that cannot open the whole of it.

Names and times only: arguments, python frames and everything around the events stay behind.
"""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from dashboard.models import Artifact
from dashboard.services import artifacts
from profiler.analysis.report import StepRow
from profiler.errors import TraceError

EVENTS_LIMIT = 200_000
_COLUMNS = ("ts_ns", "dur_ns", "category", "name", "track", "correlation")


class Slice(msgspec.Struct, frozen=True, omit_defaults=True):
    """A complete event or a name of a row, as the Chrome trace format writes it; times in µs."""

    ph: str
    name: str
    pid: int
    tid: int
    ts: float = 0.0
    dur: float = -1.0
    cat: str = ""
    args: dict[str, str | int] = {}


class Document(msgspec.Struct, frozen=True):
    """What Perfetto and chrome://tracing open."""

    traceEvents: Sequence[Slice]
    otherData: dict[str, str | int]
    displayTimeUnit: str = "ns"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The packed document, and how many events the limit left out."""

    content: bytes
    events: int
    left_out: int


def step_cut(columns: Artifact, step: StepRow, rank: int) -> Cut:
    """Events that start within a step, the first ones up to the limit.

    Raises `TraceError` where the stored events are gone or damaged.
    """
    slices, rows = _slices(columns, step)
    kept = slices[:EVENTS_LIMIT]
    left_out = len(slices) - len(kept)
    about: dict[str, str | int] = {"step": step.name, "rank": rank, "left_out": left_out}
    content = msgspec.json.encode(Document(traceEvents=[*rows, *kept], otherData=about))
    return Cut(
        content=gzip.compress(content, compresslevel=5, mtime=0),
        events=len(kept),
        left_out=left_out,
    )


def _slices(columns: Artifact, step: StepRow) -> tuple[list[Slice], list[Slice]]:
    """The events of a step by start, and the names of the rows they lie on."""
    # Loading the library of the event store takes longer than most pages: only here.
    from profiler.trace.store import read_events

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.parquet"
        try:
            artifacts.fetch(columns.sha256, path)
        except OSError as error:
            reason = error.strerror or str(error)
            raise TraceError(
                f"The stored events cannot be read: {reason}", "read it again"
            ) from None
        low, high = step.start_ns, step.start_ns + max(1, step.dur_ns)
        table = read_events(path, columns=_COLUMNS, from_ns=low, to_ns=high)
    tracks = _tracks((table.schema.metadata or {}).get(b"daybreak.tracks", b"").decode())
    columns_read = [table.column(name).to_pylist() for name in _COLUMNS]
    slices = [
        Slice(
            ph="X",
            name=str(name),
            cat=str(category or ""),
            pid=tracks.pid(track),
            tid=track,
            ts=(ts_ns - low) / 1000,
            dur=dur_ns / 1000,
            args={"correlation": correlation} if correlation > 0 else {},
        )
        for ts_ns, dur_ns, category, name, track, correlation in zip(*columns_read, strict=True)
    ]
    return slices, tracks.rows(sorted({one.tid for one in slices}))


@dataclass(frozen=True, slots=True)
class _Tracks:
    """Processes and threads by the number of their track; numbers of ours, not of the file."""

    lines: list[tuple[str, str, str, str]]
    pids: dict[str, int]

    def pid(self, track: int) -> int:
        return self.pids[self.lines[track][0]]

    def rows(self, used: Sequence[int]) -> list[Slice]:
        """Names of the tracks that are used."""
        found = []
        for track in used:
            pid, tid, process, thread = self.lines[track]
            for kind, name in (("process_name", process or pid), ("thread_name", thread or tid)):
                row = Slice(ph="M", name=kind, pid=self.pid(track), tid=track, args={"name": name})
                found.append(row)
        return found


def _tracks(text: str) -> _Tracks:
    lines = []
    for line in text.split("\n"):
        parts = [*line.split("\t"), "", "", ""]
        lines.append((parts[0], parts[1], parts[2], parts[3]))
    pids = {pid: number for number, pid in enumerate(dict.fromkeys(line[0] for line in lines), 1)}
    return _Tracks(lines, pids)
