"""The command line as a person meets it: real processes, exit codes, one-line errors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from profiler.cli import main
from profiler.errors import SpecError
from profiler.types import Environment, Failure, Progress, Result

SPEC = {
    "model": "llama-tiny",
    "scenario": "decode",
    "prompt_tokens": 8,
    "output_tokens": 4,
    "iterations": 2,
    "warmup": 1,
    "profiled_steps": 1,
    "threads": 1,
}
COMMAND = (sys.executable, "-m", "profiler")


def spec_file(folder: Path, **fields: object) -> Path:
    path = folder / "spec.json"
    path.write_text(json.dumps(SPEC | fields))
    return path


def profiler(*arguments: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, timeout=120)


def failure(out: Path) -> Failure:
    return msgspec.json.decode((out / "error.json").read_bytes(), type=Failure)


def test_it_runs_a_spec_and_reports_progress_as_json_lines(tmp_path: Path) -> None:
    done = profiler("run", spec_file(tmp_path), "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr.decode()
    lines = [msgspec.json.decode(line, type=Progress) for line in done.stdout.splitlines()]
    phases = list(dict.fromkeys(line.phase for line in lines))
    assert phases == ["load", "correctness", "warmup", "timed", "memory", "profiled"]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "result.json",
        "env.json",
        "trace.json.gz",
    }
    assert b"timed" in done.stderr
    msgspec.json.decode((tmp_path / "out" / "result.json").read_bytes(), type=Result)


def test_it_names_an_unknown_model_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["run", str(spec_file(tmp_path, model="nobody")), "--out", str(out)]) == 65
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("daybreak: spec.model 'nobody' is unknown. known models: llama-")
    assert shown.err.count("\n") == 1
    assert failure(out).kind == SpecError.kind


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["run"], ["run", "spec.json"], ["env", "--what"]]
)
def test_it_explains_wrong_usage_in_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 64
    shown = capsys.readouterr().err
    assert shown.startswith("daybreak: python -m profiler")
    assert shown.count("\n") == 1


def test_it_tells_a_missing_spec_and_a_bad_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = tmp_path / "taken"
    taken.write_text("")
    assert main(["run", str(tmp_path / "none.json"), "--out", str(tmp_path / "out")]) == 65
    assert main(["run", str(spec_file(tmp_path)), "--out", str(taken)]) == 65
    missing, folder = capsys.readouterr().err.splitlines()
    assert "none.json cannot be read: No such file" in missing
    assert "taken cannot be used" in folder


def test_it_shows_the_way_back_from_a_fault_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError("ours\x1b[31m")

    monkeypatch.setattr("profiler.spec.load", broken)
    assert main(["run", str(spec_file(tmp_path)), "--out", str(tmp_path / "out")]) == 70
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert "daybreak: our fault: ZeroDivisionError" in shown
    assert failure(tmp_path / "out").kind == "crashed"
    assert "\x1b" not in failure(tmp_path / "out").message


def test_it_leaves_no_half_result_after_ctrl_c(tmp_path: Path) -> None:
    out = tmp_path / "out"
    endless = spec_file(tmp_path, iterations=10_000, output_tokens=100)
    arguments = [*COMMAND, "run", str(endless), "--out", str(out)]
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as run:
        assert run.stdout is not None
        assert any(b'"timed"' in line for line in run.stdout)
        os.kill(run.pid, signal.SIGINT)
        _, errors = run.communicate(timeout=60)
    assert run.returncode == 130
    assert errors.endswith(b"daybreak: interrupted\n")
    assert list(out.iterdir()) == []


def test_it_prints_the_environment_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "--json"]) == 0
    environment = msgspec.json.decode(capsys.readouterr().out, type=Environment)
    assert environment.fields["torch"].startswith("2.")


def test_it_prints_the_environment_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env"]) == 0
    shown = capsys.readouterr().out
    assert "device_kind" in shown
    assert "comparable" in shown


def test_it_is_quiet_when_the_reader_has_enough() -> None:
    with subprocess.Popen([*COMMAND, "env"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None
        run.stdout.close()
        assert run.stderr is not None
        assert run.stderr.read() == b""
        assert run.wait(timeout=60) == 0


def test_it_loads_neither_torch_nor_django_until_it_measures() -> None:
    code = (
        "import sys, profiler.cli; profiler.cli.build_parser();"
        "print([name for name in ('torch', 'django', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert done.stdout.strip() == b"[]", done.stderr.decode()
