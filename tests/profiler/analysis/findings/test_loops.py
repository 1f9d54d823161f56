"""Repeated calls on the processor: a loop over data, or the layers of a model."""

from __future__ import annotations

from pathlib import Path

from profiler.analysis.ingest import ingest
from profiler.analysis.report import FindingRow
from tests.profiler.trace.build import TraceBuilder

CALLS = 48
STEPS = 3


def findings(tmp_path: Path, name: str, call_us: float) -> list[FindingRow]:
    """What is found in steps that call one operator again and again outside of modules."""
    made = TraceBuilder()
    step_us = CALLS * (call_us + 1) + 200
    for step in range(STEPS):
        start = step * (step_us + 10)
        made.mark(f"ProfilerStep#{step}", start, step_us)
        made.mark("module: model.layers.0", start + 5, 50)
        for call in range(CALLS):
            at = start + 100 + call * (call_us + 1)
            shapes = {"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"]}
            made.event("cpu_op", name, at, call_us, args=shapes)
    report = ingest([made.write(tmp_path / "trace.json")], None)
    return [row for row in report.findings if row.title.startswith("Loop of")]


def test_large_calls_that_repeat_are_no_loop(tmp_path: Path) -> None:
    assert not findings(tmp_path, "aten::mm", 2_000)


def test_small_calls_that_repeat_are_a_loop(tmp_path: Path) -> None:
    (row,) = findings(tmp_path, "aten::add", 8)
    assert row.kind == "host_overhead" and f"{CALLS} small calls" in row.title
    assert row.recoverable_ns_per_step
    assert row.recoverable_ns_per_step < CALLS * 9_000
