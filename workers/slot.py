"""The one place of a worker process: messages and the poll of the database share it."""

from __future__ import annotations

import logging
import random
import threading

from workers.duty import Duty

logger = logging.getLogger(__name__)


class Slot:
    """Lets one piece of work in at a time, whoever rings."""

    def __init__(self, duty: Duty, stop: threading.Event) -> None:
        self.duty = duty
        self.doing = ""
        self._stop = stop
        self._lock = threading.Lock()

    @property
    def is_busy(self) -> bool:
        return self._lock.locked()

    def close(self) -> bool:
        """Let nothing in any more; False when something is inside."""
        return self._lock.acquire(blocking=False)

    def handle(self, subject_id: int, attempt: int) -> bool:
        """Wait for the place, then do it; an error is logged, the poll will come back to it."""
        with self._lock:
            return self._do(subject_id, attempt)

    def poll(self) -> bool:
        """Look for work that no message told of; False when there was none or the place is taken.

        Messages get lost, and a broker may be away for long.
        """
        if not self._lock.acquire(blocking=False):
            return False
        try:
            waiting = self.duty.next()
            return waiting is not None and self._do(*waiting)
        except Exception:
            logger.warning("the database cannot be asked for work", exc_info=True)
            return False
        finally:
            self._lock.release()

    def poll_for_ever(self, every_s: float) -> None:
        """Until the worker stops."""
        while not self._stop.wait(every_s * random.uniform(0.5, 1.0)):
            while self.poll() and not self._stop.is_set():
                logger.info("done with work that no message told of")

    def _do(self, subject_id: int, attempt: int) -> bool:
        if self._stop.is_set():
            return False
        self.doing = f"{self.duty.kind} {subject_id}"
        try:
            return self.duty.handle(subject_id, attempt)
        except Exception:  # a thread of the worker must outlive whatever one job does
            logger.exception("%s failed", self.doing)
            return False
        finally:
            self.doing = ""


_current: list[Slot] = []


def install(slot: Slot) -> None:
    """Make `slot` the one of this process."""
    _current[:] = [slot]


def current_slot() -> Slot:
    """The slot of this process; only a worker has one."""
    return _current[0]
