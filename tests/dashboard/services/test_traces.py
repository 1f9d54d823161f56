"""Uploading, claiming, reading and rejecting traces."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from pytest_django.fixtures import Settings

from dashboard.models import Audit, Operator, Outbox, Trace, TraceState
from dashboard.services import artifacts, traces
from dashboard.services.contract import StoredFile, SupersededError, TraceClaim, TraceOutcome
from dashboard.services.traces import TooLargeError, TraceStateError
from profiler.analysis.ingest import ingest
from profiler.errors import UserError
from tests.dashboard.services import scene

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store_root")]


def event(name: str, ts: int, dur: int) -> dict[str, object]:
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur}


CONTENT = json.dumps(
    {"traceEvents": [event("aten::linear", 10, 100), event("aten::mm", 20, 60)]}
).encode()


def upload(content: bytes = CONTENT, name: str = "run.json") -> Trace:
    return traces.add_upload(SimpleUploadedFile(name, content), scene.user())


def claimed(trace: Trace) -> TraceClaim:
    claim = traces.claim_trace(trace.pk, trace.attempt + 1, scene.WORKER)
    assert claim is not None
    return claim


def ready(tmp_path: Path, content: bytes = CONTENT) -> TraceOutcome:
    """What the ingest really writes for `content`."""
    source = tmp_path / "source.json"
    source.write_bytes(content)
    out = tmp_path / "out"
    ingest([source], out)
    files = tuple(StoredFile(name=path.name, path=path) for path in out.iterdir())
    return TraceOutcome(state="ready", files=files)


def test_an_upload_waits_for_its_reader() -> None:
    trace = upload()
    assert trace.state == TraceState.PENDING
    assert Outbox.objects.get().subject_id == trace.pk
    assert Audit.objects.get().action == "trace.upload"
    assert artifacts.read(trace.raw.sha256) == CONTENT


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "con", "a" * 400, "\x00", "x\u202egnp.json", "<script>.json"]
)
def test_a_hostile_file_name_is_only_a_label(store_root: Path, name: str) -> None:
    trace = upload(name=name)
    files = [path.name for path in store_root.rglob("*") if path.is_file()]
    assert files == [trace.raw.sha256]
    assert trace.name.isprintable() and len(trace.name) <= 255


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"<html><script>", "neither JSON nor gzip"),
        (b"PK\x03\x04zip", "neither JSON nor gzip"),
        (b"\x80\x04pickle", "neither JSON nor gzip"),
    ],
)
def test_it_refuses_what_is_no_trace_by_its_content(content: bytes, said: str) -> None:
    with pytest.raises(UserError, match=said):
        upload(content)
    assert not Trace.objects.exists()


@pytest.mark.parametrize(
    "content", [b"[]", b"  \n{", b"\xef\xbb\xbf{}", gzip.compress(b"{}", mtime=0)]
)
def test_it_takes_json_and_gzip_whatever_the_name(content: bytes) -> None:
    assert upload(content, name="anything.html").state == TraceState.PENDING


def test_it_counts_the_bytes_itself(settings: Settings, tmp_path: Path) -> None:
    settings.UPLOAD_LIMIT_BYTES = 1 << 20
    with pytest.raises(TooLargeError, match="larger than 1 MiB"):
        upload(b"{" + b" " * (1 << 20))
    assert not any((tmp_path / "uploads").iterdir())


def test_only_one_reader_gets_a_trace() -> None:
    trace = upload()
    assert traces.claim_trace(trace.pk, 1, scene.WORKER) is not None
    assert traces.claim_trace(trace.pk, 1, scene.WORKER) is None
    assert traces.claim_trace(trace.pk + 1, 1, scene.WORKER) is None


def test_it_stores_what_was_read(tmp_path: Path) -> None:
    trace = upload()
    claim = claimed(trace)
    traces.deliver_trace(trace.pk, claim.fence, ready(tmp_path))
    trace.refresh_from_db()
    rows = {row.name: row for row in Operator.objects.filter(trace=trace)}
    assert trace.state == TraceState.READY and trace.lease_until is None
    assert (trace.events, trace.span_ns, trace.device_kind) == (2, 100_000, "cpu")
    assert (rows["aten::linear"].host_total_ns, rows["aten::linear"].host_self_ns) == (
        100_000,
        40_000,
    )
    assert rows["aten::mm"].host_self_ns == 60_000


def test_long_names_that_share_their_start_stay_apart(tmp_path: Path) -> None:
    trace = upload()
    names = ["k" * 600 + end for end in "ab"]
    content = json.dumps({"traceEvents": [event(name, 0, 5) for name in names]}).encode()
    traces.deliver_trace(trace.pk, claimed(trace).fence, ready(tmp_path, content))
    assert Operator.objects.filter(trace=trace).count() == 2


def test_a_rejected_trace_says_why() -> None:
    trace = upload()
    outcome = TraceOutcome(state="rejected", reason="no events", hint="record again")
    traces.deliver_trace(trace.pk, claimed(trace).fence, outcome)
    trace.refresh_from_db()
    assert (trace.state, trace.reason, trace.hint) == ("rejected", "no events", "record again")


def test_a_reader_that_was_replaced_cannot_write(tmp_path: Path) -> None:
    trace = upload()
    claim = claimed(trace)
    Trace.objects.filter(pk=trace.pk).update(fence=claim.fence + 1)
    for outcome in (ready(tmp_path), TraceOutcome(state="rejected", reason="x")):
        with pytest.raises(SupersededError):
            traces.deliver_trace(trace.pk, claim.fence, outcome)
    with pytest.raises(SupersededError):
        traces.renew_trace(trace.pk, claim.fence)


def test_it_reads_a_trace_again_on_request(tmp_path: Path) -> None:
    trace = upload()
    traces.deliver_trace(trace.pk, claimed(trace).fence, ready(tmp_path))
    again = traces.reingest(trace.pk, scene.user())
    assert again.state == TraceState.PENDING
    claim = claimed(again)
    traces.deliver_trace(trace.pk, claim.fence, ready(tmp_path))
    assert Operator.objects.filter(trace=trace).count() == 2


def test_it_does_not_start_reading_twice() -> None:
    trace = upload()
    with pytest.raises(TraceStateError, match="being read already"):
        traces.reingest(trace.pk, scene.user())
