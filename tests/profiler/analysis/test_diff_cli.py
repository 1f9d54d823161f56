"""`profiler diff` as a person and a program meet it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from profiler.cli import main
from tests.profiler.analysis.layered import Layered


@pytest.fixture
def traces(tmp_path: Path) -> tuple[str, str]:
    """Two traces of which the candidate runs a fused operator under a hostile name."""
    fused = Layered(operators=("aten::linear>aten::addmm", "my::fused\x1b[31m"), graph=True)
    base = Layered().build().write(tmp_path / "base.json")
    return str(base), str(fused.build().write(tmp_path / "cand.json.gz"))


def test_it_prints_one_json_object(
    traces: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", *traces, "--json"]) == 0
    report = msgspec.json.decode(capsys.readouterr().out, type=dict[str, msgspec.Raw])
    assert set(report) == {"schema", "diff", "waterfall", "flame"}
    assert b"fused" in bytes(report["flame"])


def test_it_prints_the_same_numbers_for_people(
    traces: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", *traces]) == 0
    out = capsys.readouterr().out
    assert "4 steps of 1.00 ms, matched 33.3 %" in out
    assert "opaque 50.0 µs" in out
    assert "model.layers.*.mlp: aten::mul + aten::silu → my::fused\\x1b[31m" in out
    assert "\x1b" not in out


def test_it_shows_each_layer_when_asked(
    traces: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", *traces, "--each-layer"]) == 0
    assert "model.layers.1.mlp" in capsys.readouterr().out


def test_it_explains_bad_input_in_one_line(
    traces: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", traces[0], str(tmp_path / "none.json")]) == 65
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["diff", traces[0]]) == 64
