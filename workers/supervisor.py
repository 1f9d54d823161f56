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
import shutil
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import FrameType

from dashboard.services.contract import Beat, Outcome, StoredFile
from workers import processes
from workers.capture import Log
from workers.child import TICK_S, Child, Gone, Start, Surroundings
from workers.ends import ERROR_FILE, RESULT_FILES, End, KilledBy, classify
from workers.heart import Heart, now_s
from workers.job import LOG_FILE, SUPERVISOR_LOCK, FileLock, Job, Spool, Tree
from workers.pairs import Bench, Launches
from workers.server import Server, local_server
from workers.trees import Trees, remove_trees

logger = logging.getLogger(__name__)

RESERVE_BYTES = 1 << 20
TRACE_FILES = "trace*.json.gz"
PARENT_IS_GONE = signal.SIGHUP
"""From the kernel. Not SIGTERM: a worker that hands a run back is not one that died, and just
after a kill -9 the parent's number still stands, so asking for it cannot tell the two apart."""


class Supervisor:
    """One benchmark, from its checkout and the wait for its device to its outcome."""

    def __init__(self, job: Job, spool: Spool, server: Server) -> None:
        self._job = job
        self._spool = spool
        self._told: KilledBy | None = None
        self._child: Child | None = None
        self._phase = "waiting"
        self._memory_limit = job.memory_bytes or processes.machine_memory_bytes() * 9 // 10
        self._log = Log(spool.folder / LOG_FILE)
        self._heart = Heart(server, (job.run_id, job.fence), job.timing, self._beat)
        self._trees = Trees(job, spool, self._run_child, self._log.recent, self._memory_limit)
        self._launches = self._session_launches(server)

    def _session_launches(self, server: Server) -> Launches | None:
        """What measures the pairs of a session; None for a run."""
        if self._job.session is None:
            return None
        bench = Bench(
            server=server,
            trees=self._trees,
            log=self._log,
            run_child=self._run_child,
            reason_to_end=self._reason_to_end,
            memory_bytes=self._memory_limit,
        )
        return Launches(self._job, self._job.session, self._spool, bench)

    def run(self) -> Outcome:
        """Everything; returns when no process of the run is left."""
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(PARENT_IS_GONE, self._on_signal)
        self._heart.start()
        outcome = self._trees.prepare() or self._measure()
        remove_trees(self._spool, self._job)
        self._heart.stop()
        self._heart.join(1.0)
        return self._with_files(outcome)

    def _measure(self) -> Outcome:
        """Once everything is laid out: wait for the device, then run the benchmark on it."""
        self._phase = "waiting"
        lock = FileLock(_in_made_folder(Path(self._job.device_lock)))
        busy = self._wait_for_device(lock)
        try:
            if busy is None and self._launches is not None:
                return self._launches.measure()
            return self._measure_once(busy)
        finally:
            lock.release()

    def _measure_once(self, busy: KilledBy | None) -> Outcome:
        """The benchmark of a run; `busy` says why the device was not to be had."""
        oom_before = processes.kernel_oom_kills()
        gone = Gone(wait_status=None, killed_by=busy)
        if busy is None:
            gone = self._run_child(self._start(), "preparing")
        return classify(
            End(
                wait_status=gone.wait_status,
                killed_by=gone.killed_by,
                limit_s=self._job.limit_s,
                memory_bytes=self._memory_limit,
                kernel_oom=processes.kernel_oom_kills() > oom_before,
                output=self._spool.output,
                log_tail=self._log.recent(),
            )
        )

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        told = KilledBy.ORPHANED if number == PARENT_IS_GONE else KilledBy.DRAIN
        self._told = self._told or told

    def _beat(self) -> Beat:
        child = self._child
        latest = (child.latest if child else None) or Beat(phase=self._phase)
        if self._phase == "pairs" and self._launches is not None:
            latest = self._launches.progress
        return replace(latest, log_tail=self._log.recent())

    def _reason_to_end(self) -> KilledBy | None:
        """A reason that does not depend on the benchmark."""
        if self._heart.superseded:
            return KilledBy.SUPERSEDED
        if self._heart.cancelled:
            return KilledBy.CANCEL
        if self._told is not None:
            return self._told
        return KilledBy.FENCE if self._heart.is_out_of_touch else None

    def _wait_for_device(self, lock: FileLock) -> KilledBy | None:
        """Until the lock is ours; else why not."""
        deadline_s = now_s() + self._job.timing.lock_wait_s
        while not lock.take():
            reason = self._reason_to_end()
            if reason is None and now_s() > deadline_s:
                reason = KilledBy.DEVICE
            if reason is not None:
                return reason
            time.sleep(TICK_S / 2)
        return None

    def _start(self) -> Start:
        self._spool.output.mkdir(mode=0o700, exist_ok=True)
        return Start(
            name="benchmark",
            command=self._job.command,
            folder=self._trees.folder(self._job.tree),
            environment=self._trees.environment(self._job.tree, os.environ),
            limit_s=self._job.limit_s,
            memory_bytes=self._memory_limit,
        )

    def _run_child(self, start: Start, phase: str) -> Gone:
        """Run one process to its end; every process it started is gone then."""
        around = Surroundings(
            marker=self._spool.marker,
            log=self._log,
            grace_s=self._job.timing.term_grace_s,
            reason_to_end=self._reason_to_end,
        )
        self._phase = phase
        self._child = child = Child(start, around)
        gone = child.run()
        for process in child.left:
            logger.error("process %d of run %d cannot be ended", process.pid, self._job.run_id)
        self._child = None
        return gone

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


def _write_outcome(spool: Spool, outcome: Outcome, reserve: Path, trees: tuple[Tree, ...]) -> None:
    """Leave the outcome; a full disk gets the reserve and the benchmark's scratch back."""
    try:
        spool.write_outcome(outcome)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        reserve.unlink(missing_ok=True)
        for scratch in ("tmp", "home", "work", *(tree.name for tree in trees)):
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
    _write_outcome(spool, outcome, reserve, job.trees)
    return 0


if __name__ == "__main__":
    sys.exit(main())
