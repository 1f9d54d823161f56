"""One process of an attempt below its supervisor, with everything that it starts.

Started with limits, its output caught, its time and memory watched, and ended
with all its descendants, however they try to get away.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dashboard.services.contract import Beat
from workers import processes
from workers.capture import Log, Stream
from workers.ends import KilledBy
from workers.heart import now_s
from workers.launch import command_line

TICK_S = 0.2
FAMILY_S = 1.0
EXACT_S = 1.0
FILE_LIMIT_BYTES = 16 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What to start, where, with which variables, and for how long at most."""

    name: str
    command: tuple[str, ...]
    folder: Path
    environment: dict[str, str]
    limit_s: float
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """How it ended: by itself with a wait status, or by us for a reason."""

    wait_status: int | None
    killed_by: KilledBy | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a child shares with its supervisor."""

    marker: str
    log: Log
    grace_s: float
    reason_to_end: Callable[[], KilledBy | None]


class Child:
    """Runs one process to its end; `run` returns when nothing of it is left."""

    def __init__(self, start: Start, around: Surroundings) -> None:
        self.left: set[processes.Process] = set()
        self._start = start
        self._around = around
        self._killed_by: KilledBy | None = None
        self._status: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._streams: list[Stream] = []
        self._selector = selectors.DefaultSelector()
        self._family: set[processes.Process] = set()
        self._family_due_s = 0.0
        self._check_due_s = 0.0
        self._exact_due_s = 0.0

    def run(self) -> Gone:
        """From its start until every process of it is gone."""
        self._launch()
        self._watch(now_s() + self._start.limit_s)
        self._end_family()
        return Gone(wait_status=self._status, killed_by=self._killed_by)

    @property
    def latest(self) -> Beat | None:
        """Its last sign of progress."""
        said = self._streams[0].latest if self._streams else None
        return None if said is None else Beat(phase=said.phase, step=said.step, steps=said.steps)

    def _launch(self) -> None:
        command = command_line(
            list(self._start.command),
            on_parent_end=signal.SIGKILL,
            session=True,
            limits={"core": 0, "fsize": FILE_LIMIT_BYTES, "oom_score": 1000},
        )
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=self._start.folder,
            env=self._start.environment,
        )
        for pipe, progress in ((self._process.stdout, True), (self._process.stderr, False)):
            if pipe is not None:
                stream = Stream(pipe.fileno(), self._around.log, progress=progress)
                self._streams.append(stream)
                self._selector.register(pipe.fileno(), selectors.EVENT_READ, stream)

    def _watch(self, deadline_s: float) -> None:
        """Until it ends, or there is a reason to end it."""
        while self._status is None and self._killed_by is None:
            self._pump(TICK_S)
            if now_s() >= self._check_due_s:
                self._check_due_s = now_s() + TICK_S
                over = now_s() > deadline_s
                self._killed_by = self._around.reason_to_end() or (KilledBy.TIME if over else None)
                if self._killed_by is None and self._is_over_memory():
                    self._killed_by = KilledBy.MEMORY
        if self._killed_by is not None and self._status is None:
            self._around.log.note(f"ending the {self._start.name}: {self._killed_by.value}")
        else:  # it ended by itself first: that is the cause, whatever we meant to do
            self._killed_by = None

    def _is_over_memory(self) -> bool:
        if now_s() >= self._family_due_s:
            self._family_due_s = now_s() + FAMILY_S
            self._family = processes.descendants(os.getpid())
        if processes.resident_bytes(self._family) <= self._start.memory_bytes:
            return False
        if now_s() < self._exact_due_s:  # slow: shared pages must not make it run all the time
            return False
        self._exact_due_s = now_s() + EXACT_S
        return processes.proportional_bytes(self._family) > self._start.memory_bytes

    def _pump(self, timeout_s: float = 0.0) -> None:
        """Take output, collect ended children."""
        if self._selector.get_map():
            for key, _ in self._selector.select(timeout_s):
                stream = key.data
                if isinstance(stream, Stream) and not stream.read():
                    self._selector.unregister(key.fileobj)
        else:
            time.sleep(min(timeout_s, 0.02))
        ended = processes.reap()
        if self._process is not None and self._process.pid in ended:
            self._status = ended[self._process.pid]
            self._process.returncode = os.waitstatus_to_exitcode(self._status)

    def _members(self) -> set[processes.Process]:
        return processes.descendants(os.getpid()) | processes.marked(self._around.marker)

    def _end_family(self) -> None:
        self.left = processes.end_all(self._members, self._around.grace_s, self._pump)
        while self._selector.get_map():  # nobody writes any more: read what is left
            before = len(self._selector.get_map())
            ready = self._selector.select(0)
            self._pump()
            if not ready and len(self._selector.get_map()) == before:
                break
        for stream in self._streams:
            stream.flush()
        for pipe in (self._process.stdout, self._process.stderr) if self._process else ():
            if pipe is not None:
                pipe.close()
        self._selector.close()
