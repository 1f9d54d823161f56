"""Reading traces in a limited process: whatever the file, the trace ends ready or rejected."""

from __future__ import annotations

import gzip
import json
import threading
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from dashboard.models import Trace
from dashboard.services import artifacts, traces
from dashboard.services.contract import WorkerIdentity
from profiler.analysis.flame_document import unpack
from tests.factories import make_user
from workers.duty import places
from workers.ingest import ReadLimits, TraceDuty
from workers.server import local_server

pytestmark = pytest.mark.fault

ROOMY = ReadLimits(wall_s=120, memory_bytes=3 << 30)
EVENTS = [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 10, "dur": 5, "pid": 1, "tid": 1},
    {"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": 20, "dur": 3, "pid": 1, "tid": 1},
]
GOOD = json.dumps({"schemaVersion": 1, "traceEvents": EVENTS}).encode()
SPIN = ["-c", "import time; time.sleep(600)"]
GROW = ["-c", "held = []\nwhile True: held.append(bytearray(10 << 20))"]
CRASH = ["-c", "import ctypes; ctypes.string_at(0)"]
NOTHING = ["-c", "pass"]
NICENESS = ["-c", "import os, sys; sys.stderr.write(f'niceness {os.nice(0)}'); sys.exit(65)"]
ENVIRONMENT = ["-c", "import os, sys; sys.stderr.write(repr(dict(os.environ))); sys.exit(65)"]


def upload(content: bytes, name: str = "mine.json") -> Trace:
    return traces.add_upload(SimpleUploadedFile(name, content), make_user())


def read(
    trace: Trace, limits: ReadLimits = ROOMY, reader: list[str] | None = None
) -> tuple[str, str]:
    """State and reason after one attempt."""
    duty = TraceDuty(
        local_server(),
        WorkerIdentity(name="test:1", platform=""),
        places(),
        limits,
        stop=threading.Event(),
    )
    if reader is not None:
        duty.reader = reader
    assert duty.handle(trace.pk, 1)
    trace.refresh_from_db()
    return trace.state, trace.reason


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_it_reads_a_trace(bench: object, var_dir: Path, pack: type[bytes]) -> None:
    trace = upload(pack(GOOD))
    assert read(trace) == ("ready", "")
    names = set(trace.operators.values_list("name", flat=True))
    assert names == {"aten::mm", "aten::add"}
    assert not list((var_dir / "spool").iterdir())


@pytest.mark.parametrize(
    "content",
    [b"{]", gzip.compress(bytes(100)), b'{"traceEvents": 3}', b"[" * 100_000],
    ids=["no JSON", "no JSON inside", "no events", "deep"],
)
def test_it_rejects_a_broken_trace_in_one_line(bench: object, content: bytes) -> None:
    state, reason = read(upload(content))
    assert state == "rejected"
    assert reason
    assert "\n" not in reason
    assert "Traceback" not in reason


def test_it_rejects_what_takes_too_long(bench: object) -> None:
    limits = ReadLimits(wall_s=0.5, memory_bytes=3 << 30)
    state, reason = read(upload(GOOD), limits, SPIN)
    assert (state, reason) == ("rejected", "Reading it took longer than 500 ms")


def test_it_rejects_what_needs_too_much_memory(bench: object) -> None:
    limits = ReadLimits(wall_s=60, memory_bytes=1 << 28)
    state, reason = read(upload(GOOD), limits, GROW)
    assert (state, reason) == ("rejected", "Reading it needs more than 256 MiB of memory")


def test_it_rejects_what_crashes_the_reader(bench: object) -> None:
    state, reason = read(upload(GOOD), ROOMY, CRASH)
    assert state == "rejected"
    assert reason.startswith("The reader crashed (signal 11)")


def test_it_rejects_when_nothing_was_written(bench: object) -> None:
    state, reason = read(upload(GOOD), ROOMY, NOTHING)
    assert state == "rejected"
    assert "wrote no flame.speedscope.json.gz, report.json" in reason


def test_it_gives_the_reader_no_secret(bench: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "canary")
    monkeypatch.setenv("DATABASE_URL", "canary")
    _, reason = read(upload(GOOD), ROOMY, ENVIRONMENT)
    assert "PYTHONFAULTHANDLER" in reason
    assert "canary" not in reason


def test_it_reads_behind_whatever_is_measured(bench: object) -> None:
    assert read(upload(GOOD), ROOMY, NICENESS) == ("rejected", "niceness 19")


def test_it_says_that_the_stored_bytes_are_damaged(bench: object, var_dir: Path) -> None:
    trace = upload(GOOD)
    sha256 = trace.raw.sha256
    (var_dir / "artifacts" / sha256[:2] / sha256).write_bytes(GOOD + b" ")
    state, reason = read(trace)
    assert state == "rejected"
    assert "damaged on disk" in reason


def test_it_keeps_what_the_flame_graph_draws(bench: object) -> None:
    trace = upload(GOOD)
    assert read(trace)[0] == "ready"
    trace.refresh_from_db()
    assert trace.graph is not None
    graph = unpack(artifacts.read(trace.graph.sha256))
    assert [view.kind for view in graph.views] == ["host"]


def test_it_does_not_take_a_trace_twice(bench: object) -> None:
    trace = upload(GOOD)
    identity = WorkerIdentity(name="other:1", platform="")
    assert traces.claim_trace(trace.pk, 1, identity) is not None
    duty = TraceDuty(local_server(), identity, places(), ROOMY, stop=threading.Event())
    assert not duty.handle(trace.pk, 1)
