"""`profiler compare` on folders as `profiler run` leaves them: verdicts and exit codes."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from profiler.analysis.compare import Comparison
from profiler.cli import main
from tests.profiler.analysis.measured import environment, failed, launch, side


def scaled(ratio: float, seed: int = 5) -> list[float]:
    """Times of twelve launches of a candidate `ratio` times the baseline."""
    noise: list[float] = np.exp(np.random.default_rng(seed).normal(0, 0.005, 12)).tolist()
    return [7e6 * ratio * factor for factor in noise]


BASE_NS = scaled(1.0, seed=4)


class Compared:
    """One call of the command line."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *arguments: object) -> None:
        self.code = main(["compare", *map(str, arguments)])
        captured = capsys.readouterr()
        self.out, self.error = captured.out, captured.err

    @property
    def json(self) -> Comparison:
        """The printed object."""
        return msgspec.json.decode(self.out, type=Comparison)


@pytest.mark.parametrize(
    ("ratio", "state", "code"), [(0.95, "faster", 0), (1.0, "no change", 0), (1.05, "slower", 1)]
)
def test_it_leaves_with_the_code_of_the_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ratio: float, state: str, code: int
) -> None:
    base, candidate = side(tmp_path / "a", BASE_NS), side(tmp_path / "b", scaled(ratio))
    found = Compared(capsys, base, candidate, "--json")
    assert (found.code, found.json.exit_code, found.json.state) == (code, code, state)
    assert (found.json.metric, found.json.launches) == ("tpot", (12, 12))
    assert found.json.verdicts[0].sentence == found.json.sentence


def test_it_never_judges_single_launches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = launch(tmp_path / "a", {"tpot": 7e6})
    candidate = launch(tmp_path / "b", {"tpot": 3e6})
    found = Compared(capsys, base / "result.json", candidate / "result.json", "--json")
    assert (found.code, found.json.state) == (3, "inconclusive")
    assert found.json.verdicts[0].effect == pytest.approx(3 / 7 - 1)
    assert found.json.verdicts[0].low is None
    assert "measure pairs of launches" in found.json.notes[0]


def test_it_refuses_to_compare_different_environments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = side(tmp_path / "a", BASE_NS)
    other = environment(torch="2.9.0", host="there")
    candidate = side(tmp_path / "b", scaled(0.5), told=other)
    found = Compared(capsys, base, candidate, "--json")
    assert (found.code, found.json.state) == (4, "not comparable")
    assert found.json.obstacles == ("different environments (torch 2.13.0 against 2.9.0)",)
    assert [field.name for field in found.json.environment] == ["torch", "host"]
    assert all(verdict.effect is None for verdict in found.json.verdicts)


def test_it_compares_across_hosts_of_equal_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    candidate = side(tmp_path / "b", scaled(0.95), told=environment(host="there"))
    assert Compared(capsys, side(tmp_path / "a", BASE_NS), candidate).code == 0


def test_it_refuses_to_compare_different_workloads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, candidate = side(tmp_path / "a", BASE_NS), side(tmp_path / "b", BASE_NS, batch=4)
    found = Compared(capsys, base, candidate, "--json")
    assert found.code == 4
    assert found.json.obstacles == ("different workloads (batch 1 against 4)",)


def test_it_refuses_sides_that_do_not_agree_with_themselves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = side(tmp_path / "a", BASE_NS)
    launch(base / "launch-3", {"tpot": 7e6}, told=environment(cpus="64"))
    (base / "launch-4" / "env.json").unlink()
    found = Compared(capsys, base, side(tmp_path / "b", BASE_NS), "--json")
    assert found.json.obstacles == (
        "the baseline has no env.json, so its environment is unknown",
        "the baseline's own launches ran in different environments",
    )


def test_it_counts_failed_launches_and_names_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    candidate = side(tmp_path / "b", [None, *scaled(0.9)[1:]])
    found = Compared(capsys, side(tmp_path / "a", BASE_NS), candidate, "--json")
    assert (found.code, found.json.verdicts[0].counts.failed_candidate) == (0, 1)
    assert "candidate launch-0 failed: out of memory" in found.json.notes


def test_it_does_not_judge_a_candidate_that_never_finished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    candidate = side(tmp_path / "b", [None] * 10)
    found = Compared(capsys, side(tmp_path / "a", BASE_NS[:10]), candidate)
    assert found.code == 4
    assert "the candidate produced no result in any of 10 pairs" in found.out


def test_it_decides_by_another_metric_and_margin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, candidate = side(tmp_path / "a", BASE_NS), side(tmp_path / "b", scaled(1.05))
    assert Compared(capsys, base, candidate, "--metric", "peak_memory").code == 0
    assert Compared(capsys, base, candidate, "--margin", "10").code == 0
    rate = Compared(capsys, base, candidate, "--metric", "decode_rate", "--json")
    assert (rate.code, rate.json.state) == (1, "slower")


def test_it_shows_people_the_verdict_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, candidate = side(tmp_path / "a", BASE_NS), side(tmp_path / "b", scaled(0.9))
    lines = Compared(capsys, base, candidate).out.splitlines()
    assert lines[0].startswith("Time per output token: faster, −10.")
    assert any(line.split()[:3] == ["Peak", "memory", "no"] for line in lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("empty", "base"), "holds no result.json"),
        (("nowhere", "base"), "cannot be read: No such file"),
        (("broken", "base"), "is damaged"),
        (("future", "base"), "has schema 9"),
        (("base", "base", "--metric", "nonsense"), "metric nonsense is not in the results"),
        (("base", "base", "--margin", "0"), "margin 0 is not between"),
        (("lost", "lost"), "no launch of either side finished"),
    ],
)
def test_it_explains_bad_input_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    launch(Path("base"), {"tpot": 7e6})
    Path("empty").mkdir()
    (launch(Path("broken"), {}) / "result.json").write_text('{"spec": 1}')
    text = (launch(Path("future"), {"tpot": 1.0}) / "result.json").read_text()
    head, _, tail = text.rpartition('"schema":1')
    Path("future/result.json").write_text(f'{head}"schema":9{tail}')
    failed(Path("lost"))
    found = Compared(capsys, *arguments)
    assert found.code == 65
    assert message in found.error
    assert found.error.count("\n") == 1


def test_it_pairs_launches_in_the_order_of_their_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rising = [7e6 * 2**number for number in range(12)]
    found = Compared(capsys, side(tmp_path / "a", rising), side(tmp_path / "b", rising), "--json")
    assert found.json.verdicts[0].effect == 0
