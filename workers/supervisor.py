"""Runs one benchmark and accounts for it: `python -m workers.supervisor JOBDIR`.

A process of its own between worker and benchmark. It keeps the lease, holds
the device, watches time and memory, catches the output, ends every process of
the run whatever they do, and leaves `outcome.json`. It dies with its worker;
the benchmark dies with it.
"""

from __future__ import annotations

import errno
import logging
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

from dashboard.services.contract import Beat, Outcome, StoredFile
from workers import processes
from workers.capture import Log, Stream
from workers.ends import ERROR_FILE, RESULT_FILES, End, KilledBy, classify
from workers.environment import benchmark_environment
from workers.heart import Heart, now_s
from workers.job import LOG_FILE, SUPERVISOR_LOCK, FileLock, Job, Spool, marker_variable
from workers.launch import command_line
from workers.server import Server, local_server

logger = logging.getLogger(__name__)

TICK_S = 0.2
FAMILY_S = 1.0
EXACT_S = 1.0
FILE_LIMIT_BYTES = 16 << 30
RESERVE_BYTES = 1 << 20
TRACE_FILES = "trace*.json.gz"
PARENT_IS_GONE = signal.SIGHUP
"""From the kernel. Not SIGTERM: a worker that hands a run back is not one that died, and just
after a kill -9 the parent's number still stands, so asking for it cannot tell the two apart."""


class Supervisor:
    """One benchmark, from the wait for its device to its outcome."""

    def __init__(self, job: Job, spool: Spool, server: Server) -> None:
        self._job = job
        self._spool = spool
        self._told: KilledBy | None = None
        self._killed_by: KilledBy | None = None
        self._status: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._streams: list[Stream] = []
        self._selector = selectors.DefaultSelector()
        self._family: set[processes.Process] = set()
        self._family_due_s = 0.0
        self._check_due_s = 0.0
        self._exact_due_s = 0.0
        self._memory_limit = job.memory_bytes or processes.machine_memory_bytes() * 9 // 10
        self._log = Log(spool.folder / LOG_FILE)
        self._heart = Heart(server, (job.run_id, job.fence), job.timing, self._beat)

    def run(self) -> Outcome:
        """Everything; returns when no process of the run is left."""
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(PARENT_IS_GONE, self._on_signal)
        oom_before = processes.kernel_oom_kills()
        self._heart.start()
        lock = FileLock(_in_made_folder(Path(self._job.device_lock)))
        if self._wait_for_device(lock):
            self._start_benchmark()
            self._watch(now_s() + self._job.limit_s)
        self._end_family()
        lock.release()
        self._heart.stop()
        self._heart.join(1.0)
        outcome = classify(
            End(
                wait_status=self._status,
                killed_by=self._killed_by,
                limit_s=self._job.limit_s,
                memory_bytes=self._memory_limit,
                kernel_oom=processes.kernel_oom_kills() > oom_before,
                output=self._spool.output,
                log_tail=self._log.recent(),
            )
        )
        return self._with_files(outcome)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        told = KilledBy.ORPHANED if number == PARENT_IS_GONE else KilledBy.DRAIN
        self._told = self._told or told

    def _beat(self) -> Beat:
        latest = self._streams[0].latest if self._streams else None
        tail = self._log.recent()
        if latest is None:
            return Beat(phase="preparing" if self._process else "waiting", log_tail=tail)
        return Beat(phase=latest.phase, step=latest.step, steps=latest.steps, log_tail=tail)

    def _reason_to_end(self) -> KilledBy | None:
        """A reason that does not depend on the benchmark."""
        if self._heart.superseded:
            return KilledBy.SUPERSEDED
        if self._heart.cancelled:
            return KilledBy.CANCEL
        if self._told is not None:
            return self._told
        return KilledBy.FENCE if self._heart.is_out_of_touch else None

    def _wait_for_device(self, lock: FileLock) -> bool:
        deadline_s = now_s() + self._job.timing.lock_wait_s
        while not lock.take():
            self._killed_by = self._reason_to_end()
            if self._killed_by is None and now_s() > deadline_s:
                self._killed_by = KilledBy.DEVICE
            if self._killed_by is not None:
                return False
            time.sleep(TICK_S / 2)
        return True

    def _start_benchmark(self) -> None:
        folder = self._spool.folder
        work = folder / "work"
        for place in (self._spool.output, work):
            place.mkdir(mode=0o700, exist_ok=True)
        command = command_line(
            list(self._job.command),
            on_parent_end=signal.SIGKILL,
            session=True,
            limits={"core": 0, "fsize": FILE_LIMIT_BYTES, "oom_score": 1000},
        )
        marker = marker_variable(self._spool.marker)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=work,
            env=benchmark_environment(os.environ, folder, marker),
        )
        for pipe, progress in ((self._process.stdout, True), (self._process.stderr, False)):
            if pipe is not None:
                stream = Stream(pipe.fileno(), self._log, progress=progress)
                self._streams.append(stream)
                self._selector.register(pipe.fileno(), selectors.EVENT_READ, stream)

    def _watch(self, deadline_s: float) -> None:
        """Until the benchmark ends, or there is a reason to end it."""
        while self._status is None and self._killed_by is None:
            self._pump(TICK_S)
            if now_s() >= self._check_due_s:
                self._check_due_s = now_s() + TICK_S
                over = now_s() > deadline_s
                self._killed_by = self._reason_to_end() or (KilledBy.TIME if over else None)
                if self._killed_by is None and self._is_over_memory():
                    self._killed_by = KilledBy.MEMORY
        if self._killed_by is not None and self._status is None:
            self._log.note(f"ending the benchmark: {self._killed_by.value}")
        else:  # it ended by itself first: that is the cause, whatever we meant to do
            self._killed_by = None

    def _is_over_memory(self) -> bool:
        if now_s() >= self._family_due_s:
            self._family_due_s = now_s() + FAMILY_S
            self._family = processes.descendants(os.getpid())
        if processes.resident_bytes(self._family) <= self._memory_limit:
            return False
        if now_s() < self._exact_due_s:  # slow: shared pages must not make it run all the time
            return False
        self._exact_due_s = now_s() + EXACT_S
        return processes.proportional_bytes(self._family) > self._memory_limit

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
        return processes.descendants(os.getpid()) | processes.marked(self._spool.marker)

    def _end_family(self) -> None:
        left = processes.end_all(self._members, self._job.timing.term_grace_s, self._pump)
        for process in left:
            logger.error("process %d of run %d cannot be ended", process.pid, self._job.run_id)
        while self._selector.get_map():  # nobody writes any more: read what is left
            before = len(self._selector.get_map())
            ready = self._selector.select(0)
            self._pump()
            if not ready and len(self._selector.get_map()) == before:
                break
        for stream in self._streams:
            stream.flush()

    def _with_files(self, outcome: Outcome) -> Outcome:
        names = [*RESULT_FILES, *sorted(path.name for path in self._found_traces())]
        if outcome.state != "succeeded":
            names = [ERROR_FILE]
        files = [
            StoredFile(name=name, path=self._spool.output / name)
            for name in names
            if _is_plain_file(self._spool.output / name)
        ]
        try:
            files.append(StoredFile(name=LOG_FILE, path=self._log.finish()))
        except OSError as error:  # the measurement counts for more than its log
            logger.warning("log of run %d is lost: %s", self._job.run_id, error.strerror)
        return Outcome(
            state=outcome.state,
            failure_kind=outcome.failure_kind,
            message=outcome.message,
            hint=outcome.hint,
            counts=outcome.counts,
            files=tuple(files),
        )

    def _found_traces(self) -> list[Path]:
        return [path for path in self._spool.output.glob(TRACE_FILES) if _is_plain_file(path)]


