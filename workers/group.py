"""A group of long-running processes, kept running and ended together."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path

from profiler.errors import printable
from workers import processes
from workers.launch import command_line

LOG_BYTES = 5 << 20
LOG_FILES = 3
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
STEADY_S = 60.0
"""Who lived this long starts again without a pause the next time."""

STOP_S = 40.0
_LINE_BYTES = 16 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One process of the group. Those of a higher `rank` end first."""

    name: str
    command: Sequence[str]
    rank: int = 1
    descriptors: tuple[int, ...] = ()


class Member:
    """A program that is kept running."""

    def __init__(self, program: Program, log_folder: Path, show: Callable[[str], None]) -> None:
        self.program = program
        self.process: subprocess.Popen[bytes] | None = None
        self._show = show
        self._pause_s = 0.0
        self._due_s = 0.0
        self._started_s = 0.0
        self._log = _log_file(log_folder / f"{program.name}.log")

    def start(self, environment: dict[str, str], folder: Path) -> None:
        """Start it below this process; it gets TERM when we end, however we end.

        Call it from the main thread: the kernel watches the thread that started it.
        """
        self._started_s = time.monotonic()
        self.process = subprocess.Popen(
            command_line(
                list(self.program.command), on_parent_end=signal.SIGTERM, session=True, limits={}
            ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            cwd=folder,
            env=environment,
            pass_fds=self.program.descriptors,
        )
        pump = threading.Thread(target=self._pump, args=(self.process,), daemon=True)
        pump.start()

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def is_due(self) -> bool:
        """Whether it is dead and its pause is over; notes the death the first time."""
        if self.is_alive:
            return False
        now = time.monotonic()
        if self._due_s < self._started_s:
            code = None if self.process is None else self.process.returncode
            lived = now - self._started_s
            longer_s = min(LONGEST_PAUSE_S, self._pause_s * 2 or FIRST_PAUSE_S)
            self._pause_s = 0.0 if lived > STEADY_S else longer_s
            self._due_s = now + self._pause_s
            self.say(f"ended ({code}); started again in {self._pause_s:g} s")
        return now >= self._due_s

    def say(self, text: str) -> None:
        """A line about it, on the screen and in its log."""
        self._log.handle(logging.makeLogRecord({"msg": text}))
        self._show(f"{self.program.name:<9} | {text}")

    def close(self) -> None:
        self._log.close()

    def _pump(self, process: subprocess.Popen[bytes]) -> None:
        if process.stdout is None:
            raise RuntimeError(f"{self.program.name} was started without a pipe")
        with process.stdout as lines:
            while line := lines.readline(_LINE_BYTES):
                self.say(printable(line.decode("utf-8", "backslashreplace").rstrip("\n"), 4000))


class Group:
    """Keeps its members running until it is told to stop."""

    def __init__(
        self,
        environment: dict[str, str],
        folder: Path,
        log_folder: Path,
        show: Callable[[str], None],
    ) -> None:
        self._environment = environment
        self._folder = folder
        self._log_folder = log_folder
        self._show = show
        self._members: list[Member] = []

    def add(self, program: Program) -> None:
        """Start a program and keep it running from now on."""
        member = Member(program, self._log_folder, self._show)
        self._members.append(member)
        member.start(self._environment, self._folder)

    def is_alive(self, name: str) -> bool:
        """Whether the program of that name runs just now."""
        return any(m.is_alive for m in self._members if m.program.name == name)

    def keep(self) -> None:
        """Start again whoever died and has waited."""
        for member in self._members:
            if member.is_due():
                member.start(self._environment, self._folder)

    def stop(self, in_a_hurry: Callable[[], bool]) -> None:
        """TERM and wait, highest rank first; then KILL; then whatever they left behind."""
        for rank in sorted({m.program.rank for m in self._members}, reverse=True):
            members = [m for m in self._members if m.program.rank == rank]
            self._stop_rank(members, in_a_hurry)
        processes.end_all(lambda: processes.descendants(os.getpid()), 5.0, processes.reap)
        for member in self._members:
            member.close()

    def _stop_rank(self, members: list[Member], in_a_hurry: Callable[[], bool]) -> None:
        for member in members:
            if member.process is not None and member.is_alive:
                member.process.terminate()
        deadline = time.monotonic() + STOP_S
        while any(member.is_alive for member in members):
            if in_a_hurry() or time.monotonic() > deadline:
                for member in members:
                    if member.process is not None and member.is_alive:
                        member.say("killed")
                        member.process.kill()
            time.sleep(0.02)


def _log_file(path: Path) -> RotatingFileHandler:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handler = RotatingFileHandler(
        path, maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8", errors="backslashreplace"
    )
    handler.setFormatter(logging.Formatter("%(message)s"))
    return handler
