"""The wall time of the steps split without rest, whatever overlaps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiler.analysis.stepprofile import StepProfile, profile_of_trace
from profiler.analysis.window import owned
from profiler.trace.intervals import union_ns
from tests.profiler.trace.build import TraceBuilder

Pieces = st.lists(
    st.tuples(
        st.integers(0, 1100), st.integers(1, 200), st.integers(7, 9),
        st.sampled_from(["gemm", "ncclDevKernel_AllReduce", "Memcpy HtoD"]),
    ),
    max_size=15,
)  # fmt: skip
LENIENT = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def overlapping(pieces: list[tuple[int, int, int, str]]) -> TraceBuilder:
    """One step of 1 ms in which an operator launches these (start, µs, stream, name)."""
    made = TraceBuilder()
    made.mark("ProfilerStep#0", 1000, 1000)
    made.op("aten::op", 1001, 900)
    for number, (start, length, stream, name) in enumerate(pieces):
        cat = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
        made.launch(number + 1, 1002 + number, 1)
        made.kernel(name, 1000 + start, length, cat=cat, stream=stream, correlation=number + 1)
    return made


def whole(profile: StepProfile) -> int:
    """Everything that is counted in the window."""
    shown = sum(row.shown_ns for row in profile.operators)
    return shown + sum(part.total_ns for part in profile.parts)


@LENIENT
@given(Pieces)
def test_it_counts_every_instant_of_the_window_once(
    tmp_path: Path, pieces: list[tuple[int, int, int, str]]
) -> None:
    profile = profile_of_trace(overlapping(pieces).write(tmp_path / "trace.json"))
    assert whole(profile) == profile.window_ns == 1_000_000
    assert all(part.total_ns > 0 for part in profile.parts)


def test_it_counts_hidden_communication_and_copies_once(tmp_path: Path) -> None:
    pieces = [
        (100, 100, 7, "gemm"),
        (150, 100, 8, "ncclDevKernel_AllReduce"),
        (200, 100, 9, "Memcpy HtoD"),
    ]
    profile = profile_of_trace(overlapping(pieces).write(tmp_path / "trace.json"))
    parts = {part.kind: part.total_ns for part in profile.parts}
    assert sum(row.shown_ns for row in profile.operators) == 100_000
    assert (parts["communication"], parts["copy"], parts["idle"]) == (50_000, 50_000, 800_000)


def test_it_counts_host_threads_after_the_thread_of_the_steps(tmp_path: Path) -> None:
    made = TraceBuilder()
    made.mark("ProfilerStep#0", 0, 1000)
    made.op("aten::outer", 100, 200)
    made.op("aten::inner", 150, 100)
    made.op("aten::other", 200, 300, tid=2)
    profile = profile_of_trace(made.write(tmp_path / "trace.json"))
    shown = {row.operator: row.shown_ns for row in profile.operators}
    assert shown == {"aten::outer": 100_000, "aten::inner": 100_000, "aten::other": 200_000}
    assert [part.total_ns for part in profile.parts] == [600_000]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=12),
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 5)), max_size=3),
)
def test_it_owns_the_union_less_what_comes_first(
    pieces: list[tuple[int, int]], first: list[tuple[int, int]]
) -> None:
    ts = np.array([a for a, _ in pieces], np.int64)
    end = ts + np.array([n for _, n in pieces], np.int64)
    ends = np.cumsum([sum(pair) for pair in first]).astype(np.int64)
    by_ts = ends - np.array([n for _, n in first], np.int64)
    got = owned(ts, end, by_ts, ends)
    both = union_ns(np.concatenate([ts, by_ts]), np.concatenate([end, ends]))
    assert got.sum() == both - int((ends - by_ts).sum())
    assert (got >= 0).all()


@pytest.mark.parametrize("steps", [1, 60])
def test_it_leaves_out_steps_beyond_its_limit_and_says_so(tmp_path: Path, steps: int) -> None:
    made = TraceBuilder()
    for step in range(steps):
        made.mark(f"ProfilerStep#{step}", step * 100, 100)
        made.op("aten::op", step * 100 + 10, 50)
    profile = profile_of_trace(made.write(tmp_path / "trace.json"))
    assert (len(profile.steps), profile.left_out_steps) == (min(steps, 50), max(0, steps - 50))
    assert profile.operators[0].host_ns == (50_000,) * min(steps, 50)
    assert whole(profile) == profile.window_ns
