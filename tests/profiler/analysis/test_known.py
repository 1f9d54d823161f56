"""What is known beside a trace reaches its findings; ranks that are compared show imbalance."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.analysis.bounds import PeakFacts, TypicalCall
from profiler.analysis.ingest import ingest
from profiler.analysis.known import Known, dump_known, load_known
from profiler.analysis.report import Report, load_report
from profiler.cli import main
from profiler.errors import UserError
from tests.profiler.trace.build import TraceBuilder

STEPS = 6


def program(gemm_us: float, *, rank: int = 0) -> TraceBuilder:
    """Steps of a matrix product and an all-reduce that the last rank to come decides (400 µs)."""
    made = TraceBuilder()
    made.header["distributedInfo"] = {"rank": rank, "world_size": 2}
    shapes = {"Input Dims": [[512, 512], [512, 512]], "Input type": ["float", "float"]}
    for step in range(STEPS):
        at = 1000.0 + 840 * step
        made.mark(f"ProfilerStep#{step}", at, 830)
        made.op("aten::mm", at + 5, 20, **shapes)  # type: ignore[arg-type]
        made.launch(10 + 2 * step, at + 10, 5)
        made.kernel("gemm", at + 20, gemm_us, correlation=10 + 2 * step)
        made.op("c10d::allreduce_", at + 30, 20)
        made.launch(11 + 2 * step, at + 35, 5)
        name = "ncclDevKernel_AllReduce_Sum_f32"
        made.kernel(name, at + 21 + gemm_us, 800 - gemm_us, correlation=11 + 2 * step)
        made.event("cuda_runtime", "cudaDeviceSynchronize", at + 60, 765)
    return made


def report(tmp_path: Path, gemm_us: float, known: Known | None = None) -> Report:
    return ingest([program(gemm_us).write(tmp_path / "t.json")], None, known=known)


def past(tmp_path: Path) -> Known:
    """The calls of a run whose products took 200 µs."""
    return Known(past=report(tmp_path, 200).typical, past_run="run 7", past_commit="abc")


def test_it_keeps_what_a_call_takes_for_later_runs(tmp_path: Path) -> None:
    (call,) = [c for c in report(tmp_path, 200).typical if c.name == "aten::mm"]
    assert (call.calls, call.median_ns, call.noise_ns) == (STEPS, 200_000, 0)
    assert call.shapes.replace(" ", "") == "[[512,512],[512,512]]"


def test_it_names_the_operator_that_got_slower(tmp_path: Path) -> None:
    found = report(tmp_path, 300, past(tmp_path)).findings
    (row,) = [f for f in found if f.kind == "regressed_operator"]
    assert (row.subject, row.evidence["past_run"]) == ("aten::mm", "run 7")
    assert row.recoverable_ns_per_step == pytest.approx(100_000, rel=0.02)


def test_it_names_none_as_fast_as_before(tmp_path: Path) -> None:
    found = report(tmp_path, 203, past(tmp_path)).findings
    assert not [f for f in found if f.kind == "regressed_operator"]


def test_it_takes_the_peak_that_is_known_and_says_whose_it_is(tmp_path: Path) -> None:
    peak = PeakFacts(device="mine", label="entered", flops={"float32": 4e12}, bandwidth=1e12)
    found = report(tmp_path, 200, Known(peak=peak))
    assert found.roofline is not None and found.roofline.peak is not None
    assert found.roofline.peak.label == "entered"
    assert found.roofline.operators[-1].efficiency == pytest.approx(2 * 512**3 / 4e12 / 200e-6)
    assert "roofline_gap" in {f.kind for f in found.findings}


def test_it_folds_below_three_times_the_noise(tmp_path: Path) -> None:
    loud = Known(past=past(tmp_path).past, noise=0.2)
    found = report(tmp_path, 300, loud)
    assert not [f for f in found.findings if f.recoverable_ns_per_step]
    assert found.pricing is not None
    assert found.pricing.fold_share == pytest.approx(0.6)
    assert found.pricing.folded


def test_the_command_line_takes_it_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "known.json").write_bytes(dump_known(past(tmp_path)))
    trace = program(300).write(tmp_path / "new.json")
    arguments = ["--known", str(tmp_path / "known.json"), "--out", str(tmp_path / "out")]
    assert main(["analyze", str(trace), *arguments]) == 0
    stored = load_report(tmp_path / "out" / "report.json")
    assert "regressed_operator" in {f.kind for f in stored.findings}


def test_it_refuses_a_file_that_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "known.json").write_text('{"past": 3}')
    with pytest.raises(UserError, match="says nothing"):
        load_known(tmp_path / "known.json")
    with pytest.raises(UserError, match="cannot be read"):
        load_known(tmp_path / "absent.json")


def test_it_gives_back_what_was_stored(tmp_path: Path) -> None:
    call = TypicalCall(name="aten::mm", calls=1, median_ns=5, noise_ns=0)
    peak = PeakFacts(device="x", label="measured", as_of="2026-01-02")
    known = Known(dtype="bfloat16", noise=0.1, peak=peak, past=[call], past_run="run 1")
    (tmp_path / "known.json").write_bytes(dump_known(known))
    assert load_known(tmp_path / "known.json") == known


def test_ranks_that_are_compared_show_who_computes_too_much(tmp_path: Path) -> None:
    paths = [
        program(us, rank=rank).write(tmp_path / f"rank{rank}.json")
        for rank, us in enumerate((200.0, 600.0))
    ]
    combined = ingest(paths, tmp_path / "out")
    (row,) = [f for f in combined.findings if f.kind == "imbalance"]
    assert row.subject == "rank 1"
    assert row.recoverable_ns_per_step == pytest.approx(200_000, rel=0.1)
    alone = load_report(tmp_path / "out" / "rank-0" / "report.json")
    assert "imbalance" not in {f.kind for f in alone.findings}
