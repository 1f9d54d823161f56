"""Reading a trace: a limited process turns a foreign file into tables; we only store them."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dashboard.services.contract import (
    StoredFile,
    SupersededError,
    TraceClaim,
    TraceOutcome,
    WorkerIdentity,
)
from dashboard.services.events import INGEST_QUEUE
from profiler.analysis.known import dump_known
from profiler.errors import UserError, printable
from profiler.units import duration, size
from workers.capture import Log, Stream
from workers.delivery import end_marked
from workers.duty import Places
from workers.environment import reader_environment
from workers.heart import now_s
from workers.job import (
    OWNER_LOCK,
    FileLock,
    folder_marker,
    make_owned,
    marker_variable,
    remove,
)
from workers.launch import command_line
from workers.server import Server

logger = logging.getLogger(__name__)

REDACTED_FILE = "redacted.json.gz"
KNOWN_FILE = "known.json"
REQUIRED = ("report.json", "flame.speedscope.json.gz")
FILES = (
    *REQUIRED,
    "flamegraph.json.gz",
    "replay.bin",
    "events.parquet",
    "collectives.json",
    "stepprofile.json.gz",
    REDACTED_FILE,
)
FILE_LIMIT_BYTES = 8 << 30
_POLL_S = 0.05
_LOG_BYTES = 256 << 10
_SEE_LOG = "see the log of the ingest worker"

Renew = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """What reading one trace may cost."""

    wall_s: float
    memory_bytes: int


class TraceDuty:
    """Traces, one at a time."""

    kind = "ingest"
    platform = ""
    queue = INGEST_QUEUE

    def __init__(
        self,
        server: Server,
        identity: WorkerIdentity,
        places: Places,
        limits: ReadLimits,
        *,
        stop: threading.Event,
    ) -> None:
        self._server = server
        self._identity = identity
        self._places = places
        self._limits = limits
        self._stop = stop
        self.reader = ["-m", "profiler", "analyze"]

    def next(self) -> tuple[int, int] | None:
        """A trace that could be claimed now."""
        waiting = self._server.next_traces(1)
        return waiting[0] if waiting else None

    def handle(self, subject_id: int, attempt: int) -> bool:
        """Claim and read it; False when it was not to be had."""
        claim = self._server.claim_trace(subject_id, attempt, self._identity)
        if claim is None:
            return False
        folder = self._places.spool / f"trace-{claim.trace_id}-f{claim.fence}"
        owner = make_owned(folder)
        try:
            self._read(claim, folder)
        except SupersededError:
            logger.info("trace %d is somebody else's now", claim.trace_id)
        finally:
            remove(folder)
            owner.release()
        return True

    def tidy(self) -> None:
        """Remove what dead ingest workers left; their traces come back by their lease."""
        for folder in self._places.spool.glob("trace-*-f*"):
            owner = FileLock(folder / OWNER_LOCK)
            try:
                if owner.take():
                    end_marked(folder_marker(folder))
                    remove(folder)
            except FileNotFoundError:  # its owner has just removed it
                continue
            finally:
                owner.release()

    def _read(self, claim: TraceClaim, folder: Path) -> None:
        raw = folder / _raw_name(claim.name)
        try:
            self._server.fetch(claim.sha256, raw)
        except UserError as error:
            return self._reject(claim, error.message, error.hint)
        out = folder / "out"
        redact = ["--redact", str(out / REDACTED_FILE)] if claim.redact else []
        beside = []
        if claim.known is not None:
            (folder / KNOWN_FILE).write_bytes(dump_known(claim.known))
            beside = ["--known", str(folder / KNOWN_FILE)]
        outcome = Reading(claim, folder, self._limits, self._stop).run(
            [sys.executable, *self.reader, str(raw), "--json", "--out", str(out), *redact, *beside],
            lambda: self._server.renew_trace(claim.trace_id, claim.fence),
            self._renew_s,
        )
        if outcome is None:
            return None  # we were told to stop: the lease ends and another worker reads it
        try:
            self._server.deliver_trace(claim.trace_id, claim.fence, outcome)
        except UserError as error:
            logger.exception("what was read from trace %d cannot be stored", claim.trace_id)
            self._reject(claim, error.message, error.hint)

    @property
    def _renew_s(self) -> float:
        return self._places.timing.heartbeat_s

    def _reject(self, claim: TraceClaim, reason: str, hint: str) -> None:
        outcome = TraceOutcome(state="rejected", reason=reason, hint=hint)
        self._server.deliver_trace(claim.trace_id, claim.fence, outcome)


class Reading:
    """One run of `python -m profiler analyze` under limits."""

    def __init__(
        self, claim: TraceClaim, folder: Path, limits: ReadLimits, stop: threading.Event
    ) -> None:
        self._claim = claim
        self._folder = folder
        self._limits = limits
        self._stop = stop
        self._log = Log(folder / "log.txt", limit_bytes=_LOG_BYTES)

    def run(self, command: list[str], renew: Renew, renew_s: float) -> TraceOutcome | None:
        """Let `command` read; None when the worker is told to stop meanwhile."""
        reader = self._start(command)
        deadline_s = now_s() + self._limits.wall_s
        renew_due_s = now_s() + renew_s
        stream = Stream(_descriptor(reader), self._log, progress=False)
        over_time = False
        try:
            while reader.poll() is None and not over_time and not self._stop.is_set():
                stream.read()
                if now_s() > renew_due_s:
                    renew()
                    renew_due_s = now_s() + renew_s
                over_time = now_s() > deadline_s
                time.sleep(_POLL_S)
        finally:
            self._end(reader)
            _drain(stream)
            self._log.close()
            if reader.stderr is not None:
                reader.stderr.close()
        if over_time:
            return self._rejected(
                f"Reading it took longer than {duration(self._limits.wall_s * 1e9)}",
                "record fewer steps, or ask an admin to raise INGEST_LIMIT_S",
            )
        return None if self._stop.is_set() else self._outcome(reader.returncode)

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        output = self._folder / "out"
        output.mkdir(mode=0o700)
        limited = command_line(
            command,
            on_parent_end=signal.SIGKILL,
            session=True,
            limits={
                "core": 0,
                "fsize": FILE_LIMIT_BYTES,
                "as": self._limits.memory_bytes,
                "data": self._limits.memory_bytes,
                "oom_score": 800,
                # Reading can wait; a benchmark that is timed meanwhile cannot.
                "nice": 19,
            },
        )
        marker = marker_variable(folder_marker(self._folder))
        return subprocess.Popen(
            limited,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=self._folder,
            env=reader_environment(self._folder, marker),
        )

    def _end(self, reader: subprocess.Popen[bytes]) -> None:
        if reader.poll() is None:
            os.killpg(reader.pid, signal.SIGKILL)
            reader.wait()
        end_marked(folder_marker(self._folder))

    def _outcome(self, code: int) -> TraceOutcome:
        words = _reason(self._log.recent())
        if code == 0:
            return self._ready()
        if code in (64, 65):
            return self._rejected(words or "The file is no usable trace", "")
        if _ran_out_of_memory(self._log.recent()):
            return self._rejected(
                f"Reading it needs more than {size(self._limits.memory_bytes)} of memory",
                "record fewer steps, or ask an admin to raise INGEST_MEMORY_BYTES",
            )
        logger.error("reading trace %d ended with %d: %s", self._claim.trace_id, code, words)
        ended = f"signal {-code}" if code < 0 else f"exit code {code}"
        return self._rejected(f"The reader crashed ({ended}): {words}", _SEE_LOG)

    def _ready(self) -> TraceOutcome:
        output = self._folder / "out"
        files = [
            StoredFile(name=name, path=output / name)
            for name in FILES
            if (output / name).is_file() and not (output / name).is_symlink()
        ]
        missing = set(REQUIRED) - {file.name for file in files}
        if missing:
            return self._rejected(f"The reader wrote no {', '.join(sorted(missing))}", _SEE_LOG)
        return TraceOutcome(state="ready", files=tuple(files))

    def _rejected(self, reason: str, hint: str) -> TraceOutcome:
        return TraceOutcome(
            state="rejected", reason=printable(reason, limit=480), hint=printable(hint, limit=480)
        )


def _descriptor(reader: subprocess.Popen[bytes]) -> int:
    if reader.stderr is None:
        raise RuntimeError("the reader was started without a pipe")
    return reader.stderr.fileno()


def _drain(stream: Stream) -> None:
    """Read what the ended reader left in the pipe; nobody writes to it any more."""
    for _ in range(64):
        if not stream.read():
            return
    stream.flush()


def _reason(log: str) -> str:
    """The last line with text: the command line says what is wrong in one."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _ran_out_of_memory(log: str) -> bool:
    words = (
        "MemoryError",
        "bad_alloc",
        "malloc of size",
        "Cannot allocate memory",
        "out of memory",
    )
    return any(word in log for word in words)


def _raw_name(name: str) -> str:
    """A name of our own; only the ending is taken from the foreign one."""
    return "raw.json.gz" if name.lower().endswith(".gz") else "raw.json"
