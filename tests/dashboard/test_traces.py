"""Traces: uploads, the list, one trace with its panels, and its files."""

from __future__ import annotations

import dataclasses
import gzip
import io

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.http import HttpResponseBase
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from dashboard.models import Outbox, Trace, TraceState, User
from dashboard.panels.timeline import device_bars
from profiler.analysis.report import DeviceTimeline, IdleRow, Launches
from tests.dashboard.reading import HTMX, page_of
from tests.factories import (
    make_operator,
    make_ready_trace,
    make_report,
    make_result,
    make_run,
    make_trace,
    make_user,
    store_artifact,
)

HOSTILE = '"><img src=x onerror=alert(1)>\u202egpj.json'


def upload(client: Client, data: bytes, name: str = "trace.json", **extra: str) -> HttpResponseBase:
    file = SimpleUploadedFile(name, data, "application/json")
    response: HttpResponseBase = client.post("/traces/upload/", {"file": file}, headers=extra)
    return response


# Uploads


def test_it_stores_an_upload_and_queues_its_reading(
    operator_client: Client, operator: User
) -> None:
    response = upload(operator_client, gzip.compress(b'{"traceEvents": []}'), "t.json.gz")
    trace = Trace.objects.get()
    assert response.headers["Location"] == f"/traces/{trace.pk}/"
    assert (trace.state, trace.uploaded_by, trace.name) == ("pending", operator, "t.json.gz")
    assert Outbox.objects.filter(subject_id=trace.pk).count() == 1


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "The file is empty"),
        (b"<html>", "neither JSON nor gzip"),
        (b"PK\x03\x04", "neither JSON nor gzip"),
        (b"<svg onload=alert(1)>", "neither JSON nor gzip"),
    ],
)
def test_it_refuses_what_is_no_trace(data: bytes, words: str, operator_client: Client) -> None:
    file = SimpleUploadedFile("a.json", data)
    response = operator_client.post("/traces/upload/", {"file": file})
    assert response.status_code == 422
    assert words in response.content.decode()
    assert not Trace.objects.exists()


def test_it_asks_for_a_file(operator_client: Client) -> None:
    response = operator_client.post("/traces/upload/")
    assert response.status_code == 422
    assert "Choose a file first." in response.content.decode()


def test_it_refuses_an_announced_size_before_reading(
    operator_client: Client, settings: Settings
) -> None:
    settings.UPLOAD_LIMIT_BYTES = 1024
    response = operator_client.post("/traces/upload/", {"file": io.BytesIO(b"{" * 200_000)})
    assert response.status_code == 413
    assert "larger than 1.00 KiB" in response.content.decode()
    assert not Trace.objects.exists()


def test_it_counts_what_arrives(operator_client: Client, settings: Settings) -> None:
    settings.UPLOAD_LIMIT_BYTES = 1024
    response = operator_client.post("/traces/upload/", {"file": io.BytesIO(b"{" * 1100)})
    assert response.status_code == 413
    assert "Nothing was stored" in response.content.decode()
    assert not Trace.objects.exists()


def test_it_wants_to_know_the_length(operator_client: Client) -> None:
    response = operator_client.post(
        "/traces/upload/",
        b"",
        content_type="multipart/form-data; boundary=x",
        headers={"Transfer-Encoding": "chunked"},
    )
    assert response.status_code == 411


def test_it_reads_no_body_of_those_who_may_not(viewer_client: Client, settings: Settings) -> None:
    settings.UPLOAD_LIMIT_BYTES = 1024
    response = viewer_client.post("/traces/upload/", {"file": io.BytesIO(b"{" * 200_000)})
    assert response.status_code == 403


@pytest.mark.parametrize(
    "name", ["../../etc/cron.d/x.json", "con.json", "a\tb.json", "x" * 300 + ".json", HOSTILE]
)
def test_it_keeps_a_name_as_text_only(name: str, operator_client: Client) -> None:
    upload(operator_client, b'{"traceEvents": []}', name)
    trace = Trace.objects.get()
    assert "/" not in trace.name
    assert len(trace.name) <= 255
    for address in ("/traces/", f"/traces/{trace.pk}/"):
        page = page_of(operator_client, address)
        assert "<img" not in page
        assert "\u202e" not in page


# The list


def test_it_says_what_to_do_without_traces(viewer_client: Client) -> None:
    page = page_of(viewer_client, "/traces/")
    assert "No traces yet" in page
    assert "Upload a trace recorded elsewhere" not in page


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["of-run.json", "other.json"]),
        ("?state=rejected", ["other.json"]),
        ("?source=run", ["of-run.json"]),
        ("?source=uploaded", ["other.json"]),
        ("?q=OF-RUN", ["of-run.json"]),
        ("?q=zelda", ["other.json"]),
        ("?sort=trace", ["other.json", "of-run.json"]),
        ("?sort=name", ["of-run.json", "other.json"]),
        ("?sort=raw", ["of-run.json", "other.json"]),
        ("?state=lost", ["of-run.json", "other.json"]),
    ],
)
def test_it_filters_and_sorts(query: str, names: list[str], viewer_client: Client) -> None:
    make_trace(TraceState.REJECTED, name="other.json", uploaded_by=make_user("zelda"))
    make_trace(run=make_run(), name="of-run.json")
    rows = viewer_client.get(f"/traces/{query}").context["page"].rows
    assert [row.name for row in rows] == names


def test_it_says_that_a_filter_cannot_be(viewer_client: Client) -> None:
    assert "The filter cannot be used" in page_of(viewer_client, "/traces/?sort=raw__sha256")


