"""Commits made ready to run, on the supervisor's side: laid out, built, kept.

All of it happens before the device is locked, so that a build never keeps a
device idle.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import msgspec

from dashboard.services.contract import Outcome
from profiler.errors import printable
from profiler.types import Failure
from profiler.units import duration
from workers.child import Gone, Start
from workers.ends import (
    HINT_LIMIT,
    MESSAGE_LIMIT,
    End,
    KilledBy,
    classify,
    last_words,
    was_disturbed,
)
from workers.environment import benchmark_environment
from workers.job import Job, Spool, Tree, marker_variable

CHECKOUT_LIMIT_S = 1800.0
_KEEP_LIMIT_S = 600.0
_PASSED_ON = ("FETCH_LIMIT_S", "REPOSITORY_LIMIT_BYTES", "BUILD_CACHE_BYTES", "PATH")
_INFRASTRUCTURE = "no_repository"

Runner = Callable[[Start, str], Gone]
"""Runs a process to its end; the text is the phase that the page shows meanwhile."""


class Trees:
    """The checked-out trees of one attempt."""

    def __init__(
        self, job: Job, spool: Spool, runner: Runner, words: Callable[[], str], memory_bytes: int
    ) -> None:
        self._job = job
        self._spool = spool
        self._run = runner
        self._words = words
        self._memory_bytes = memory_bytes

    def prepare(self) -> Outcome | None:
        """Every tree of the job; the outcome when one of them cannot be made."""
        for tree in self._job.trees:
            problem = self._lay_out(tree) or self._build(tree)
            if problem is not None:
                return _of_side(tree, problem)
        return None

    def folder(self, name: str) -> Path:
        """Where a process of this tree starts; one without a tree has a folder of its own."""
        folder = self._spool.folder / (name or "work")
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def environment(self, name: str, ours: Mapping[str, str]) -> dict[str, str]:
        """The variables of a process that runs in a tree."""
        marker = marker_variable(self._spool.marker)
        tree = next((tree for tree in self._job.trees if tree.name == name), None)
        paths = tree.source.import_paths if tree else ()
        folders = [self._spool.folder / name / path for path in paths]
        private = self._private(tree)
        return benchmark_environment(ours, private, marker, import_paths=folders)

    def _private(self, tree: Tree | None) -> Path:
        """Where home and caches lie: each side has its own, so that none warms the other's."""
        if tree is None or not tree.side:
            return self._spool.folder
        folder = self._spool.folder / f"{tree.name}.private"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def _lay_out(self, tree: Tree) -> Outcome | None:
        gone = self._call("lay-out", tree, CHECKOUT_LIMIT_S)
        if was_disturbed(gone.killed_by):
            return self._ended(gone, CHECKOUT_LIMIT_S)
        told = _told(self._spool.folder / f"{tree.name}.error.json")
        if told is not None:
            again = told.kind == _INFRASTRUCTURE
            return _outcome(told, state="requeue" if again else "failed")
        if gone.wait_status == 0:
            return None
        if gone.killed_by is KilledBy.TIME:
            why = f"not done after {duration(CHECKOUT_LIMIT_S * 1e9)}"
        else:
            why = last_words(self._words()) or "it ended without a word"
        failure = Failure(
            kind="checkout_failed",
            message=f"The commit's files could not be laid out: {why}",
            hint="see the log of the run",
        )
        return _outcome(failure)

    def _build(self, tree: Tree) -> Outcome | None:
        source = tree.source
        if not source.build_command or (self._spool.folder / f"{tree.name}.built").exists():
            return None
        start = Start(
            name="build",
            command=source.build_command,
            folder=self._spool.folder / tree.name,
            environment=self.environment(tree.name, os.environ),
            limit_s=source.build_limit_s,
            memory_bytes=source.build_memory_bytes or self._memory_bytes,
        )
        gone = self._run(start, "building")
        if was_disturbed(gone.killed_by):
            return self._ended(gone, source.build_limit_s)
        if gone.wait_status == 0:
            self._keep(tree)
            return None
        return self._build_failure(tree, gone)

    def _build_failure(self, tree: Tree, gone: Gone) -> Outcome:
        limit = duration(tree.source.build_limit_s * 1e9)
        if gone.killed_by is KilledBy.TIME:
            failure = Failure(
                kind="build_timed_out",
                message=f"The build of {tree.source.sha[:10]} was still running after {limit}",
                hint="give the repository's build more time, or see its log for what hangs",
            )
            return _outcome(failure, state="timed_out")
        if gone.killed_by is KilledBy.MEMORY:
            why = "it held more memory than it may"
        else:
            code = os.waitstatus_to_exitcode(gone.wait_status or 0)
            said = last_words(self._words())
            why = f"exit code {code}: {said}" if said else f"exit code {code}"
        failure = Failure(
            kind="build_failed",
            message=f"The build of {tree.source.sha[:10]} failed, {why}",
            hint="the log of the run holds its words",
        )
        return _outcome(failure)

    def _keep(self, tree: Tree) -> None:
        """A build that cannot be kept is only built again the next time."""
        self._call("keep", tree, _KEEP_LIMIT_S)

    def _call(self, action: str, tree: Tree, limit_s: float) -> Gone:
        words = ("-m", "workers.checkout", action, str(self._spool.folder), tree.name)
        passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        start = Start(
            name="checkout",
            command=(sys.executable, *words),
            folder=self._spool.folder,
            environment={**self.environment("", os.environ), **passed_on},
            limit_s=limit_s,
            memory_bytes=self._memory_bytes,
        )
        return self._run(start, "checkout")

    def _ended(self, gone: Gone, limit_s: float) -> Outcome:
        """Cancelled, drained or orphaned: the same words as during a measurement."""
        return classify(
            End(
                wait_status=gone.wait_status,
                killed_by=gone.killed_by,
                limit_s=limit_s,
                memory_bytes=self._memory_bytes,
                kernel_oom=False,
                output=self._spool.output,
                log_tail=self._words(),
            )
        )


def remove_trees(spool: Spool, job: Job) -> None:
    """Give the room of the trees back before the outcome waits for its delivery."""
    for tree in job.trees:
        shutil.rmtree(spool.folder / tree.name, ignore_errors=True)


def _told(path: Path) -> Failure | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Failure)
    except FileNotFoundError:
        return None


def _outcome(failure: Failure, *, state: str = "failed") -> Outcome:
    return Outcome(
        state=state,
        failure_kind=failure.kind,
        message=printable(failure.message, MESSAGE_LIMIT),
        hint=printable(failure.hint, HINT_LIMIT),
    )


def _of_side(tree: Tree, outcome: Outcome) -> Outcome:
    """Say which of several trees it was."""
    if not tree.side or outcome.failure_kind in {"cancelled", "worker_fault", "worker_lost"}:
        return outcome
    message = printable(f"The {tree.side}: {outcome.message}", MESSAGE_LIMIT)
    return replace(outcome, message=message)
