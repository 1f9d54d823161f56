"""Order, folding, joint gains, confidence, and the price of a reader's own change."""

from __future__ import annotations

import pytest

from profiler.analysis.findings import (
    Context,
    WhatIf,
    find,
    finding_rows,
    scene_of,
    what_if,
)
from profiler.analysis.findings.ranking import confidence_of
from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.types import Path
from profiler.errors import UserError
from tests.profiler.analysis.findings import planted as plant
from tests.profiler.analysis.findings.program import Case, Program, Size

SMALL = Size(layers=4, tokens=1024)


def two_plants(p: Program, layer: int, fixed: bool) -> None:
    plant.slow_mm(3.0)(p, layer, fixed)
    plant.contiguous(p, layer, fixed)


CASE = Case("", "two plants", SMALL, two_plants)


def scene() -> Scene:
    made = scene_of(*CASE.recorded())
    assert made is not None
    return made


def test_it_sorts_by_what_can_be_won() -> None:
    result = find(*CASE.recorded())
    gains = [f.recoverable_ns_per_step or 0 for f in result.findings]
    assert gains == sorted(gains, reverse=True)
    assert {"roofline_gap", "redundant_copy"} <= {f.kind for f in result.findings}


def test_it_prices_the_best_three_together() -> None:
    result = find(*CASE.recorded())
    first = result.findings[0].recoverable_ns_per_step or 0
    total = sum(f.recoverable_ns_per_step or 0 for f in result.findings[:3])
    assert first < result.joint_top_ns <= total
    assert result.joint_top_ns == pytest.approx(CASE.truth_ns(), rel=0.1)
    assert result.joint_top_share == result.joint_top_ns / result.step_ns


def test_it_claims_no_time_twice() -> None:
    case = Case("", "", SMALL, plant.wide_mm)
    result = find(*case.recorded(), context=Context(dtype="bfloat16"))
    assert result.joint_all_ns < result.step_ns
    both = [f for f in result.findings if f.subject == "aten::mm"]
    largest = max(f.recoverable_ns_per_step or 0 for f in both)
    assert result.joint_top_ns <= largest * 1.1


def test_it_folds_what_is_within_the_noise() -> None:
    loud = find(*CASE.recorded(), context=Context(noise=0.3))
    assert not [f for f in loud.findings if f.recoverable_ns_per_step]
    assert {"roofline_gap", "redundant_copy"} <= {f.kind for f in loud.folded}


def test_it_gives_rows_for_the_report() -> None:
    rows = finding_rows(find(*CASE.recorded()))
    assert rows[0].evidence["confidence"] == "high"
    assert rows[0].recoverable_ns_per_step
    assert 0 < rows[0].share < 1


@pytest.mark.parametrize(
    ("inferred", "opaque", "guessed", "expected"),
    [
        (0.0, False, False, "high"),
        (0.0, False, True, "medium"),
        (0.05, False, False, "medium"),
        (0.2, False, False, "low"),
        (0.0, True, False, "low"),
    ],
)
def test_it_is_as_sure_as_its_edges(
    inferred: float, opaque: bool, guessed: bool, expected: str
) -> None:
    assert confidence_of(Path(inferred, opaque), guessed=guessed) == expected


def test_it_gives_a_range_where_it_is_not_sure() -> None:
    case = Case("", "", SMALL, whole=plant.graph_replay)
    made = scene_of(*case.recorded())
    assert made is not None
    price = what_if(made, WhatIf(target="kernel", name="gemm", factor=0.5))
    assert price.confidence == "low"
    assert price.low_ns_per_step is not None
    assert 0 < price.low_ns_per_step <= price.gain_ns_per_step


def test_it_prices_a_faster_operator() -> None:
    made = scene()
    whole = what_if(made, WhatIf(target="operator", name="aten::mm", factor=0))
    half = what_if(made, WhatIf(target="operator", name="aten::mm", factor=0.5))
    assert 0 < half.gain_ns_per_step < whole.gain_ns_per_step < made.step_ns
    assert half.calls == 5 * SMALL.layers * SMALL.steps
    assert half.step_ns == made.step_ns - half.gain_ns_per_step


def test_it_prices_a_slower_operator_as_a_loss() -> None:
    assert what_if(scene(), WhatIf(target="operator", name="aten::mm", factor=2)).share < 0


def test_it_prices_a_module_with_all_its_layers() -> None:
    price = what_if(scene(), WhatIf(target="module", name="layers.*.attention", factor=0))
    one = what_if(scene(), WhatIf(target="module", name="layers.0.attention", factor=0))
    assert price.calls == SMALL.layers * SMALL.steps
    assert price.gain_ns_per_step > 3 * one.gain_ns_per_step


def test_it_wins_nothing_from_a_host_that_is_ahead() -> None:
    price = what_if(scene(), WhatIf(target="host_of_operator", name="aten::mm", factor=0))
    assert price.share == pytest.approx(0, abs=0.02)


def test_it_prices_several_changes_together() -> None:
    a = WhatIf(target="operator", name="aten::mm", factor=0.5)
    b = WhatIf(target="kernel", name="kernel_copy_", factor=0)
    both = what_if(scene(), a, b).gain_ns_per_step
    assert both > max(what_if(scene(), one).gain_ns_per_step for one in (a, b))


@pytest.mark.parametrize("target", ["operator", "module", "kernel", "collective"])
def test_it_says_what_is_not_there(target: str) -> None:
    request = WhatIf(target=target, name="nothing", factor=0.5)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="nothing"):
        what_if(scene(), request)


def test_it_refuses_a_negative_factor() -> None:
    with pytest.raises(UserError, match="factor"):
        what_if(scene(), WhatIf(target="operator", name="aten::mm", factor=-1))