def _in_made_folder(path: Path) -> Path:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def _is_plain_file(path: Path) -> bool:
    """A link could make us store a file that is not the run's."""
    return path.is_file() and not path.is_symlink()


def _write_outcome(spool: Spool, outcome: Outcome, reserve: Path) -> None:
    """Leave the outcome; a full disk gets the reserve and the benchmark's scratch back."""
    try:
        spool.write_outcome(outcome)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        reserve.unlink(missing_ok=True)
        for scratch in ("tmp", "home", "work"):
            shutil.rmtree(spool.folder / scratch, ignore_errors=True)
        spool.write_outcome(outcome)


def main(arguments: list[str] | None = None) -> int:
    """Command line: one argument, the spool folder."""
    (folder,) = sys.argv[1:] if arguments is None else arguments
    spool = Spool(Path(folder).resolve())
    job = spool.read_job()
    if not processes.die_with_parent(job.parent_pid, PARENT_IS_GONE):
        return 1
    processes.adopt_orphans()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lock = FileLock(spool.folder / SUPERVISOR_LOCK)
    if not lock.take():
        return 1
    reserve = spool.folder / "reserve"
    reserve.write_bytes(bytes(RESERVE_BYTES))
    outcome = Supervisor(job, spool, local_server()).run()
    _write_outcome(spool, outcome, reserve)
    return 0


if __name__ == "__main__":
    sys.exit(main())
