"""A worker process: `python -m workers.worker run|ingest`.

One process with one slot. Ending it by kill -9 ends its supervisor and the
benchmark with it; SIGTERM hands the run back and leaves.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import threading
import warnings
from queue import Empty

from celery import bootsteps, signals
from celery.platforms import SecurityWarning
from celery.worker.consumer import Consumer
from celery.worker.consumer.tasks import Tasks
from django.conf import settings

from dashboard.services.contract import WorkerIdentity
from workers.app import app
from workers.duty import Duty, places, process_name
from workers.execute import RunDuty
from workers.heart import now_s
from workers.ingest import ReadLimits, TraceDuty
from workers.server import Server, local_server
from workers.slot import Slot, install

logger = logging.getLogger(__name__)

POLL_S = 30.0
SILENCE_LIMIT_S = 120.0
_JOIN_S = 45.0


class Watchdog:
    """Ends an idle process that has not heard from the broker for long.

    Consumers that are connected but consume nothing have a history; whoever
    started this process starts it again. A process at work is left alone.
    """

    def __init__(self, slot: Slot, limit_s: float) -> None:
        self._slot = slot
        self._limit_s = limit_s
        self._answered_s = now_s()

    def broker_answered(self) -> None:
        """The broker gave a message, or said that there is none."""
        self._answered_s = now_s()

    def is_overdue(self) -> bool:
        if self._slot.is_busy:
            self._answered_s = now_s()
        return now_s() - self._answered_s > self._limit_s

    def watch(self, stop: threading.Event) -> None:
        """Until the worker stops; leaves the process when overdue."""
        while not stop.wait(min(5.0, self._limit_s / 4)):
            if self.is_overdue() and self._slot.close():
                logger.error("no answer of the broker for %g s: leaving", self._limit_s)
                os._exit(1)


class AnswerMark(bootsteps.StartStopStep):  # type: ignore[misc]
    """Tells the watchdog of every answer to the consumer's question for a message.

    The transport asks once a second, so silence means that it does not ask, or
    that nobody answers. A message needs no mark: it makes the slot busy.
    """

    requires = (Tasks,)
    watchdog: Watchdog | None = None

    def start(self, parent: Consumer) -> None:
        """Put ourselves between the transport and its reading of answers."""
        handlers = parent.task_consumer.channel.handlers
        read = handlers["BRPOP"]

        def read_and_tell() -> object:
            try:
                return read()
            except Empty:
                self._tell()
                raise

        handlers["BRPOP"] = read_and_tell

    def _tell(self) -> None:
        if self.watchdog is not None:
            self.watchdog.broker_answered()


class Presence:
    """Says every heartbeat that this process is alive and what it does."""

    def __init__(self, server: Server, name: str, slot: Slot) -> None:
        self._server = server
        self._name = name
        self._slot = slot

    def keep(self, stop: threading.Event) -> None:
        duty = self._slot.duty
        while not stop.is_set():
            try:
                self._server.beat(
                    self._name, duty.kind, platform=duty.platform, detail=self._slot.doing or "idle"
                )
            except Exception:
                logger.warning("the database cannot be told that we live", exc_info=True)
            stop.wait(settings.HEARTBEAT_S)
        self._server.farewell(self._name)
        self._server.hang_up()


def make_duty(kind: str, name: str, stop: threading.Event) -> Duty:
    """The work of this process."""
    server = local_server()
    identity = WorkerIdentity(name=name, platform=settings.PLATFORM)
    if kind == "run":
        return RunDuty(server, identity, places(), stop)
    limits = ReadLimits(wall_s=settings.INGEST_LIMIT_S, memory_bytes=settings.INGEST_MEMORY_BYTES)
    return TraceDuty(server, identity, places(), limits, stop=stop)


def tidy_for_ever(duty: Duty, stop: threading.Event) -> None:
    """Now, and then whenever a lease may have run out."""
    while not stop.is_set():
        try:
            duty.tidy()
        except Exception:
            logger.warning("tidying failed; it is tried again", exc_info=True)
        stop.wait(settings.LEASE_S / 2)


def _celery_arguments(queue: str, name: str) -> list[str]:
    """One thread: killing this process kills everything it does."""
    return [
        "--quiet",
        "worker",
        f"--queues={queue}",
        f"--hostname={name}",
        "--pool=threads",
        "--concurrency=1",
        "--without-gossip",
        "--without-mingle",
        "--without-heartbeat",
        f"--loglevel={os.environ.get('LOG_LEVEL', 'INFO')}",
    ]


def main(arguments: list[str] | None = None) -> int:
    """Command line of `python -m workers.worker`."""
    parser = argparse.ArgumentParser(prog="python -m workers.worker", description=__doc__)
    parser.add_argument("kind", choices=("run", "ingest"))
    chosen = parser.parse_args(arguments)
    # Celery warns root of pickled messages; ours are JSON only.
    warnings.filterwarnings("ignore", category=SecurityWarning)
    stop = threading.Event()
    name = process_name()
    slot = Slot(make_duty(chosen.kind, name, stop), stop)
    install(slot)
    AnswerMark.watchdog = Watchdog(slot, SILENCE_LIMIT_S)
    app.steps["consumer"].add(AnswerMark)
    signals.worker_shutting_down.connect(lambda **_: stop.set(), weak=False)
    threads = [
        threading.Thread(target=Presence(local_server(), name, slot).keep, args=(stop,)),
        threading.Thread(target=slot.poll_for_ever, args=(POLL_S / settings.TIME_SCALE,)),
        threading.Thread(target=tidy_for_ever, args=(slot.duty, stop)),
        threading.Thread(target=AnswerMark.watchdog.watch, args=(stop,), daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        app.worker_main(_celery_arguments(slot.duty.queue, name))
    finally:
        stop.set()
        for thread in threads:
            thread.join(_JOIN_S)
    return 0


if __name__ == "__main__":
    sys.exit(main())
