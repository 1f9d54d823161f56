"""What findings say beside their price: subjects, evidence, modules, and when they say nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profiler.analysis.findings import Context, Finding, FindingsResult, PastOperator, find
from profiler.analysis.report import RankSet
from profiler.analysis.roofline.peaks import Peaks
from tests.profiler.analysis.findings import planted as plant
from tests.profiler.analysis.findings.program import MI300X, NAMELESS, Case, Program, Size
from tests.profiler.analysis.simulate import Simulator

SMALL = Size(layers=4, tokens=1024)


def result_of(case: Case, context: Context | None = None) -> FindingsResult:
    trace, structure = case.recorded()
    return find(trace, structure, context=context or case.context)


def of_kind(result: FindingsResult, kind: str) -> Finding:
    return next(f for f in (*result.findings, *result.folded) if f.kind == kind)


def test_it_names_operator_module_and_bound_of_a_slow_kernel() -> None:
    found = of_kind(result_of(Case("", "", SMALL, plant.slow_mm(3.0))), "roofline_gap")
    assert (found.subject, found.calls) == ("aten::mm", 12)
    assert found.modules == ("layers.*.mlp",)
    assert found.evidence["efficiency"] == pytest.approx(0.3, rel=0.1)
    assert found.evidence["peak_origin"] == "datasheet"


def test_it_claims_nothing_against_an_unknown_peak() -> None:
    found = of_kind(result_of(Case("", "", replace(SMALL, device=NAMELESS))), "roofline_gap")
    assert found.recoverable_ns_per_step is None
    assert found.evidence["reason"] == "no peak is known for this device"


def test_it_claims_nothing_against_an_unverified_peak() -> None:
    claimed = Peaks(device="x", flops={"bfloat16": 1e15}, bandwidth=1e13, origin="datasheet")
    found = of_kind(result_of(Case("", "", SMALL), Context(peaks=claimed)), "roofline_gap")
    assert found.evidence["reason"] == "the peak of this device is not verified"


def test_it_takes_measured_peaks_before_the_catalogue() -> None:
    measured = Peaks(device="mine", flops={"bfloat16": 989e12 / 3}, bandwidth=1e12)
    result = result_of(Case("", "", SMALL, plant.slow_mm(2.0)), Context(peaks=measured))
    assert not [f for f in result.findings if f.kind == "roofline_gap"]


def test_it_ignores_a_slowdown_within_noise() -> None:
    key = ("custom::mix", "[[1024, 2048]]", '["c10::BFloat16"]')
    past = {key: PastOperator(median_ns=90_000, noise_ns=9_000, run="best")}
    case = Case("", "", replace(SMALL, device=NAMELESS), plant.custom(100_000, 1.0))
    result = result_of(case, Context(past=past))
    assert not [f for f in result.findings if f.kind == "regressed_operator"]


def test_it_names_the_run_an_operator_was_better_in() -> None:
    size = replace(SMALL, device=NAMELESS)
    case = Case("", "", size, plant.custom(100_000, 2.0), context=plant.past_of(size, 100_000))
    found = of_kind(result_of(case), "regressed_operator")
    assert (found.subject, found.evidence["past_run"]) == ("custom::mix", "best")


def test_it_does_not_blame_how_a_step_is_measured() -> None:
    result = result_of(Case("", "", SMALL))
    assert not [f for f in (*result.findings, *result.folded) if f.kind == "sync_point"]


def test_it_counts_the_bytes_that_fusing_saves() -> None:
    case = Case("", "", SMALL, plant.chain(["aten::mul", "aten::add", "aten::silu"]))
    found = of_kind(result_of(case), "fusable_chain")
    one_pass = 2 * SMALL.tokens * 4 * SMALL.hidden
    assert found.subject == "mul → add → silu"
    assert found.evidence["bytes_saved_per_step"] == 4 * one_pass * SMALL.layers


def test_it_knows_a_growing_cache_from_other_concatenations() -> None:
    def steady(p: Program, _: int, fixed: bool) -> None:
        del fixed
        p.op("aten::cat", [[[512, 4096], [512, 4096]], []], ["TensorList", "Scalar"], 90_000)

    assert of_kind(result_of(Case("", "", SMALL, plant.growing_cat)), "redundant_copy")
    kinds = {f.kind for f in result_of(Case("", "", SMALL, steady)).findings}
    assert "redundant_copy" not in kinds


def test_it_asks_for_the_type_of_the_workload() -> None:
    case = Case("", "", SMALL, plant.wide_mm)
    guessed = of_kind(result_of(case), "precision")
    told = of_kind(result_of(case, Context(dtype="bfloat16")), "precision")
    assert (guessed.confidence, told.confidence) == ("medium", "high")
    wide = result_of(case, Context(dtype="float32"))
    assert not [f for f in wide.findings if f.kind == "precision"]


def test_it_leaves_fused_optimisers_alone() -> None:
    def fused(p: Program, step: int, fixed: bool) -> None:
        del fixed
        plant.optimizer(90)(p, step, True)

    kinds = {f.kind for f in result_of(Case("", "", SMALL, at_end=fused)).findings}
    assert "unfused_optimizer" not in kinds


def test_it_says_that_graphs_hide_their_kernels() -> None:
    result = result_of(Case("", "", replace(SMALL, device=MI300X), whole=plant.graph_replay))
    found = of_kind(result, "opaque_graph")
    assert (found.recoverable_ns_per_step, found.confidence) == (None, "low")


def test_it_says_nothing_about_work_that_was_not_recorded() -> None:
    sim = Simulator("NVIDIA H100")
    for step in range(3):
        with sim.step(step):
            sim.emit("cuda_runtime", "cudaLaunchKernel", sim.now, 4_000)
            sim.think(9_000)
    result = find(*sim.linked())
    assert (result.findings, result.window) == ((), "nothing recorded")


def test_it_finds_no_imbalance_between_equal_ranks() -> None:
    rows = [plant.rank_row(n, 50_000_000 + n, 0) for n in range(4)]
    even = RankSet(ranks=rows, straggler=None, matched_collectives=9, skew_ns=None, explanation="")
    result = result_of(Case("", "", SMALL, plant.all_reduce(90_000)), Context(ranks=even))
    assert "imbalance" not in {f.kind for f in result.findings}
