"""Told to end by a signal: nothing half done stays, and no process. Loads no torch."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType

from profiler.bench.output import ERROR, sweep

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

AGAIN_S = 0.5
"""A signal's exception can get lost (in a destructor, in a callback from C++): until it has
come through it is raised again this often."""


class Told(BaseException):
    """A signal other than Ctrl-C asked this process to end; `number` says which."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextlib.contextmanager
def ends_cleanly(out: Path) -> Iterator[None]:
    """Let a signal unwind what runs inside, then remove what it left in `out`.

    Ctrl-C goes on as `KeyboardInterrupt`; after any other signal the process
    dies of it, as its parent expects. Once the sweep has begun, no signal interrupts it.
    """
    before = _listen()
    try:
        yield
    except (KeyboardInterrupt, Told) as told:
        deafen()
        # Ranks share the folder, and who started them looks after it.
        if not is_rank():
            sweep(out)
            # A rank that lost the others says so, but that is no failure of the run.
            (out / ERROR).unlink(missing_ok=True)
        if isinstance(told, Told):
            _die_of(told.number)
        raise
    finally:
        if before:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def deafen() -> None:
    """No signal interrupts this process from here on, so that it can end others or clean up."""
    if threading.current_thread() is threading.main_thread():
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)


def is_rank() -> bool:
    """Whether torchrun started this process."""
    return "RANK" in os.environ


def _listen() -> Mapping[signal.Signals, signal._HANDLER]:
    """Turn signals into exceptions from now on; the handlers of before, where that is possible."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    before = {number: signal.getsignal(number) for number in (*SIGNALS, signal.SIGALRM)}
    # What a parent told us to ignore (nohup) stays ignored.
    heard = {n: handler for n, handler in before.items() if handler not in (signal.SIG_IGN, None)}
    first: list[int] = []

    def on_signal(number: int, _frame: FrameType | None) -> None:
        first.append(number)
        signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
        raise KeyboardInterrupt if first[0] == signal.SIGINT else Told(first[0])

    for number in heard:
        signal.signal(number, on_signal)
    return heard


def _die_of(number: int) -> None:
    sys.stderr.write(f"daybreak: ended by {signal.Signals(number).name}\n")
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
