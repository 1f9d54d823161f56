"""The launches of a session: one side, then the other, each in a fresh process.

Runs below a supervisor that holds the device. Every launch is told to the
server as soon as it has ended, so that a lost worker costs one pair at most.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from dashboard.services.contract import (
    Beat,
    Launched,
    Outcome,
    PlannedPair,
    Rung,
    Session,
    StoredFile,
    SupersededError,
)
from workers import processes
from workers.capture import Log
from workers.child import Gone, Start
from workers.ends import RESULT_FILES, End, KilledBy, classify, was_disturbed
from workers.environment import reader_environment
from workers.job import Job, Spool, marker_variable
from workers.server import Server
from workers.trees import Runner, Trees

logger = logging.getLogger(__name__)

BASELINE, CANDIDATE = "baseline", "candidate"
FAILURES_LIMIT = 3
"""A side that fails this often in a row, and never worked, is not tried further."""

LAUNCHES_FOLDER = "launches"
PROFILE_SPEC = "profile.json"
TRACE_FILE = "trace.json.gz"
DIFFERENCE_FILE = "difference.json.gz"
EXPLAIN_LIMIT_S = 600.0
_RETRY_S = 1.0
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What the supervisor lends to its launches."""

    server: Server
    trees: Trees
    log: Log
    run_child: Runner
    reason_to_end: Callable[[], KilledBy | None]
    memory_bytes: int


