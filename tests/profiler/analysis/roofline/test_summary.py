"""The roofline as the report and its pages get it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profiler.analysis.bounds import RooflineReport
from profiler.analysis.ingest import ingest
from profiler.analysis.report import load_report
from profiler.analysis.roofline.peaks import Peaks
from profiler.analysis.roofline.summary import roofline_report
from profiler.analysis.roofline.table import roofline
from profiler.trace.link import link
from tests.profiler.analysis.roofline.test_table import BF16, LINEAR, PEAKS, table_of
from tests.profiler.analysis.simulate import Simulator
from tests.profiler.trace.build import Json, busy

SHEET = replace(PEAKS, origin="datasheet", verified=False)


def summary(peaks: Peaks | None) -> RooflineReport:
    return roofline_report(table_of(peaks), peaks)


def test_it_gives_rates_and_efficiency_of_all_calls() -> None:
    found = summary(PEAKS).operators[0]
    assert (found.name, found.calls, found.bound, found.dtype) == (
        "aten::mm",
        1,
        "compute",
        "bfloat16",
    )
    assert found.flops == 2 * 1024**3
    assert found.flop_rate == pytest.approx(found.flops / 40e-6)
    assert found.efficiency == pytest.approx(2 * 1024**3 / 1e14 / 40e-6, rel=1e-4)
    assert found.share == pytest.approx(0.4)


def test_it_adds_inputs_up_by_name_and_keeps_them_apart_by_shapes() -> None:
    sim = Simulator()
    wide: Json = {"Input Dims": [[1024, 1024], [1024, 2048]], "Input type": [BF16, BF16]}
    for args in (LINEAR, wide):
        with sim.frame("aten::mm", own_ns=100, args=args):
            sim.launch("gemm", 30_000)
    trace = sim.trace()
    found = roofline_report(roofline(trace, link(trace), PEAKS), PEAKS)
    assert [row.flops for row in found.operators] == [6 * 1024**3]
    assert sorted(row.flops or 0 for row in found.shapes) == [2 * 1024**3, 4 * 1024**3]
    assert sum(row.share for row in found.shapes) == pytest.approx(1)


@pytest.mark.parametrize(
    ("peaks", "label"), [(PEAKS, "measured"), (SHEET, "unverified"), (None, None)]
)
def test_it_says_how_far_a_peak_may_be_trusted(peaks: Peaks | None, label: str | None) -> None:
    found = summary(peaks)
    assert (found.peak.label if found.peak else None) == label
    known = label == "measured"
    assert (found.operators[0].efficiency is not None) == known
    assert found.operators[0].flop_rate


def test_it_lists_what_has_no_formula_with_its_share() -> None:
    found = summary(PEAKS)
    assert [(row.name, row.share) for row in found.uncounted] == [("custom::op", 0.58)]
    assert found.counted_share == pytest.approx(0.42)


def test_it_counts_communication_as_a_bound_of_its_own() -> None:
    sim = Simulator()
    with sim.frame("c10d::allreduce_", own_ns=100):
        sim.launch("ncclDevKernel_AllReduce", 50_000)
    trace = sim.trace()
    found = roofline_report(roofline(trace, link(trace), PEAKS), PEAKS)
    assert [(row.bound, row.flops) for row in found.operators] == [("communication", None)]
    assert not found.uncounted
    assert found.counted_share == 1


def test_it_calls_short_calls_on_a_processor_host_bound() -> None:
    sim = Simulator()
    with sim.frame("aten::mm", own_ns=2_000, args=LINEAR):
        pass
    trace = sim.trace()
    found = roofline_report(roofline(trace, link(trace), None), None)
    assert (found.time, found.operators[0].bound) == ("host", "host")


def test_it_is_stored_with_the_pricing(tmp_path: Path) -> None:
    report = ingest([busy().write(tmp_path / "t.json")], tmp_path / "out")
    stored = load_report(tmp_path / "out" / "report.json")
    assert stored.roofline == report.roofline
    assert stored.pricing is not None
    assert stored.pricing.exact
    assert stored.pricing.step_ns > 0
    assert stored.pricing.joint_top_ns <= stored.pricing.joint_all_ns
