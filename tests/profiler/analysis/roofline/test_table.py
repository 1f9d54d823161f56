"""Which calls count, against which peak, and what is said about the rest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profiler.analysis.roofline.peaks import Peaks, catalogue, peaks_of
from profiler.analysis.roofline.table import Roofline, RooflineRow, roofline
from profiler.trace.link import link
from tests.profiler.analysis.simulate import Simulator
from tests.profiler.trace.build import Json

BF16 = "c10::BFloat16"
PEAKS = Peaks(device="test", flops={"bfloat16": 1e14}, bandwidth=1e12)
LINEAR: Json = {"Input Dims": [[1024, 1024], [1024, 1024]], "Input type": [BF16, BF16]}
SMALL: Json = {"Input Dims": [[8]], "Input type": [BF16]}


def table_of(peaks: Peaks | None) -> Roofline:
    """A linear that calls mm and a copy inside, an add, and an operator of one's own."""
    sim = Simulator()
    outer = sim.frame("aten::linear", own_ns=200, args=LINEAR)
    with outer, sim.frame("aten::mm", own_ns=100, args=LINEAR):
        sim.launch("gemm", 30_000)
        with sim.frame("aten::add", own_ns=100, args=SMALL):
            sim.launch("prologue", 10_000)
    with sim.frame("aten::add", own_ns=100, args=SMALL):
        sim.launch("add", 2_000)
    with sim.frame("custom::op", own_ns=100, args=SMALL):
        sim.launch("own", 58_000)
    trace = sim.trace()
    return roofline(trace, link(trace), peaks)


def row(table: Roofline, name: str) -> RooflineRow:
    return next(r for r in table.rows if r.signature.name == name)


def test_it_counts_the_innermost_matrix_operator_with_all_it_calls() -> None:
    table = table_of(PEAKS)
    assert [r.signature.name for r in table.rows] == ["aten::mm", "aten::add"]
    assert row(table, "aten::mm").total_ns == 40_000
    assert row(table, "aten::add").calls == 1


def test_it_compares_with_the_bound() -> None:
    found = row(table_of(PEAKS), "aten::mm")
    assert found.bound_ns == pytest.approx(2 * 1024**3 / 1e14 * 1e9)
    assert found.efficiency == pytest.approx(21_474.8 / 40_000, rel=1e-4)
    assert found.limit == "compute"
    assert found.flop_rate == pytest.approx(2 * 1024**3 / 40e-6)


def test_it_calls_tiny_kernels_launch_bound() -> None:
    assert row(table_of(PEAKS), "aten::add").limit == "launch"


def test_it_lists_what_it_cannot_count_with_its_share() -> None:
    (missing,) = table_of(PEAKS).uncounted
    assert (missing.name, missing.reason) == ("custom::op", "no formula")
    assert missing.share == pytest.approx(0.58)


def test_it_gives_no_percentage_against_an_unverified_peak() -> None:
    claimed = replace(PEAKS, origin="datasheet", verified=False)
    found = row(table_of(claimed), "aten::mm")
    assert (found.bound_ns, found.efficiency, found.limit) == (None, None, "unknown")


def test_it_gives_no_bound_without_a_bandwidth() -> None:
    assert row(table_of(replace(PEAKS, bandwidth=None)), "aten::mm").bound_ns is None


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100 SXM"),
        ("NVIDIA A100-SXM4-80GB", "NVIDIA A100 SXM 80 GB"),
        ("AMD Instinct MI300X VF", "AMD Instinct MI300X"),
        ("NVIDIA GB200", "NVIDIA GB200 (one GPU)"),
        ("NVIDIA H200", "NVIDIA H200"),
    ],
)
def test_it_finds_the_peaks_of_a_device(name: str, device: str) -> None:
    found = peaks_of([name])
    assert found is not None
    assert found.device == device


@pytest.mark.parametrize("name", ["", "Ascend 910B", "NVIDIA H100 PCIe", "MTT S4000"])
def test_it_claims_no_peaks_it_does_not_have(name: str) -> None:
    assert peaks_of([name]) is None


def test_it_says_for_every_peak_where_it_comes_from() -> None:
    for peaks in catalogue():
        assert peaks.source.startswith("data sheet of")
        assert peaks.as_of is not None
        assert peaks.origin == "datasheet"
        assert peaks.urls or not peaks.verified
        assert all(url.startswith("https://") for url in peaks.urls)


def test_it_takes_no_percentage_from_figures_that_disagree() -> None:
    found = peaks_of(["NVIDIA B200"])
    assert found is not None and not found.usable
