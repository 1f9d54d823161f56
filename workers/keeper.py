"""The keeper: rings for what waits in the outbox, sweeps leases, rings again for what nobody took.

`python -m workers.keeper`. Any number may run: every step is guarded in the
database, and a message that is sent twice is harmless.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

from django.conf import settings
from django.db import connection
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from workers.app import app
from workers.automation import SCHEDULES_S, SEND_S, Sender, tend_schedules
from workers.duty import process_name
from workers.fetch import Fetcher
from workers.server import local_server

logger = logging.getLogger(__name__)

BATCH = 50
PUBLISH_S = 0.2
GARBAGE_S = 3600.0
FETCH_S = 1.0
CHANGES_S = 5.0
PRUNE_S = 20.0
_PAUSE_LIMIT_S = 10.0


class Publisher:
    """Moves messages from the outbox to the broker."""

    def __init__(self) -> None:
        # The outbox does the waiting: one quick second try, not six seconds of them.
        quick = {"max_retries": 1, "interval_start": 0.1, "interval_max": 0.1}
        app.conf.broker_transport_options = {**app.conf.broker_transport_options, **quick}

    def publish_due(self) -> int:
        """One batch; how many the broker took."""
        from dashboard.services import outbox

        messages = outbox.due_messages(BATCH)
        taken: list[int] = []
        for number, message in enumerate(messages):
            try:
                app.send_task(
                    message.task,
                    args=[message.subject_id, message.attempt],
                    queue=message.queue,
                    retry=False,
                    ignore_result=True,
                )
            except (OperationalError, RedisError, OSError) as error:
                logger.warning("the broker takes no message: %s", error)
                outbox.postponed([left.outbox_id for left in messages[number:]], str(error))
                break
            taken.append(message.outbox_id)
        if taken:
            outbox.published(taken)
        return len(taken)


class Loop:
    """Calls `step` again and again in a thread of its own; errors slow it down, nothing ends it."""

    def __init__(
        self, name: str, step: Callable[[], object], every_s: float, stop: threading.Event
    ) -> None:
        self._name = name
        self._step = step
        self._every_s = every_s
        self._stop = stop
        self.thread = threading.Thread(target=self._run, name=name)

    def _run(self) -> None:
        pause_s = self._every_s
        while not self._stop.is_set():
            try:
                self._step()
                pause_s = self._every_s
            except Exception:  # the database may be busy or away
                logger.warning("%s failed; next try in %.1f s", self._name, pause_s, exc_info=True)
                connection.close()
                pause_s = min(_PAUSE_LIMIT_S, pause_s * 2)
            self._stop.wait(pause_s)
        connection.close()


def _sweep() -> None:
    from dashboard.services import sweep

    report = sweep.sweep()
    for what, ids in (("back in the queue", report.requeued), ("ended", report.ended)):
        for run_id in ids:
            logger.warning("run %d: %s", run_id, what)
    if report.extended_s:
        logger.warning("nobody swept for %.0f s: leases extended", report.extended_s)


def _reconcile() -> None:
    from dashboard.services import outbox

    count = outbox.republish_unclaimed()
    if count:
        logger.debug("rang again for %d that nobody took", count)


def _collect_garbage() -> None:
    from dashboard.services import artifacts

    count = artifacts.collect_garbage()
    if count:
        logger.info("removed %d stored files that nothing names", count)


def _bisect() -> None:
    from dashboard.services import bisect_steps

    bisect_steps.advance_all()


def _tend_changes() -> None:
    from dashboard.services import changes

    count = changes.tend_changes()
    if count:
        logger.debug("tended %d histories and changes", count)


def _prune() -> None:
    from dashboard.services import retention

    done = retention.tick()
    if done is not None and done.files:
        logger.info("removed %d stored files, %d bytes, by policy", done.files, done.size_bytes)


def main() -> int:
    """Until SIGTERM or SIGINT."""
    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    server = local_server()
    name = process_name()
    scale = settings.TIME_SCALE
    loops = [
        Loop("publish", Publisher().publish_due, PUBLISH_S, stop),
        Loop("sweep", _sweep, settings.SWEEP_S, stop),
        Loop("reconcile", _reconcile, settings.RECONCILE_S / 2, stop),
        Loop("garbage", _collect_garbage, GARBAGE_S, stop),
        Loop("prune", _prune, PRUNE_S, stop),
        Loop("fetch", Fetcher(stop).step, FETCH_S, stop),
        Loop("schedules", tend_schedules, SCHEDULES_S / scale, stop),
        Loop("announcements", Sender(stop).step, SEND_S / scale, stop),
        Loop("bisect", _bisect, FETCH_S, stop),
        Loop("changes", _tend_changes, CHANGES_S / settings.TIME_SCALE, stop),
        Loop(
            "presence",
            lambda: server.beat(name, "keeper", platform="", detail=""),
            settings.HEARTBEAT_S,
            stop,
        ),
    ]
    for loop in loops:
        loop.thread.start()
    stop.wait()
    for loop in loops:
        loop.thread.join()
    server.farewell(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
