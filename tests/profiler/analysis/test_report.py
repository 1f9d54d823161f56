"""The report of built traces whose numbers are known, and its JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profiler.analysis.ingest import ingest
from profiler.analysis.report import Report, dump, load_report
from profiler.cli import main
from profiler.errors import TraceError
from tests.profiler.trace.build import TraceBuilder, busy, small

CONTRACT = [
    "schema", "trace", "span_ns", "timeline", "streams", "kernels", "operators", "steps",
    "launches", "idle", "collectives", "quality", "findings",
]  # fmt: skip


def report_of(made: TraceBuilder, tmp_path: Path) -> Report:
    return ingest([made.write(tmp_path / "t.json")], None)


def test_it_prints_the_keys_of_the_contract(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = small().write(tmp_path / "t.json")
    assert main(["analyze", str(path), "--json"]) == 0
    printed = json.loads(capfdbinary.readouterr().out)
    assert list(printed)[: len(CONTRACT)] == CONTRACT
    assert {"linked", "unlinked", "by_rule", "delay_ns"} <= set(printed["launches"])


def test_it_loads_what_it_stored(tmp_path: Path) -> None:
    report = ingest([busy().write(tmp_path / "t.json")], tmp_path / "out")
    assert load_report(tmp_path / "out" / "report.json") == report
    assert dump(report) == (tmp_path / "out" / "report.json").read_bytes()


@pytest.mark.parametrize("content", [None, b"{}", b"\xff", b"[1]"])
def test_it_refuses_a_damaged_report_in_one_line(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "report.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TraceError, match="analyse it again"):
        raise_line(path)


def raise_line(path: Path) -> None:
    try:
        load_report(path)
    except TraceError as error:
        raise TraceError(error.line()) from None


def test_it_measures_a_small_trace(tmp_path: Path) -> None:
    report = report_of(small(), tmp_path)
    (row,) = report.timeline
    assert (row.span_ns, row.busy_ns, row.compute_ns, row.copy_ns) == (
        164_000,
        59_000,
        51_000,
        8_000,
    )
    (gemm, copy) = report.kernels
    assert (gemm.count, gemm.total_ns, gemm.device_class) == (2, 51_000, "compute")
    assert (copy.name, copy.device_class) == ("Memcpy DtoH", "copy")


def test_it_rolls_device_time_up_to_operators_and_modules(tmp_path: Path) -> None:
    report = report_of(small(), tmp_path)
    rows = {row.name: row for row in report.operators}
    assert rows["aten::addmm"].device_self_ns == 51_000
    assert rows["aten::linear"].device_self_ns == 0
    assert rows["aten::linear"].device_total_ns == 51_000
    modules = {
        row.path: (row.count, row.host_self_ns, row.device_total_ns) for row in report.modules
    }
    assert modules == {"net": (2, 40_000, 51_000), "net.fc": (2, 80_000, 51_000)}


def test_it_counts_backward_device_time_for_the_forward_module(tmp_path: Path) -> None:
    modules = {row.path: row for row in report_of(busy(1), tmp_path).modules}
    assert modules["model.layers.3"].device_total_ns == 17_250 + 21_500


def test_it_reports_shapes(tmp_path: Path) -> None:
    made = TraceBuilder()
    for size in (8, 8, 16):
        event = made.op("aten::relu", made.next_id * 10.0, 2.0)
        event["args"] = {"Input Dims": [[size, 4]], "Input type": ["float"]}
    rows = [(r.shapes, r.dtypes, r.count) for r in report_of(made, tmp_path).operator_shapes]
    assert sorted(rows) == [("[[16, 4]]", '["float"]', 1), ("[[8, 4]]", '["float"]', 2)]


def test_it_finds_steps_and_their_device_time(tmp_path: Path) -> None:
    steps = report_of(small(), tmp_path).steps
    assert [(s.name, s.start_ns, s.dur_ns) for s in steps] == [
        ("ProfilerStep#0", 0, 90_000),
        ("ProfilerStep#1", 100_000, 90_000),
    ]
    assert [s.device_busy_ns for s in steps] == [29_500, 29_500]


@pytest.mark.parametrize(
    ("marks", "phase"),
    [
        (["phase: prefill"], "prefill"),
        (["phase: decode"], "decode"),
        (["phase: forward", "phase: backward", "phase: optimizer"], "training"),
        (["## forward ##", "Optimizer.step#SGD.step"], "training"),
        ([], None),
    ],
)
def test_it_tells_the_phase_of_a_step(tmp_path: Path, marks: list[str], phase: str | None) -> None:
    made = TraceBuilder()
    made.mark("ProfilerStep#1", 0.0, 100.0)
    for n, mark in enumerate(marks):
        made.mark(mark, 1.0 + 10 * n, 5.0)
    assert [step.phase for step in report_of(made, tmp_path).steps] == [phase]


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("execute_context_1(888_788544)_generation_0(0)", "prefill"),
        ("execute_32_context_0(sq0sk0)_generation_32(sq32sk32)", "decode"),
        ("execute_context_2(9)_generation_4(4)", "mixed"),
        ("step[DECODE bs=4]", "decode"),
    ],
)
def test_it_reads_the_marks_of_serving_engines(tmp_path: Path, name: str, phase: str) -> None:
    made = TraceBuilder()
    made.mark(name, 0.0, 100.0)
    assert [(s.name, s.phase) for s in report_of(made, tmp_path).steps] == [(name, phase)]


def test_it_infers_steps_from_repetition(tmp_path: Path) -> None:
    made = TraceBuilder()
    for step in range(4):
        for n, name in enumerate(["load", "mm", "relu", "mm"]):
            made.op(name, step * 100.0 + n * 10, 5.0)
    steps = report_of(made, tmp_path).steps
    assert [(s.name, s.start_ns) for s in steps] == [
        (f"repetition#{n}", n * 100_000) for n in range(4)
    ]


def test_it_infers_no_steps_where_nothing_repeats(tmp_path: Path) -> None:
    made = TraceBuilder()
    for n in range(9):
        made.op(f"op{n}", n * 10.0, 5.0)
    assert report_of(made, tmp_path).steps == []


def memory(made: TraceBuilder, ts: float, change: int, **args: object) -> None:
    values = {"Device Type": 1, "Device Id": 0, "Bytes": change} | args
    made.events.append(
        {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": ts, "args": values}
    )


def test_it_draws_a_memory_curve_from_totals(tmp_path: Path) -> None:
    made = small()
    for n, total in enumerate((100, 700, 300)):
        memory(made, 1000.0 + n, 0, **{"Total Allocated": total, "Total Reserved": 1024})
    (curve,) = report_of(made, tmp_path).memory
    assert (curve.device, curve.peak_allocated_bytes, curve.peak_at_ns) == ("cuda:0", 700, 1000)
    assert curve.peak_reserved_bytes == 1024
    assert [p.allocated_bytes for p in curve.points] == [100, 700, 300]


def test_it_sums_changes_where_totals_are_missing_and_keeps_the_peak(tmp_path: Path) -> None:
    made = small()
    for n in range(5000):
        memory(made, 1000.0 + n / 100, 10 if n < 2501 else -10)
    (curve,) = report_of(made, tmp_path).memory
    assert curve.peak_allocated_bytes == 25_010
    assert curve.peak_reserved_bytes is None
    assert max(p.allocated_bytes for p in curve.points) == 25_010
    assert len(curve.points) <= 2001


def test_it_says_what_is_wrong_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.json").write_text("[]")
    assert main(["analyze", str(tmp_path / "bad.json")]) == 65
    out, err = capfd.readouterr()
    assert out == "" and err.count("\n") == 1 and "no events" in err


def test_it_summarises_for_people(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(small().write(tmp_path / "t.json"))]) == 0
    out = capfd.readouterr().out
    assert "aten::addmm" in out and "busy 59 µs" in out.replace("59.0", "59")


def test_it_says_that_a_folder_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TraceError, match="cannot be written"):
        ingest([small().write(tmp_path / "t.json")], tmp_path / "file" / "out")


def test_it_refuses_an_empty_list() -> None:
    with pytest.raises(TraceError, match="no trace given"):
        ingest([], None)