def test_it_asks_the_database_as_often_for_one_trace_as_for_five(viewer_client: Client) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            viewer_client.get("/traces/")
        return len(queries)

    make_trace(run=make_run(), uploaded_by=make_user())
    viewer_client.get("/traces/")
    once = asked()
    for _ in range(4):
        make_trace(run=make_run(), uploaded_by=make_user())
    assert asked() == once


# One trace


def test_it_polls_until_the_trace_is_read(viewer_client: Client) -> None:
    trace = make_trace()
    page = page_of(viewer_client, f"/traces/{trace.pk}/")
    assert f'hx-get="/traces/{trace.pk}/status/" hx-trigger="poll"' in page
    Trace.objects.filter(pk=trace.pk).delete()
    done = make_ready_trace()
    cell = page_of(viewer_client, f"/traces/{done.pk}/status/")
    assert "data-poll" not in cell
    assert f'hx-get="/traces/{done.pk}/" hx-trigger="load" hx-target="#trace-panels"' in cell


def test_it_says_why_a_trace_was_rejected(operator_client: Client) -> None:
    trace = make_trace(TraceState.REJECTED)
    page = page_of(operator_client, f"/traces/{trace.pk}/")
    assert "The file ends in the middle of an event" in page
    assert "What to do: Record it again" in page
    assert f'action="/traces/{trace.pk}/again/"' in page
    assert 'id="flame"' not in page


TIMELINE = DeviceTimeline(
    device="GPU 0",
    span_ns=1000,
    busy_ns=620,
    idle_ns=380,
    compute_ns=520,
    comm_ns=120,
    copy_ns=30,
    exposed_comm_ns=80,
    exposed_copy_ns=20,
    overlap_ratio=0.33,
)


def test_it_splits_the_time_of_a_device_exactly() -> None:
    idle = [
        IdleRow(device="GPU 0", cause="host_wait", total_ns=300, count=2),
        IdleRow(device="GPU 0", cause="launch", total_ns=80, count=1),
        IdleRow(device="GPU 1", cause="launch", total_ns=999, count=1),
    ]
    (bar,) = device_bars(make_report(timeline=[TIMELINE], idle=idle))
    assert sum(part.total_ns for part in bar.parts) == bar.span_ns
    assert [part.total_ns for part in bar.parts] == [520, 80, 20, 300, 80]
    assert [part.start for part in bar.parts] == [
        "0.0000",
        "52.0000",
        "60.0000",
        "62.0000",
        "92.0000",
    ]


def test_it_shows_idle_time_whole_when_its_causes_do_not_add_up() -> None:
    idle = [IdleRow(device="GPU 0", cause="launch", total_ns=80, count=1)]
    (bar,) = device_bars(make_report(timeline=[TIMELINE], idle=idle))
    assert bar.parts[-1].title == "idle"
    assert sum(part.total_ns for part in bar.parts) == bar.span_ns


def test_it_says_how_busy_the_device_is(viewer_client: Client) -> None:
    trace = make_ready_trace(report=make_report(timeline=[TIMELINE]))
    page = page_of(viewer_client, f"/traces/{trace.pk}/")
    assert "GPU 0 is busy 62.0 % of its 1.00 µs" in page
    assert "33.0 % of the 120 ns of communication overlaps compute" in page


def test_it_says_what_waited_and_who_split_the_time(viewer_client: Client) -> None:
    row = dataclasses.replace(TIMELINE, wait_ns=70, source="vendor overlap analysis")
    trace = make_ready_trace(report=make_report(timeline=[row]))
    page = page_of(viewer_client, f"/traces/{trace.pk}/")
    assert "streams waited 70 ns (not counted as busy)" in page
    assert "split by the vendor overlap analysis in the trace" in page


def test_it_says_that_kernels_are_missing_and_nothing_of_idle_time(viewer_client: Client) -> None:
    launches = Launches(linked=0, unlinked=0, by_rule={}, delay_ns=None, calls=268)
    trace = make_ready_trace(report=make_report(launches=launches))
    page = page_of(viewer_client, f"/traces/{trace.pk}/")
    assert "<strong>Kernels are missing</strong>" in page
    assert "100.0 %</b> of host self time" in page
    assert "idle:" not in page


def test_it_names_the_largest_operator(viewer_client: Client) -> None:
    page = page_of(viewer_client, f"/traces/{make_ready_trace().pk}/")
    assert "The largest operator is" in page
    assert "<b>100.0 %</b> of host self time (2.00 ms)" in page


def test_it_shows_the_rest_when_the_report_is_gone(viewer_client: Client) -> None:
    trace = make_trace(TraceState.READY)
    make_operator(trace, "aten::lonely")
    page = page_of(viewer_client, f"/traces/{trace.pk}/")
    assert "The stored report cannot be read" in page
    assert "aten::lonely" in page


def test_it_shows_the_rest_when_the_report_is_damaged(viewer_client: Client) -> None:
    trace = make_trace(TraceState.READY, report=store_artifact(b"{}"), flame=store_artifact(b"x"))
    assert "The stored report is damaged" in page_of(viewer_client, f"/traces/{trace.pk}/")


def test_it_answers_htmx_with_the_panels_alone(viewer_client: Client) -> None:
    response = viewer_client.get(f"/traces/{make_ready_trace().pk}/", headers=HTMX)
    assert "<html" not in response.content.decode()
    assert 'id="trace-panels"' in response.content.decode()
    assert "HX-Request" in response.headers["Vary"]


def test_it_asks_the_database_a_bounded_number_of_times(viewer_client: Client) -> None:
    trace = make_ready_trace(run=make_result().run)
    with CaptureQueriesContext(connection) as queries:
        page_of(viewer_client, f"/traces/{trace.pk}/")
    assert len(queries) <= 12