class _EndedError(Exception):
    """The session cannot go on; carries the outcome that says why."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


class Launches:
    """Measures the pairs of a session, rung after rung while the verdict is open."""

    def __init__(self, job: Job, session: Session, spool: Spool, bench: Bench) -> None:
        self._job = job
        self._session = session
        self._spool = spool
        self._bench = bench
        self._done = session.done
        self._total = session.total
        self._worked: set[str] = set()
        self._failed_in_a_row = {BASELINE: 0, CANDIDATE: 0}

    @property
    def progress(self) -> Beat:
        """Pairs so far, of those that are wanted."""
        return Beat(phase="pairs", step=self._done, steps=self._total)

    def measure(self) -> Outcome:
        """Every pair that is planned, then the profiled launches; whatever happens, an outcome."""
        try:
            self._climb()
            if self._session.profiled_steps and self._both_may_work():
                for side in (BASELINE, CANDIDATE):
                    self._launch(None, side)
                self._explain()
        except _EndedError as ended:
            return ended.outcome
        return Outcome(state="succeeded")

    def _climb(self) -> None:
        """The pairs of this rung, then those of every further one that the server asks for."""
        pairs = self._session.pairs
        while True:
            for pair in pairs:
                if self._is_hopeless():
                    return
                self._measure_pair(pair)
                self._done += 1
            rung = self._tell(self._next_rung)
            if not rung.pairs:
                return
            pairs, self._total = rung.pairs, rung.total

    def _next_rung(self) -> Rung:
        return self._bench.server.climb(self._job.run_id, self._job.fence)

    def _both_may_work(self) -> bool:
        """Whether recording both sides is worth trying; earlier sessions are not known here."""
        return len(self._worked) == 2 or (not self._is_hopeless() and self._session.done > 0)

    def _is_hopeless(self) -> bool:
        for side, failures in self._failed_in_a_row.items():
            if failures >= FAILURES_LIMIT and side not in self._worked and not self._session.done:
                self._bench.log.note(f"the {side} failed {failures} times and never worked")
                return True
        return False

    def _measure_pair(self, pair: PlannedPair) -> None:
        """Both sides, also when the first fails: a pair without one says which of them it was."""
        sides = (BASELINE, CANDIDATE) if pair.order == "AB" else (CANDIDATE, BASELINE)
        for side in sides:
            self._launch(pair, side)

    def _launch(self, pair: PlannedPair | None, side: str) -> bool:
        """One process; whether it left a result."""
        name = f"{pair.number + 1}-{side}" if pair else f"profiled-{side}"
        folder = self._spool.folder / LAUNCHES_FOLDER / name
        folder.mkdir(mode=0o700, parents=True)
        self._bench.log.note(f"launch {name}")
        oom_before = processes.kernel_oom_kills()
        begun_ns = time.monotonic_ns()
        gone = self._bench.run_child(self._start(folder, side, profiled=pair is None), "pairs")
        took_ns = time.monotonic_ns() - begun_ns
        outcome = self._outcome(gone, folder, oom=processes.kernel_oom_kills() > oom_before)
        if was_disturbed(gone.killed_by):
            raise _EndedError(outcome)
        worked = outcome.state == "succeeded"
        launched = Launched(
            pair=pair,
            side=side,
            took_ns=took_ns,
            failure_kind="" if worked else outcome.failure_kind,
            message="" if worked else outcome.message,
            files=_files(folder, profiled=pair is None) if worked else (),
        )
        store = self._bench.server.store_launch
        self._tell(lambda: store(self._job.run_id, self._job.fence, launched))
        if pair is not None:
            shutil.rmtree(folder, ignore_errors=True)
            self._count(side, worked=worked)
        return worked

    def _count(self, side: str, *, worked: bool) -> None:
        self._failed_in_a_row[side] = 0 if worked else self._failed_in_a_row[side] + 1
        if worked:
            self._worked.add(side)

    def _start(self, folder: Path, side: str, *, profiled: bool) -> Start:
        places = {str(self._spool.output): str(folder)}
        if profiled:
            spec = self._spool.folder / "spec.json"
            places[str(spec)] = str(spec.with_name(PROFILE_SPEC))
        return Start(
            name="benchmark",
            command=tuple(places.get(word, word) for word in self._job.command),
            folder=self._bench.trees.folder(side),
            environment=self._bench.trees.environment(side, os.environ),
            limit_s=self._job.limit_s,
            memory_bytes=self._bench.memory_bytes,
        )

    def _outcome(self, gone: Gone, folder: Path, *, oom: bool) -> Outcome:
        said = self._bench.log.recent().rpartition("[supervisor] launch ")[2]
        return classify(
            End(
                wait_status=gone.wait_status,
                killed_by=gone.killed_by,
                limit_s=self._job.limit_s,
                memory_bytes=self._bench.memory_bytes,
                kernel_oom=oom,
                output=folder,
                log_tail=said,
            )
        )

    def _explain(self) -> None:
        """Compare both traces; a trace that cannot be read costs the explanation, not the pairs."""
        places = self._spool.folder / LAUNCHES_FOLDER
        traces = [places / f"profiled-{side}" / TRACE_FILE for side in (BASELINE, CANDIDATE)]
        out = places / DIFFERENCE_FILE
        if not all(path.is_file() and not path.is_symlink() for path in traces):
            self._bench.log.note("one side left no trace: what changed is not known")
            return
        words = ("-m", "workers.difference", *map(str, traces), str(out))
        marker = marker_variable(self._spool.marker)
        start = Start(
            name="comparison of the traces",
            command=(sys.executable, *words),
            folder=places,
            environment=reader_environment(places, marker),
            limit_s=EXPLAIN_LIMIT_S,
            memory_bytes=self._bench.memory_bytes,
        )
        gone = self._bench.run_child(start, "pairs")
        if was_disturbed(gone.killed_by):
            raise _EndedError(self._outcome(gone, places, oom=False))
        if gone.wait_status == 0 and out.is_file():
            file = StoredFile(name=DIFFERENCE_FILE, path=out)
            store = self._bench.server.store_difference
            self._tell(lambda: store(self._job.run_id, self._job.fence, file))

    def _tell(self, call: Callable[[], Answer]) -> Answer:
        """Until the server has answered; the self-fence is for one that is away for long."""
        while True:
            try:
                return call()
            except SupersededError:
                raise _EndedError(self._killed(KilledBy.SUPERSEDED)) from None
            except Exception:  # the database may be busy or away
                logger.warning("a launch of run %d waits", self._job.run_id, exc_info=True)
                reason = self._bench.reason_to_end()
                if reason is not None:
                    raise _EndedError(self._killed(reason)) from None
                time.sleep(_RETRY_S)

    def _killed(self, by: KilledBy) -> Outcome:
        gone = Gone(wait_status=None, killed_by=by)
        return self._outcome(gone, self._spool.output, oom=False)


def _files(folder: Path, *, profiled: bool) -> tuple[StoredFile, ...]:
    """What is kept of a launch: its documents, or the trace of the profiled one."""
    names = (TRACE_FILE,) if profiled else RESULT_FILES
    paths = [folder / name for name in names]
    return tuple(
        StoredFile(name=path.name, path=path)
        for path in paths
        if path.is_file() and not path.is_symlink()
    )
