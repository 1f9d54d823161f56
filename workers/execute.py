"""The worker's side of a run: claim it, start its supervisor, deliver its outcome."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

from dashboard import environ
from dashboard.services.contract import Claim, Outcome, WorkerIdentity
from dashboard.services.events import platform_queue
from profiler import spec as specs
from profiler.errors import UserError
from profiler.types import RunSpec
from workers.delivery import Delivery, Janitor, end_marked
from workers.duty import Places
from workers.environment import profiler_command
from workers.job import Job, Spool, Tree, make_owned
from workers.pairs import BASELINE, CANDIDATE, PROFILE_SPEC
from workers.server import Server
from workers.trees import CHECKOUT_LIMIT_S

logger = logging.getLogger(__name__)

FREE_BYTES_FLOOR = 1 << 29
"""A worker with less room than this claims nothing."""

TREE = "tree"
"""The folder of a spool in which the commit of its run lies."""

_POLL_S = 0.1
_BACKSTOP_S = 300.0
_DRAIN_S = 30.0
_ROOT = Path(__file__).resolve().parent.parent


class RunDuty:
    """Benchmarks of one platform, one at a time."""

    kind = "worker"

    def __init__(
        self, server: Server, identity: WorkerIdentity, places: Places, stop: threading.Event
    ) -> None:
        self._server = server
        self._identity = identity
        self._places = places
        self._stop = stop
        self._delivery = Delivery(server, places.timing, stop)
        self._janitor = Janitor(places.spool, self._delivery)

    @property
    def platform(self) -> str:
        return self._identity.platform

    @property
    def queue(self) -> str:
        return platform_queue(self.platform)

    def next(self) -> tuple[int, int] | None:
        """A run that could be claimed now."""
        waiting = self._server.next_runs(self.platform, 1)
        return waiting[0] if waiting else None

    def handle(self, subject_id: int, attempt: int) -> bool:
        """Claim and run it; False when it was not to be had."""
        if self._stop.is_set() or not self._has_room():
            return False
        claim = self._server.claim(subject_id, attempt, self._identity)
        if claim is None:
            logger.info("run %d attempt %d is not to be had", subject_id, attempt)
            return False
        spool = Spool.of(self._places.spool, claim.run_id, claim.fence)
        owner = make_owned(spool.folder)
        try:
            outcome = self._outcome_of(claim, spool)
            self._delivery.deliver(spool, outcome, patience_s=self._places.timing.self_fence_s)
        finally:
            owner.release()
        return True

    def tidy(self) -> None:
        """See to what earlier workers of this host left behind."""
        self._janitor.clean()

    def _has_room(self) -> bool:
        self._places.spool.mkdir(mode=0o700, parents=True, exist_ok=True)
        free = shutil.disk_usage(self._places.spool).free
        if free < FREE_BYTES_FLOOR:
            logger.error("only %d MiB free in %s: no run is taken", free >> 20, self._places.spool)
        return free >= FREE_BYTES_FLOOR

    def _outcome_of(self, claim: Claim, spool: Spool) -> Outcome:
        """Run it; whatever goes wrong on this side is an outcome too."""
        try:
            spec = specs.parse(claim.spec)
            (spool.folder / "spec.json").write_bytes(specs.canonical(spec))
            if claim.session:
                profiled = replace(spec, profiled_steps=claim.session.profiled_steps)
                (spool.folder / PROFILE_SPEC).write_bytes(specs.canonical(profiled))
            job = self._job(claim, spool, spec)
            spool.write_job(job)
            outcome = self._supervise(job, spool)
        except UserError as error:
            outcome = Outcome(
                state="failed", failure_kind=error.kind, message=error.message, hint=error.hint
            )
        except OSError as error:
            logger.exception("run %d could not be started", claim.run_id)
            reason = error.strerror or str(error)
            outcome = _fault(f"The worker could not start it: {reason}")
        if spool.read_outcome() is None:
            spool.write_outcome(outcome)
        return outcome

    def _job(self, claim: Claim, spool: Spool, spec: RunSpec) -> Job:
        command = _command(spool.folder / "spec.json", spool.output)
        return Job(
            run_id=claim.run_id,
            attempt=claim.attempt,
            fence=claim.fence,
            command=tuple(command),
            limit_s=claim.limit_s,
            memory_bytes=claim.memory_bytes,
            device_lock=str(self._places.locks / f"{_device_name(spec.device)}.lock"),
            parent_pid=os.getpid(),
            timing=self._places.timing,
            var_dir=str(self._places.var_dir),
            trees=_trees(claim),
            tree=TREE if claim.source else "",
            session=claim.session,
        )

    def _supervise(self, job: Job, spool: Spool) -> Outcome:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "workers.supervisor", str(spool.folder)],
            cwd=_ROOT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._wait(supervisor, job)
        outcome = spool.read_outcome()
        if outcome is not None:
            return outcome
        logger.error("the supervisor of run %d ended without an outcome", job.run_id)
        end_marked(spool.marker)
        return _fault("The supervisor died", counts=not self._stop.is_set())

    def _wait(self, supervisor: subprocess.Popen[bytes], job: Job) -> None:
        """Until it ends; a stop of the worker stops it, an endless one is killed."""
        deadline = time.monotonic() + job.timing.lock_wait_s + job.limit_s + _BACKSTOP_S
        if job.session:
            deadline += job.limit_s * (2 * (job.session.most - job.session.done) + 2)
        deadline += sum(CHECKOUT_LIMIT_S + tree.source.build_limit_s for tree in job.trees)
        draining = False
        while supervisor.poll() is None:
            if self._stop.is_set() and not draining:
                draining = True
                supervisor.terminate()
                deadline = time.monotonic() + _DRAIN_S
            if time.monotonic() > deadline:
                supervisor.kill()
                supervisor.wait()
                return
            time.sleep(_POLL_S)


def _trees(claim: Claim) -> tuple[Tree, ...]:
    """The commits that are checked out: one for a run, both sides for a session."""
    if claim.session:
        sides = {BASELINE: claim.session.baseline, CANDIDATE: claim.session.candidate}
        return tuple(Tree(name=side, source=s, side=side) for side, s in sides.items())
    return (Tree(name=TREE, source=claim.source),) if claim.source else ()


def _fault(message: str, *, counts: bool = True) -> Outcome:
    return Outcome(
        state="requeue", failure_kind="worker_fault", message=message, hint="", counts=counts
    )


def _command(spec: Path, output: Path) -> list[str]:
    """`python -m profiler run`, or what BENCHMARK_COMMAND says with {spec} and {out} filled in."""
    template = environ.text("BENCHMARK_COMMAND")
    if not template:
        return profiler_command("run", str(spec), "--out", str(output))
    names = {"{spec}": str(spec), "{out}": str(output)}
    return [names.get(word, word) for word in shlex.split(template)]


def _device_name(device: str) -> str:
    """`cuda` means `cuda:0`, so both take the same lock."""
    return device if device == "cpu" or ":" in device else f"{device}:0"
