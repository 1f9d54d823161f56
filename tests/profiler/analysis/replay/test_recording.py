"""What recording cost is taken out of the steps before anything is priced."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from profiler.analysis.findings import Context, scene_of
from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.what_if import WhatIf, what_if
from profiler.analysis.ingest import ingest
from profiler.analysis.known import Known
from profiler.analysis.replay.recording import COLD_NS, COLDEST, MOST_NS, NESTED, without_recording
from profiler.trace.link import link
from profiler.trace.normalise import normalise
from profiler.trace.read import read
from tests.profiler.trace.build import TraceBuilder

CALLS, STEPS = 50, 4
LONG_US, SHORT_US, PYTHON_US = 30.0, 10.0, 6.0
RECORD_US, BETWEEN_US = 4.0, 100.0
MARK = 3
"""Records of an operator that a mark costs inside of its frame, at either end."""
TIMED_NS = 1_000 * CALLS * ((LONG_US + SHORT_US) / 2 + PYTHON_US)
RECORDED_NS = TIMED_NS + 1_000 * (BETWEEN_US + (CALLS + 2 * MARK) * RECORD_US)


def recorded(path: Path, record_us: float = RECORD_US, between_us: float = BETWEEN_US) -> Path:
    """Steps of long and short operators; each record costs half before and half after its own."""
    made = TraceBuilder()
    at = 1_000.0
    for step in range(STEPS):
        begin, at = at, at + between_us / 4
        phase = at
        at += MARK * record_us
        for call in range(CALLS):
            name, took = ("aten::short", SHORT_US) if call % 2 else ("aten::long", LONG_US)
            made.op(name, at + record_us / 2, took)
            at += took + record_us + PYTHON_US
        at += MARK * record_us
        made.mark("phase: decode", phase, at - phase)
        at += 3 * between_us / 4
        made.mark(f"ProfilerStep#{step}", begin, at - begin)
    return made.write(path)


def scene(path: Path, timed_ns: float | None) -> Scene:
    trace = normalise(read(path))
    found = scene_of(trace, link(trace), context=Context(step_ns=timed_ns))
    assert found is not None
    return found


def test_it_finds_what_a_record_costs_and_what_lies_between_steps(tmp_path: Path) -> None:
    found = scene(recorded(tmp_path / "t.json"), TIMED_NS).recording
    assert found is not None
    assert found.event_ns == pytest.approx(1_000 * RECORD_US, rel=0.03)
    assert found.between_ns == pytest.approx(1_000 * BETWEEN_US, rel=0.01)
    assert found.recorded_ns == RECORDED_NS
    assert found.cold == 0
    assert found.left == pytest.approx(1.0, abs=0.01)


def test_it_prices_in_the_timed_step(tmp_path: Path) -> None:
    gone = WhatIf(target="host_of_operator", name="aten::short", factor=0.0)
    price = what_if(scene(recorded(tmp_path / "t.json"), TIMED_NS), gone)
    assert price.gain_ns_per_step == 1_000 * SHORT_US * CALLS / 2
    assert price.gain_ns_per_step + price.step_ns == pytest.approx(TIMED_NS, rel=0.01)
    raw = what_if(scene(recorded(tmp_path / "t.json"), None), gone)
    assert raw.share == pytest.approx(price.share * TIMED_NS / RECORDED_NS, rel=0.01)


def test_it_leaves_a_step_that_recording_did_not_slow(tmp_path: Path) -> None:
    path = recorded(tmp_path / "t.json", record_us=0.2, between_us=2.0)
    assert scene(path, TIMED_NS).recording is None
    assert scene(path, None).recording is None


def test_it_replays_the_step_that_is_left_exactly(tmp_path: Path) -> None:
    report = ingest([recorded(tmp_path / "t.json")], None, known=Known(step_ns=TIMED_NS))
    pricing = report.pricing
    assert pricing is not None
    assert pricing.exact
    assert pricing.step_ns == pytest.approx(TIMED_NS, rel=0.01)
    assert (pricing.timed_step_ns, pricing.recorded_step_ns) == (TIMED_NS, RECORDED_NS)


def test_it_says_what_records_cannot_explain(tmp_path: Path) -> None:
    found = scene(recorded(tmp_path / "t.json"), TIMED_NS / 20).recording
    assert found is not None
    assert (found.event_ns, found.cold) == (MOST_NS, COLDEST)
    assert found.left > 1.5


GAP_US, NESTED_US, CODE_US = 0.5, 2.0, 10.0


def nested(path: Path) -> Path:
    """Operators in operators: a gap of one record before and after the inner one, then code."""
    made = TraceBuilder()
    at = 1_000.0
    for step in range(STEPS):
        begin = at
        for _ in range(CALLS):
            at += GAP_US
            made.op("aten::outer", at, NESTED_US + 2 * GAP_US)
            made.op("aten::inner", at + GAP_US, NESTED_US)
            at += NESTED_US + 3 * GAP_US + CODE_US
        made.mark("phase: decode", begin, at - begin)
        made.mark(f"ProfilerStep#{step}", begin, at - begin)
    return made.write(path)


def test_it_takes_no_more_for_a_record_than_lies_around_nested_operators(tmp_path: Path) -> None:
    left_us = CALLS * (NESTED_US + CODE_US)
    found = scene(nested(tmp_path / "t.json"), 1_000 * left_us * 0.8).recording
    assert found is not None
    assert found.event_ns == pytest.approx(2_000 * GAP_US)
    # Without its records a step is `left_us`: a fifth of that has another cause.
    assert found.cold == pytest.approx(0.2, abs=0.02)
    assert found.left == pytest.approx(1.0, abs=0.01)


def test_cold_caches_slow_the_begin_of_long_code_alone(tmp_path: Path) -> None:
    made = TraceBuilder()
    for step in range(3):
        at = 1_000.0 + 2_000 * step
        made.mark(f"ProfilerStep#{step}", at, 1_600)
        made.mark("phase: decode", at, 1_600)
        for call in range(NESTED):
            made.op("aten::outer", at + 10 * call, 6)
            made.op("aten::inner", at + 10 * call + 0.001, 5)
        made.op("aten::mm", at + 1_020, 500)
    found = scene(made.write(tmp_path / "t.json"), 1_200_000)
    assert found.recording is not None
    (mm,) = (found.host_ns(found.segments_of(found.named(re.compile("aten::mm")))) / 3,)
    assert 500_000 - 0.9 * COLD_NS <= mm < 500_000


def test_it_leaves_device_work_as_it_was(tmp_path: Path) -> None:
    made = TraceBuilder()
    for step in range(3):
        at = 1_000.0 + 200 * step
        made.mark(f"ProfilerStep#{step}", at, 200)
        made.mark("phase: prefill", at, 200)
        made.op("aten::mm", at + 10, 20)
        made.launch(step + 1, at + 15, 5)
        made.kernel("gemm", at + 40, 130, correlation=step + 1)
    trace = normalise(read(made.write(tmp_path / "t.json")))
    structure = link(trace)
    before = scene_of(trace, structure)
    assert before is not None
    found = without_recording(trace, structure, before.graph, 150_000)
    assert found is not None
    hosts = before.graph.hosts
    assert (found[0].length[hosts:] == before.graph.length[hosts:]).all()
