"""One piece of work at a time, whoever rings, and no error that ends the worker."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest

from tests.workers.system import wait_for
from workers.slot import Slot


@dataclass
class Work:
    """A duty that notes what it does; `gate` holds it inside."""

    kind: str = "worker"
    platform: str = "cpu"
    queue: str = "platform.cpu"
    waiting: list[tuple[int, int]] = field(default_factory=list)
    done: list[tuple[int, int]] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)

    def next(self) -> tuple[int, int] | None:
        return self.waiting.pop(0) if self.waiting else None

    def handle(self, subject_id: int, attempt: int) -> bool:
        self.gate.wait()
        if subject_id < 0:
            raise RuntimeError("this one cannot be done")
        self.done.append((subject_id, attempt))
        return True

    def tidy(self) -> None:
        """Nothing is left behind."""


@pytest.fixture
def work() -> Work:
    work = Work()
    work.gate.set()
    return work


def test_it_does_what_a_message_asks(work: Work) -> None:
    slot = Slot(work, threading.Event())
    assert slot.handle(3, 1)
    assert (work.done, slot.doing, slot.is_busy) == ([(3, 1)], "", False)


def test_it_finds_work_that_no_message_told_of(work: Work) -> None:
    work.waiting.append((4, 2))
    slot = Slot(work, threading.Event())
    assert slot.poll()
    assert not slot.poll()
    assert work.done == [(4, 2)]


def test_it_outlives_an_error(work: Work, caplog: pytest.LogCaptureFixture) -> None:
    slot = Slot(work, threading.Event())
    assert not slot.handle(-1, 1)
    assert "worker -1 failed" in caplog.text
    assert slot.handle(1, 1)


def test_it_takes_nothing_more_when_told_to_stop(work: Work) -> None:
    stop = threading.Event()
    stop.set()
    assert not Slot(work, stop).handle(1, 1)
    assert work.done == []


def test_it_does_not_poll_while_at_work(work: Work) -> None:
    work.gate.clear()
    slot = Slot(work, threading.Event())
    thread = threading.Thread(target=slot.handle, args=(1, 1))
    thread.start()
    wait_for(lambda: slot.doing == "worker 1")
    work.waiting.append((2, 1))
    assert not slot.poll()
    assert not slot.close()
    work.gate.set()
    thread.join()
    assert slot.poll()
    assert work.done == [(1, 1), (2, 1)]


def test_it_lets_nothing_in_once_closed(work: Work) -> None:
    slot = Slot(work, threading.Event())
    work.waiting.append((1, 1))
    assert slot.close()
    assert not slot.poll()
    assert work.done == []
