"""`manage.py bisect`: what it prints and the exit code it leaves with."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from django.core.management import call_command

from dashboard.models import Bisect
from dashboard.services.bisect_steps import advance_all
from profiler.errors import ExitCode
from tests.bisects import Bench, make_line
from tests.factories import make_run, make_spec
from tests.sources import make_repository

pytestmark = pytest.mark.django_db


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[float], list[str]]:
    """While the command waits, keeper and worker go on; the third commit brings `effect`."""

    def prepare(effect: float) -> list[str]:
        line = make_line(make_repository(), 5)
        bench = Bench(
            tmp_path / "launch",
            lambda commit, number: (
                1e6 * (1 + effect * (commit.position >= line[2].position)) + number * 150
            ),
        )

        def work(_seconds: float) -> None:
            advance_all()
            bench.work()

        monkeypatch.setattr(time, "sleep", work)
        return [commit.sha for commit in line]

    return prepare


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.json"
    path.write_bytes(msgspec.json.encode(make_spec()))
    return path


def run(*words: str, spec: Path) -> int:
    try:
        call_command("bisect", "--repo", "models", "--spec", str(spec), *words)
    except SystemExit as left:
        return int(str(left.code))
    return 0


def test_it_prints_the_culprit(
    ends: Callable[[float], list[str]], spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shas = ends(0.1)
    assert run("--good", shas[0], spec=spec) == ExitCode.FINE
    out, err = capsys.readouterr()
    assert f"{shas[2][:10]} “change 2” made Time per output token slower" in out
    assert "against its parent  bad" in out
    assert "commits are suspected to be slower" in err


def test_it_prints_a_summary_for_machines(
    ends: Callable[[float], list[str]], spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shas = ends(0.1)
    run("--good", shas[0], "--json", spec=spec)
    told = json.loads(capsys.readouterr().out)
    assert (told["outcome"], told["culprit"], told["exit_code"]) == ("confirmed", shas[2], 0)
    assert told["suspected"] == [shas[2]]
    assert [step["kind"] for step in told["steps"]][0::3] == ["ends", "confirm"]


def test_it_leaves_with_inconclusive_when_there_is_nothing(
    ends: Callable[[float], list[str]], spec: Path
) -> None:
    shas = ends(0.0)
    assert run("--good", shas[0], spec=spec) == ExitCode.INCONCLUSIVE


def test_it_leaves_with_bad_input_when_it_stops(
    ends: Callable[[float], list[str]], spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shas = ends(0.1)
    assert run("--good", shas[4], "--bad", shas[0], spec=spec) == ExitCode.BAD_INPUT
    assert "no ancestor of the bad one" in capsys.readouterr().out


def test_it_can_leave_at_once(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_repository()
    assert run("--good", "v1", "--no-wait", spec=spec) == 0
    assert capsys.readouterr().out.strip() == str(Bisect.objects.get().pk)


def test_it_waits_no_longer_than_told(spec: Path) -> None:
    make_repository()
    assert run("--good", "v1", "--timeout", "0.01", spec=spec) == ExitCode.INCONCLUSIVE


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--good", "--x"), "can be no branch"),
        (("--repo", "other"), "There is no repository other. registered: models"),
        (("--like-run", "77"), "There is no run 77"),
        (("--margin", "0"), "margin 0"),
    ],
)
def test_it_refuses_in_one_line(
    capsys: pytest.CaptureFixture[str], words: tuple[str, str], said: str
) -> None:
    make_repository()
    given = {"--repo": "models", "--good": "v1", "--like-run": str(make_run().pk), **dict([words])}
    with pytest.raises(SystemExit) as left:
        call_command("bisect", *(f"{name}={value}" for name, value in given.items()))
    assert left.value.code == ExitCode.BAD_INPUT
    assert said in capsys.readouterr().err
