from __future__ import annotations

import io
import os
from pathlib import Path

import msgspec
import pytest

from profiler.bench.output import Reporter, prepare, staging, write_failure
from profiler.errors import UserError
from profiler.types import Failure, Progress


class Seconds:
    """A clock in seconds that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def lines(stream: io.BytesIO) -> list[Progress]:
    return [msgspec.json.decode(line, type=Progress) for line in stream.getvalue().splitlines()]


def test_it_publishes_staged_files_together(tmp_path: Path) -> None:
    with staging(tmp_path) as stage:
        stage.write("env.json", {"a": 1})
        stage.write("result.json", {"b": 2})
        assert not (tmp_path / "env.json").exists()
        stage.publish()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["env.json", "result.json"]


def test_it_moves_the_result_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[str] = []
    replace = Path.replace

    def spy(source: Path, target: Path) -> Path:
        moved.append(target.name)
        return replace(source, target)

    monkeypatch.setattr(Path, "replace", spy)
    with staging(tmp_path) as stage:
        for name in ("result.json", "trace.json.gz", "env.json"):
            stage.write(name, {})
        stage.publish()
    assert moved[-1] == "result.json"


def test_it_leaves_nothing_when_the_run_fails(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), staging(tmp_path) as stage:
        stage.write("result.json", {})
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_it_removes_outputs_of_an_earlier_run(tmp_path: Path) -> None:
    for name in ("result.json", "trace-rank1.json.gz"):
        (tmp_path / name).write_text("old")
    (tmp_path / "mine.txt").write_text("kept")
    prepare(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_it_names_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(UserError, match="taken cannot be used"):
        prepare(tmp_path / "taken")


def test_it_writes_a_failure_whole(tmp_path: Path) -> None:
    write_failure(tmp_path, Failure(kind="oom_device", message="too big"))
    raw = (tmp_path / "error.json").read_bytes()
    assert msgspec.json.decode(raw, type=Failure).kind == "oom_device"
    assert len(list(tmp_path.iterdir())) == 1


def test_it_reports_at_most_five_steps_a_second() -> None:
    stream, seconds = io.BytesIO(), Seconds()
    reporter = Reporter(stream, seconds=seconds)
    for step in range(1, 1000):
        seconds.now = step / 100
        reporter.step("timed", step, 1000)
    assert 40 <= len(lines(stream)) <= 51


def test_it_always_reports_the_first_and_last_step() -> None:
    stream = io.BytesIO()
    reporter = Reporter(stream, seconds=Seconds())
    for step in range(11):
        reporter.step("warmup", step, 10)
    assert [line.step for line in lines(stream)] == [0, 10]


def test_it_measures_on_when_nobody_reads() -> None:
    read, write = os.pipe()
    os.close(read)
    with open(write, "wb", buffering=0) as stream:
        reporter = Reporter(stream, seconds=Seconds())
        reporter.step("timed", 0, 2)
        reporter.step("timed", 2, 2)
