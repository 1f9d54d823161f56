"""Damaged and hostile bytes: a report or a `TraceError`, never anything else."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from profiler.analysis.ingest import ingest
from profiler.analysis.report import dump
from profiler.errors import TraceError
from tests.profiler.trace.build import small

TEXT = json.dumps(small().data()).encode()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
KEYS = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args")
EVENTS = st.lists(
    st.fixed_dictionaries(
        {"ph": st.sampled_from("XXXsfiMBECbne")},
        optional={
            "cat": st.sampled_from(["cpu_op", "kernel", "cuda_runtime", "ac2g", "Trace"]) | JSON,
            "name": st.sampled_from(["a", "[memory]", "process_name", "ProfilerStep#1"]) | JSON,
            "pid": st.integers(0, 2) | JSON,
            "tid": st.integers(0, 2) | JSON,
            "ts": st.integers(0, 50) | JSON,
            "dur": st.integers(-2, 50) | JSON,
            "id": st.integers(0, 3) | JSON,
            "args": st.dictionaries(
                st.sampled_from(["correlation", "External id", "stream", "device", "Bytes"]), JSON
            ),
        },
    ),
    max_size=12,
)


def attempt(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.json"
        path.write_bytes(content)
        try:
            report = ingest([path], Path(folder) / "out")
        except TraceError as error:
            assert "\n" not in error.line()
        else:
            assert json.loads(dump(report))["schema"] == 1


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=64))
def test_it_takes_any_bytes(content: bytes) -> None:
    attempt(content)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(TEXT) - 1), st.binary(min_size=1, max_size=4))
def test_it_takes_a_trace_with_overwritten_bytes(at: int, patch: bytes) -> None:
    attempt(TEXT[:at] + patch + TEXT[at + len(patch) :])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, len(TEXT)))
def test_it_takes_a_trace_cut_anywhere(at: int) -> None:
    attempt(TEXT[:at])
    attempt(gzip.compress(TEXT)[:at])


@settings(max_examples=80, deadline=None)
@given(EVENTS)
@example([{"ph": "X", "cat": "kernel", "name": "k", "ts": 1e300, "dur": 1, "pid": 0, "tid": 0}])
@example([{"ph": "X", "cat": "cpu_op", "name": "\ud800", "ts": 1, "dur": 1, "pid": 0, "tid": 0}])
def test_it_takes_events_with_values_of_any_type(events: list[dict[str, object]]) -> None:
    attempt(json.dumps({"traceEvents": events}).encode())
