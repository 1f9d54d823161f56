"""Scalar arguments: read where a formula needs them, left where nobody does."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.analysis.analyse import Linked, linked
from profiler.analysis.roofline.registry import has_formula
from profiler.trace.limits import Limits
from profiler.trace.read import Reading
from profiler.trace.vendors import rules
from tests.profiler.trace.build import Json, TraceBuilder

CONV: Json = {
    "Input Dims": [[1, 3, 8, 8], [4, 3, 3, 3], [], [], [], [], []],
    "Input type": ["float", "float", "", "ScalarList", "ScalarList", "ScalarList", "Scalar"],
    "Concrete Inputs": ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "1"],
}


def read(tmp_path: Path, made: TraceBuilder) -> Linked:
    with Reading(made.write(tmp_path / "t.json"), Limits()) as reading:
        return linked(reading.finish())


def recorded(name: str) -> TraceBuilder:
    made = TraceBuilder()
    made.op(name, 10, 50, **CONV)  # type: ignore[arg-type]
    return made


def scalars(found: Linked) -> dict[str, str]:
    events = found.trace.events
    texts = [*found.trace.strings, ""]
    codes = events.dense("concrete")
    return {
        texts[name]: texts[code]
        for name, code in zip(events.name.tolist(), codes.tolist(), strict=True)
    }


@pytest.mark.parametrize(("name", "kept"), [("aten::conv2d", True), ("aten::view", False)])
def test_it_reads_them_only_where_needed(name: str, kept: bool, tmp_path: Path) -> None:
    assert bool(scalars(read(tmp_path, recorded(name)))[name]) == kept


def test_it_knows_shapes_and_types_of_those_operators_as_of_others(tmp_path: Path) -> None:
    events = read(tmp_path, recorded("aten::conv2d")).trace.events
    assert len(events.sparse["shapes"].rows) == len(events.sparse["dtypes"].rows) == 1


def test_it_reads_none_that_no_formula_takes() -> None:
    casts = {"aten::to"}
    assert {name for name in rules().scalars if not has_formula(name)} == casts
