"""Real runs that are told to end while they measure."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil
import pytest

from profiler.bench.ending import Told, ends_cleanly
from profiler.bench.output import staging, sweep
from tests.profiler.bench.scene import small_spec

TOLD = [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGHUP, -signal.SIGHUP), (signal.SIGINT, 130)]


def start(folder: Path, **fields: object) -> subprocess.Popen[bytes]:
    """A run without end, in a group of its own, started as a person starts it."""
    spec = folder / "spec.json"
    spec.write_bytes(msgspec.json.encode(small_spec("training", iterations=10_000, **fields)))
    command = [sys.executable, "-m", "profiler", "run", str(spec), "--out", str(folder / "out")]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )


def told_once_timed(run: subprocess.Popen[bytes], tell: Callable[[], None]) -> int:
    """`tell` the run to end once it is in its timed phase; its exit code when all are gone."""
    assert run.stdout is not None
    assert any(b'"timed"' in line for line in run.stdout)
    family = psutil.Process(run.pid).children(recursive=True)
    tell()
    # The pipe closes only when the last process that holds it is gone.
    run.stdout.read()
    code = run.wait(timeout=60)
    assert psutil.wait_procs(family, timeout=60)[1] == []
    return code


@pytest.mark.parametrize(("number", "code"), TOLD)
def test_it_leaves_nothing_when_it_is_told_to_end(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    with start(tmp_path) as run:
        assert told_once_timed(run, lambda: os.kill(run.pid, number)) == code
    assert list((tmp_path / "out").iterdir()) == []


def test_it_ends_its_ranks_when_it_is_told_to_end(tmp_path: Path) -> None:
    with start(tmp_path, ranks=2, parallel="data") as run:
        told_once_timed(run, lambda: os.kill(run.pid, signal.SIGTERM))
        assert run.returncode == -signal.SIGTERM
    assert list((tmp_path / "out").iterdir()) == []


def test_it_cleans_up_when_the_whole_group_is_told(tmp_path: Path) -> None:
    with start(tmp_path, ranks=2, parallel="data") as run:
        told_once_timed(run, lambda: os.killpg(run.pid, signal.SIGTERM))
    assert list((tmp_path / "out").iterdir()) == []


def test_it_is_told_again_when_the_first_word_got_lost(tmp_path: Path) -> None:
    lost = []
    with pytest.raises(KeyboardInterrupt), ends_cleanly(tmp_path):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt as swallowed:
            lost.append(swallowed)
        threading.Event().wait(60)
    assert len(lost) == 1


def test_it_sweeps_even_when_more_signals_interrupt_the_unwinding(tmp_path: Path) -> None:
    staged = tmp_path / ".partial-7"
    with pytest.raises(KeyboardInterrupt), ends_cleanly(tmp_path), staging(tmp_path) as stage:
        staged.mkdir()
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGTERM)
    assert not stage.folder.exists()
    assert list(tmp_path.iterdir()) == []


def test_it_gives_back_the_handlers_of_before(tmp_path: Path) -> None:
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    with ends_cleanly(tmp_path):
        assert signal.getsignal(signal.SIGTERM) is not before[0]
    assert [signal.getsignal(number) for number in numbers] == before


def test_it_lets_a_signal_unwind_what_runs(tmp_path: Path) -> None:
    def nobody(number: int, frame: object) -> None:
        raise AssertionError("the handler of before was asked")

    before = signal.signal(signal.SIGHUP, nobody)
    try:
        with ends_cleanly(tmp_path), pytest.raises(Told, match="SIGHUP"):
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_it_sweeps_a_half_result_and_keeps_a_whole_one(tmp_path: Path) -> None:
    names = ("env.json", "trace.json.gz", "trace-rank1.json.gz", "error.json", "mine.txt")
    for name in (*names, "result.json", ".error.json.partial-7"):
        (tmp_path / name).write_text("")
    (tmp_path / ".partial-7").mkdir()
    sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*names, "result.json"}
    (tmp_path / "result.json").unlink()
    sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"error.json", "mine.txt"}
