"""One step cut out of a trace: its events in the format of the viewers, nothing else."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from dashboard.models import Trace
from dashboard.queries import cuts
from profiler.analysis.ingest import ingest
from tests.dashboard.reading import page_of
from tests.factories import make_ready_trace, store_artifact
from tests.profiler.trace.build import small


@pytest.fixture
def trace(tmp_path: Path, db: None) -> Trace:
    made = small()
    made.event("python_function", "/home/ann/x.py(1): f", 1001, 20, args={"Python id": 1})
    made.op("aten::secret", 1050, 5, **{"Concrete Inputs": 7})
    report = ingest([made.write(tmp_path / "t.json")], tmp_path / "out")
    found = make_ready_trace(report=report)
    columns = store_artifact((tmp_path / "out" / "events.parquet").read_bytes())
    Trace.objects.filter(pk=found.pk).update(columns=columns, rank=3)
    found.refresh_from_db()
    return found


def cut(client: Client, trace: Trace, number: int = 1) -> dict[str, Any]:
    response = client.get(f"/traces/{trace.pk}/steps/{number}.json.gz")
    assert response.status_code == 200
    loaded: dict[str, Any] = json.loads(gzip.decompress(response.content))
    return loaded


def named(document: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [event for event in document["traceEvents"] if event["name"] == name]


def test_it_holds_the_events_of_one_step(trace: Trace, viewer_client: Client) -> None:
    first, second = cut(viewer_client, trace, 1), cut(viewer_client, trace, 2)
    (gemm,) = named(first, "gemm")
    assert (gemm["ts"], gemm["dur"]) == (20.0, 25.5)
    assert len(named(first, "aten::secret")) == 1 and not named(second, "aten::secret")
    assert second["otherData"] == {"step": "ProfilerStep#1", "rank": 3, "left_out": 0}


def test_it_names_processes_and_threads(trace: Trace, viewer_client: Client) -> None:
    document = cut(viewer_client, trace)
    (gemm,) = named(document, "gemm")
    rows = {(event["pid"], event["tid"]) for event in named(document, "thread_name")}
    assert (gemm["pid"], gemm["tid"]) in rows


def test_it_leaves_arguments_and_python_frames_behind(trace: Trace, viewer_client: Client) -> None:
    text = json.dumps(cut(viewer_client, trace))
    assert "/home/ann" not in text and "Concrete" not in text
    (gemm,) = named(cut(viewer_client, trace), "gemm")
    assert set(gemm["args"]) == {"correlation"}


def test_it_is_limited_and_says_so(
    trace: Trace, viewer_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = len([e for e in cut(viewer_client, trace)["traceEvents"] if e["ph"] == "X"])
    monkeypatch.setattr(cuts, "EVENTS_LIMIT", 2)
    document = cut(viewer_client, trace)
    assert [event["ph"] for event in document["traceEvents"]].count("X") == 2
    assert document["otherData"]["left_out"] == whole - 2


def test_the_steps_offer_it(trace: Trace, viewer_client: Client) -> None:
    page = page_of(viewer_client, f"/traces/{trace.pk}/panels/steps/")
    assert f'href="/traces/{trace.pk}/steps/1.json.gz" download>' in page
    Trace.objects.filter(pk=trace.pk).update(columns=None)
    assert ".json.gz" not in page_of(viewer_client, f"/traces/{trace.pk}/panels/steps/")


@pytest.mark.parametrize("number", [0, 3, 10**9])
def test_it_says_which_steps_there_are_not(
    number: int, trace: Trace, viewer_client: Client
) -> None:
    assert viewer_client.get(f"/traces/{trace.pk}/steps/{number}.json.gz").status_code == 404


def test_it_says_when_the_events_are_gone(trace: Trace, viewer_client: Client) -> None:
    Trace.objects.filter(pk=trace.pk).update(columns=store_artifact(b"no parquet"))
    response = viewer_client.get(f"/traces/{trace.pk}/steps/1.json.gz")
    assert response.status_code == 410
    assert "cannot be read" in response.content.decode()
