"""Handing an attempt's end to the server, and cleaning up after attempts whose worker died."""

from __future__ import annotations

import logging
import random
import threading
import time
from pathlib import Path

from dashboard.services.contract import Beat, Outcome, SupersededError
from workers import processes
from workers.heart import Heart
from workers.job import (
    LOG_FILE,
    OUTCOME_FILE,
    OWNER_LOCK,
    SUPERVISOR_LOCK,
    FileLock,
    Spool,
    Timing,
    is_free,
    remove,
    remove_remains,
    spools,
)
from workers.server import Server

logger = logging.getLogger(__name__)

SPOOL_LIMIT_S = 24 * 3600
"""How long an end that the server does not take is kept."""

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 10.0
_MARKED_GRACE_S = 2.0
_TAIL_BYTES = 8 << 10


class Delivery:
    """Delivers outcomes and removes their spools."""

    def __init__(self, server: Server, timing: Timing, stop: threading.Event) -> None:
        self._server = server
        self._timing = timing
        self._stop = stop

    def deliver(self, spool: Spool, outcome: Outcome, patience_s: float) -> bool:
        """Until the server has it, or says it is nobody's any more; False after `patience_s`.

        The lease is kept meanwhile: copying a large trace takes its time.
        """
        beat = Beat(phase="uploading", log_tail=_tail(spool.folder / LOG_FILE))
        heart = Heart(
            self._server,
            spool.run_and_fence,
            self._timing,
            lambda: beat,
            delay_s=self._timing.heartbeat_s / 2,
        )
        heart.start()
        try:
            done = self._try_for(spool, outcome, patience_s)
        finally:
            heart.stop()
        if done:
            remove(spool.folder)
        return done

    def _try_for(self, spool: Spool, outcome: Outcome, patience_s: float) -> bool:
        deadline = time.monotonic() + patience_s
        pause_s = _FIRST_PAUSE_S
        run_id, fence = spool.run_and_fence
        while True:
            try:
                self._server.deliver(run_id, fence, outcome)
            except SupersededError:
                logger.info("run %d fence %d is superseded; its files are dropped", run_id, fence)
            except Exception:  # the database may be busy or away: the spool keeps the end
                logger.warning("the end of run %d is not delivered yet", run_id, exc_info=True)
                if time.monotonic() + pause_s > deadline or self._stop.wait(pause_s):
                    return False
                pause_s = min(_LONGEST_PAUSE_S, pause_s * 2) * random.uniform(0.8, 1.2)
                continue
            return True


class Janitor:
    """Looks after spools whose worker is gone: ends what still runs, delivers what is left."""

    def __init__(self, root: Path, delivery: Delivery) -> None:
        self._root = root
        self._delivery = delivery

    def clean(self) -> None:
        """One round; spools whose owner or supervisor lives are left alone."""
        remove_remains(self._root)
        for spool in spools(self._root):
            owner = FileLock(spool.folder / OWNER_LOCK)
            try:
                if owner.take() and is_free(spool.folder / SUPERVISOR_LOCK):
                    self._settle(spool)
            except FileNotFoundError:  # its owner finished and removed it meanwhile
                continue
            finally:
                owner.release()

    def _settle(self, spool: Spool) -> None:
        end_marked(spool.marker)
        outcome = spool.read_outcome()
        if outcome is None:
            outcome = Outcome(
                state="requeue", failure_kind="worker_lost", message="The worker was killed"
            )
            spool.write_outcome(outcome)
        age_s = time.time() - (spool.folder / OUTCOME_FILE).stat().st_mtime
        if not self._delivery.deliver(spool, outcome, patience_s=0) and age_s > SPOOL_LIMIT_S:
            logger.error("%s could not be delivered for a day; dropped", spool.folder.name)
            remove(spool.folder)


def end_marked(marker: str) -> None:
    """End every process that carries `marker`; returns when they are gone."""
    left = processes.end_all(lambda: processes.marked(marker), _MARKED_GRACE_S, _nothing)
    for process in left:
        logger.error("process %d of run %s cannot be ended", process.pid, marker)


def _nothing() -> None:
    """These processes are not our children: there is nothing to reap."""


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            return file.read().decode("utf-8", "ignore")
    except FileNotFoundError:
        return ""
