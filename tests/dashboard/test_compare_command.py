"""`manage.py compare`: what it prints and the exit code it leaves with."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from django.core.management import call_command

from dashboard.models import ComparedState, Comparison, ComparisonState
from dashboard.services.clock import db_now
from profiler.errors import ExitCode
from tests.factories import make_run, make_spec
from tests.sources import make_commit, make_pair, make_repository

pytestmark = pytest.mark.django_db


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Stands in for workers: while the command waits, pairs of this effect appear and it ends."""

    def prepare(effect: float) -> None:
        repository = make_repository()
        make_commit(repository, "old \x1b[31m")
        make_commit(repository, "new")

        def work(_seconds: float) -> None:
            made = Comparison.objects.get()
            made.baseline, made.candidate = repository.commits.order_by("position")
            for compared in made.workloads.all():
                for number in range(10):
                    make_pair(compared, 1e6 + number * 100, 1e6 * (1 + effect) + number * 150)
            made.workloads.update(state=ComparedState.SETTLED)
            made.state, made.ended_at = ComparisonState.ENDED, db_now()
            made.save()

        monkeypatch.setattr(time, "sleep", work)

    return prepare


def run(*words: str, spec: Path) -> int:
    """The exit code of the command with one workload."""
    try:
        call_command("compare", "--repo", "models", "--base", "main", "--spec", str(spec), *words)
    except SystemExit as left:
        return int(str(left.code))
    return 0


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.json"
    path.write_bytes(msgspec.json.encode(make_spec()))
    return path


@pytest.mark.parametrize(
    ("effect", "code", "word"),
    [
        (-0.1, ExitCode.FINE, "faster"),
        (0.0, ExitCode.FINE, "no change"),
        (0.1, ExitCode.REGRESSED, "slower"),
    ],
)
def test_it_leaves_with_the_verdict(
    measured: Callable[[float], None],
    spec: Path,
    capsys: pytest.CaptureFixture[str],
    effect: float,
    code: ExitCode,
    word: str,
) -> None:
    measured(effect)
    assert run("--gate", spec=spec) == code
    out = capsys.readouterr().out
    assert f": {word}\n" in out and "\x1b" not in out
    assert len(out.splitlines()) < 24


def test_it_leaves_with_nought_without_a_gate(
    measured: Callable[[float], None], spec: Path
) -> None:
    measured(0.1)
    assert run(spec=spec) == 0


def test_it_prints_a_summary_for_machines(
    measured: Callable[[float], None], spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured(0.1)
    run("--json", spec=spec)
    told = json.loads(capsys.readouterr().out)
    assert (told["verdict"], told["exit_code"], told["pairs"]) == ("slower", 1, 10)
    assert told["workloads"][0]["verdict"]["effect"] == pytest.approx(0.1, abs=0.001)


def test_it_waits_no_longer_than_told(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_repository()
    assert run("--gate", "--timeout", "0.01", spec=spec) == ExitCode.NOT_COMPARABLE
    assert "resolving" in capsys.readouterr().out


def test_it_can_leave_at_once(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_repository()
    assert run("--no-wait", spec=spec) == 0
    assert capsys.readouterr().out.strip() == str(Comparison.objects.get().pk)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--base", "--x"), "can be no branch"),
        (("--repo", "other"), "There is no repository other. registered: models"),
        (("--template", "none"), "There is no template none"),
        (("--like-run", "77"), "There is no run 77"),
        (("--spec", "/nowhere"), "cannot be read"),
        (("--margin", "0"), "margin 0"),
    ],
)
def test_it_refuses_in_one_line(
    capsys: pytest.CaptureFixture[str], words: tuple[str, str], said: str
) -> None:
    make_repository()
    given = {"--repo": "models", "--base": "main", **dict([words])}
    with pytest.raises(SystemExit) as left:
        call_command("compare", *(f"{name}={value}" for name, value in given.items()))
    assert left.value.code == ExitCode.BAD_INPUT
    assert said in capsys.readouterr().err


def test_it_takes_the_workload_of_a_run() -> None:
    make_repository()
    made = make_run(spec=make_spec(batch=3))
    words = ("--repo=models", "--base=main", f"--like-run={made.pk}", "--no-wait")
    call_command("compare", *words)
    assert Comparison.objects.get().workloads.get().spec["batch"] == 3
