"""The heartbeat of a run: keeps the lease, hears of a cancellation, knows when to give up."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from dashboard.services.contract import Beat, SupersededError
from workers.job import Timing
from workers.server import Server

logger = logging.getLogger(__name__)

_RETRY_S = 1.0


def now_s() -> float:
    """Seconds that also pass while the machine sleeps, untouched by changes of the clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Heart(threading.Thread):
    """Beats in a thread of its own, so that neither a flood nor a full core delays it."""

    def __init__(
        self,
        server: Server,
        run: tuple[int, int],
        timing: Timing,
        beat: Callable[[], Beat],
        *,
        delay_s: float = 0.0,
    ) -> None:
        super().__init__(name="heart", daemon=True)
        self.cancelled = False
        self.superseded = False
        self._server = server
        self._run = run
        self._timing = timing
        self._beat = beat
        self._delay_s = delay_s
        self._sent = Beat()
        self._last_ok_s = now_s()
        self._stopped = threading.Event()

    @property
    def is_out_of_touch(self) -> bool:
        """No answer for so long that somebody else may soon own the run."""
        return now_s() - self._last_ok_s > self._timing.self_fence_s

    def stop(self) -> None:
        self._stopped.set()

    def run(self) -> None:
        try:
            self._stopped.wait(self._delay_s)
            self._beat_until_stopped()
        finally:
            self._server.hang_up()

    def _beat_until_stopped(self) -> None:
        due_s = 0.0
        while not self._stopped.is_set() and not self.superseded:
            beat = self._beat()
            if now_s() >= due_s or beat.phase != self._sent.phase:
                due_s = now_s() + self._send(beat)
            elif beat != self._sent and now_s() >= due_s - self._timing.heartbeat_s * 0.8:
                due_s = now_s() + self._send(beat)  # news travel sooner than mere life
            self._stopped.wait(min(0.2, self._timing.heartbeat_s / 4))

    def _send(self, beat: Beat) -> float:
        """Send one beat; seconds until the next is due."""
        try:
            answer = self._server.heartbeat(*self._run, beat)
        except SupersededError:
            self.superseded = True
            return 0.0
        except Exception:  # the server may be away for a while: the self-fence ends that
            logger.warning("heartbeat of run %d failed", self._run[0], exc_info=True)
            return min(_RETRY_S, self._timing.heartbeat_s)
        self._sent = beat
        self._last_ok_s = now_s()
        self.cancelled = self.cancelled or answer.cancel
        return self._timing.heartbeat_s
