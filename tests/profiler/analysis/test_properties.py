"""What must hold for every trace, and what must not change its numbers."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.analysis.ingest import ingest
from profiler.analysis.report import Report
from tests.profiler.trace.build import Json, TraceBuilder


@st.composite
def traces(draw: st.DrawFn) -> TraceBuilder:
    """Operators in operators, launches, kernels on two streams, copies, orphans."""
    made = TraceBuilder()
    whole = st.integers(0, 400)
    for n in range(draw(st.integers(1, 8))):
        start, size = draw(whole), draw(st.integers(1, 90))
        tid = draw(st.integers(1, 2))
        made.op(f"op{n % 3}", start, size, tid=tid)
        made.op("inner", start + size // 4, size // 2, tid=tid)
        if draw(st.booleans()):
            made.launch(n + 1, start + size // 4, 1, tid=tid)
        cat = draw(st.sampled_from(["kernel", "gpu_memcpy", "gpu_memset"]))
        name = draw(st.sampled_from(["gemm", "ncclDevKernel_AllReduce", "relu"]))
        stream = draw(st.integers(7, 8))
        begin, length = start + draw(st.integers(0, 200)), draw(st.integers(0, 60)) / 4
        made.kernel(name, begin, length, cat=cat, correlation=n + 1, stream=stream)
    return made


def report_of(events: list[Json]) -> Report:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.json"
        path.write_text(json.dumps({"traceEvents": events}))
        return ingest([path], None)


def numbers(report: Report) -> Report:
    """The report without what names the file, and without prices.

    Prices rest on the order of calls on a thread. Calls that start and end in the same instants,
    which the generated traces are full of, have no order but that of the file.
    """
    facts = replace(report.trace, path="", sha256="", start_ns=0, events_by_category={})
    return replace(report, trace=facts, findings=[], pricing=None)


@settings(max_examples=60, deadline=None)
@given(traces())
def test_it_conserves_time(made: TraceBuilder) -> None:
    report = report_of(made.events)
    everything = sum(row.total_ns for row in report.streams)
    quality = report.quality
    assert quality.attributed_device_ns + quality.unattributed_device_ns == everything
    assert sum(row.total_ns for row in report.kernels) == everything
    assert sum(row.device_self_ns for row in report.operators) == quality.attributed_device_ns
    for row in report.timeline:
        assert row.busy_ns + row.idle_ns == row.span_ns
        assert row.compute_ns + row.exposed_comm_ns + row.exposed_copy_ns == row.busy_ns
        assert sum(i.total_ns for i in report.idle) == row.idle_ns


@settings(max_examples=60, deadline=None)
@given(traces())
def test_it_keeps_unions_within_sums_and_self_times_positive(made: TraceBuilder) -> None:
    report = report_of(made.events)
    assert all(0 <= row.union_ns <= row.total_ns for row in report.streams)
    assert all(0 <= row.host_self_ns <= row.host_total_ns for row in report.operators)
    assert all(row.union_ns == row.operators_self_ns for row in report.threads)
    assert all(row.device_self_ns <= row.device_total_ns for row in report.operators)


@settings(max_examples=40, deadline=None)
@given(traces(), st.randoms(use_true_random=False))
def test_it_does_not_depend_on_the_order_of_events(made: TraceBuilder, rng: random.Random) -> None:
    shuffled = list(made.events)
    rng.shuffle(shuffled)
    assert numbers(report_of(shuffled)) == numbers(report_of(made.events))


@settings(max_examples=40, deadline=None)
@given(traces(), st.integers(1, 10**9))
def test_it_does_not_depend_on_when_the_trace_began(made: TraceBuilder, shift: int) -> None:
    def later(event: Json) -> Json:
        return {**event, "ts": float(str(event["ts"])) + shift}

    moved = report_of([later(event) for event in made.events])
    assert numbers(moved) == numbers(report_of(made.events))


OTHER_NAMES = {
    "old": {
        "cpu_op": "Operator",
        "cuda_runtime": "Runtime",
        "kernel": "Kernel",
        "gpu_memcpy": "Memcpy",
        "gpu_memset": "Memset",
    },
    "musa": {"cuda_runtime": "musa_runtime"},
    "xpu": {"cuda_runtime": "xpu_runtime"},
    "privateuse1": {"cuda_runtime": "privateuse1_runtime", "kernel": "privateuse1_kernel"},
    "mlu": {"cuda_runtime": "mlu_runtime", "gpu_memcpy": "mlu_memcpy", "gpu_memset": "mlu_memset"},
}


def renamed(names: dict[str, str]) -> Callable[[Json], Json]:
    return lambda event: {**event, "cat": names.get(str(event["cat"]), event["cat"])}


@settings(max_examples=40, deadline=None)
@given(traces(), st.sampled_from(sorted(OTHER_NAMES)))
def test_it_does_not_depend_on_a_vendors_names(made: TraceBuilder, vendor: str) -> None:
    other = report_of(list(map(renamed(OTHER_NAMES[vendor]), made.events)))
    base = report_of(made.events)
    assert other.timeline == base.timeline
    assert other.operators == base.operators
    assert other.kernels == base.kernels
    assert other.idle == base.idle
