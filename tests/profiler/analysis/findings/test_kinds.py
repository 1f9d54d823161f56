"""Every kind finds what was planted, prices it, and stays silent where it is not there."""

from __future__ import annotations

import pytest

from profiler.analysis.findings import Finding, find
from profiler.analysis.findings.registry import FINDERS
from profiler.analysis.findings.types import KINDS
from tests.profiler.analysis.findings.cases import clean_cases, planted_cases
from tests.profiler.analysis.findings.program import Case

ALL = list(planted_cases())
FIRST = [next(case for case in ALL if case.kind == kind) for kind in KINDS]


def findings_of(case: Case, *, fixed: bool = False) -> list[Finding]:
    trace, structure = case.recorded(fixed=fixed)
    return list(find(trace, structure, context=case.context).findings)


def named(case: Case) -> str:
    return f"{case.kind}-{case.name}"


def test_every_kind_has_a_finder_and_a_case() -> None:
    assert tuple(FINDERS) == KINDS
    assert {case.kind for case in ALL} == set(KINDS)
    assert len(ALL) >= 40


@pytest.mark.parametrize("case", FIRST, ids=named)
def test_it_ranks_the_planted_bottleneck_first(case: Case) -> None:
    first = findings_of(case)[0]
    assert first.kind == case.kind
    assert first.advice
    assert first.title
    assert first.evidence


@pytest.mark.parametrize("case", [c for c in FIRST if c.kind != "opaque_graph"], ids=named)
def test_it_prices_the_bottleneck_near_the_truth(case: Case) -> None:
    gain = findings_of(case)[0].recoverable_ns_per_step
    assert gain == pytest.approx(case.truth_ns(), rel=0.1)


REMOVABLE = [c for c in FIRST if c.kind not in ("opaque_graph", "imbalance")]


@pytest.mark.parametrize("case", REMOVABLE, ids=named)
def test_it_is_silent_once_the_bottleneck_is_gone(case: Case) -> None:
    left = [f for f in findings_of(case, fixed=True) if f.kind == case.kind]
    assert not [f for f in left if f.share > 0.03]


@pytest.mark.parametrize("case", list(clean_cases()), ids=lambda case: case.name)
def test_it_shows_nothing_loud_on_a_clean_program(case: Case) -> None:
    assert not [f for f in findings_of(case) if f.share > 0.03 and f.confidence == "high"]
