"""A copy without personal details is written by the limited reader, when somebody wants it."""

from __future__ import annotations

import gzip
import json
import threading

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from dashboard.models import Trace
from dashboard.services import artifacts, traces
from dashboard.services.contract import WorkerIdentity
from tests.factories import make_user
from workers.duty import places
from workers.ingest import ReadLimits, TraceDuty
from workers.server import local_server

pytestmark = pytest.mark.fault

EVENT = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 10, "dur": 5, "pid": 1, "tid": 1}
CANARY = "hf_" + "a" * 30
PRIVATE = json.dumps(
    {"schemaVersion": 1, "env": {"HF_TOKEN": CANARY}, "traceEvents": [EVENT]}
).encode()


def read(trace: Trace) -> None:
    limits = ReadLimits(wall_s=120, memory_bytes=3 << 30)
    identity = WorkerIdentity(name="test:1", platform="")
    duty = TraceDuty(local_server(), identity, places(), limits, stop=threading.Event())
    assert duty.handle(trace.pk, 1)
    trace.refresh_from_db()


def test_it_writes_a_copy_without_the_token(bench: object) -> None:
    trace = traces.add_upload(SimpleUploadedFile("mine.json", PRIVATE), make_user())
    read(trace)
    assert (trace.state, trace.redacted) == ("ready", None)
    traces.redact(trace.pk, make_user())
    read(trace)
    assert trace.state == "ready"
    assert trace.redacted is not None
    copy = gzip.decompress(artifacts.read(trace.redacted.sha256)).decode()
    assert "aten::mm" in copy
    assert CANARY not in copy
    assert CANARY in artifacts.read(trace.raw.sha256).decode()
