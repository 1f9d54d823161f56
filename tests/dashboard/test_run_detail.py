"""One run: what it measured or why it did not, live status, log, files and exports."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.models import Run, RunArtifact, RunEvent, RunState, TraceState
from profiler import spec as specs
from tests.dashboard.reading import HTMX, body_of, csv_of, page_of
from tests.factories import (
    make_artifact,
    make_attempt,
    make_heartbeat,
    make_metric,
    make_ready_trace,
    make_result,
    make_run,
    make_spec,
    make_trace,
    store_artifact,
)


def at(run: Run) -> str:
    return f"/runs/{run.pk}/"


def status_of(client: Client, run: Run) -> str:
    return " ".join(client.get(f"/runs/{run.pk}/status/").content.decode().split())


def add_file(run: Run, name: str, data: bytes, attempt: int = 1) -> None:
    RunArtifact.objects.create(run=run, attempt=attempt, name=name, artifact=store_artifact(data))


def measured(scenario: str, **metrics: float) -> Run:
    run = make_run(RunState.SUCCEEDED, spec=make_spec(scenario=scenario, batch=2))
    result = make_result(run)
    for name, value in metrics.items():
        make_metric(result, name, value=value)
    return run


# What it measured


@pytest.mark.parametrize(
    ("scenario", "metrics", "sentence"),
    [
        ("prefill", {"prefill_rate": 16800.0}, "Prefill of 2 × 128 tokens takes"),
        (
            "decode",
            {"decode_rate": 262.0, "decode_rate_user": 131.0},
            "262 tok/s in all, 131 tok/s for each of 2 sequences",
        ),
        ("training", {"training_rate": 1000.0}, "A training step over 2 × 128 tokens takes"),
    ],
)
def test_it_answers_what_was_measured_first(
    scenario: str, metrics: dict[str, float], sentence: str, viewer_client: Client
) -> None:
    page = page_of(viewer_client, at(measured(scenario, **metrics)))
    assert sentence in page
    assert page.index(sentence) < page.index('aria-label="Metrics"')
    assert "± is half the interquartile range" in page
    assert "Under the profiler a step took 1.20 × as long" in page


def test_it_shows_every_metric_with_spread_n_and_the_exact_value(viewer_client: Client) -> None:
    page = page_of(viewer_client, at(measured("decode", ttft=123_456_789.0)))
    assert 'title="123,456,789 ns"' in page
    assert "123 ms" in page
    assert "± 3.09 ms" in page
    assert "n = 10" in page


def test_it_shows_a_value_measured_once_without_spread(viewer_client: Client) -> None:
    run = measured("prefill")
    make_metric(run.result, "peak_memory", value=1.5 * 2**30, n=1, iqr=None, samples=[1.5 * 2**30])
    page = page_of(viewer_client, at(run))
    assert "1.50 GiB" in page
    assert "measured once" in page


def test_it_draws_the_samples_of_the_metric_in_the_address(viewer_client: Client) -> None:
    run = measured("decode", ttft=5e6)
    assert "Samples of time per output token" in page_of(viewer_client, at(run))
    page = page_of(viewer_client, at(run) + "?metric=ttft")
    assert "Samples of time to first token" in page
    assert 'id="samples-figure"' in page
    assert "Samples of time per output token" in page_of(viewer_client, at(run) + "?metric=<b>")


def test_it_lists_the_environment_and_what_was_missing(viewer_client: Client) -> None:
    page = page_of(viewer_client, at(measured("decode")))
    assert '<dt>torch</dt><dd class="mono">2.13.0</dd>' in page
    assert "<dt>could not be told</dt><dd>driver</dd>" in page


def test_it_says_how_to_measure_it_again(viewer_client: Client) -> None:
    run = measured("decode")
    page = page_of(viewer_client, at(run))
    assert "python -m profiler run spec.json --out out" in page
    assert "&quot;scenario&quot;: &quot;decode&quot;" in page


def test_it_shows_operators_flame_graph_and_the_sum_of_each_thread(viewer_client: Client) -> None:
    run = measured("decode")
    trace = make_ready_trace(run=run)
    page = page_of(viewer_client, at(run))
    assert "aten::mm" in page
    assert 'sandbox="allow-scripts allow-same-origin allow-downloads"' in page
    assert f"#profileURL=%2Ftraces%2F{trace.pk}%2Fflame.speedscope.json&amp;view=left-heavy" in page
    assert "&amp;view=time-ordered" in page


def test_it_says_that_no_trace_was_recorded(viewer_client: Client) -> None:
    assert "This run recorded no trace" in page_of(viewer_client, at(measured("decode")))


def test_it_keeps_its_numbers_when_the_trace_is_rejected(viewer_client: Client) -> None:
    run = measured("decode")
    make_trace(TraceState.REJECTED, run=run)
    page = page_of(viewer_client, at(run))
    assert "The file ends in the middle of an event" in page
    assert f"The measurements of run {run.pk} are not touched by this" in page
    assert "7.62 ms" in page


def test_it_polls_a_trace_that_is_not_read_yet(viewer_client: Client) -> None:
    run = measured("decode")
    trace = make_trace(run=run)
    assert f'hx-get="/traces/{trace.pk}/status/" hx-trigger="poll"' in page_of(
        viewer_client, at(run)
    )


def test_it_asks_the_database_a_bounded_number_of_times(viewer_client: Client) -> None:
    run = measured("decode", ttft=1e6, itl=1e6)
    make_ready_trace(run=run)
    add_file(run, "log.txt", b"x\n")
    with CaptureQueriesContext(connection) as queries:
        page_of(viewer_client, at(run))
    assert len(queries) <= 18


# Why it did not


def failed(**fields: str | int) -> Run:
    told: dict[str, Any] = {
        "failure_message": "index out of range",
        "failure_hint": "check the prompt",
    }
    return make_run(RunState.FAILED, **(told | fields))


def test_it_opens_on_what_failed(operator_client: Client) -> None:
    run = failed(phase="timed", step=3, steps=10)
    add_file(run, "log.txt", b"fine\nTraceback (most recent call last):\nIndexError\n")
    page = page_of(operator_client, at(run))
    places = [
        page.index(text)
        for text in ("Benchmark crashed", "index out of range", "check the prompt", "Traceback")
    ]
    assert places == sorted(places)
    assert "In phase timed, step 3 of 10" in page
    assert f'action="/runs/{run.pk}/again/"' in page


def test_it_marks_the_first_error_of_the_log(viewer_client: Client) -> None:
    run = failed()
    add_file(run, "log.txt", b"fine\nValueError: one\nValueError: two\n")
    page = page_of(viewer_client, at(run))
    assert '<mark id="log-trouble">ValueError: one</mark>' in page
    assert page.count("<mark") == 1


def test_it_shows_hostile_messages_as_text(viewer_client: Client) -> None:
    run = failed(failure_message="<script>alert(1)</script>\u202e\x1b[31m", worker="<b>w</b>")
    add_file(run, "log.txt", "<img src=x onerror=alert(1)>\x1b]0;t\x07\u202e\n".encode())
    page = page_of(viewer_client, at(run))
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "<b>w</b>" not in page
    assert "\u202e" not in page
    assert "\\x1b" in page


def test_it_links_to_words_that_the_glossary_has(viewer_client: Client) -> None:
    glossary = page_of(viewer_client, "/glossary/")
    pages = [page_of(viewer_client, at(run)) for run in (failed(), measured("decode", ttft=1.0))]
    anchors = {anchor for page in pages for anchor in re.findall(r"/glossary/#([\w-]+)", page)}
    assert {"failure-crashed", "metric-ttft"} <= anchors
    assert all(f'id="{anchor}"' in glossary for anchor in anchors)


# While it waits and runs


def test_it_tells_the_place_in_the_queue_and_polls(viewer_client: Client) -> None:
    make_heartbeat("worker")
    make_run()
    run = make_run()
    page = page_of(viewer_client, at(run))
    assert "place 2 in the queue of cpu" in page
    assert "no worker of cpu is up" not in page
    assert f'hx-get="/runs/{run.pk}/status/" hx-trigger="poll" hx-swap="outerMorph"' in page
    assert "The result appears here when the run ends" in page


def test_it_warns_when_no_worker_is_up(viewer_client: Client) -> None:
    make_heartbeat("worker", age_s=600)
    assert "no worker of cpu is up" in status_of(viewer_client, make_run())


def test_it_shows_phase_step_and_heartbeat(viewer_client: Client) -> None:
    run = make_run(RunState.RUNNING, phase="timed", step=3, steps=10)
    cell = status_of(viewer_client, run)
    assert "timed · step 3 of 10" in cell
    assert '<progress value="3" max="10"' in cell
    assert "heard of" in cell
    assert "attempt 1 on" in cell


def test_it_tells_how_long_such_a_run_usually_takes(viewer_client: Client) -> None:
    earlier = make_run(RunState.SUCCEEDED)
    Run.objects.filter(pk=earlier.pk).update(started_at="2026-01-01T00:00:00Z")
    Run.objects.filter(pk=earlier.pk).update(ended_at="2026-01-01T00:00:42Z")
    assert "usually takes 42.0 s" in status_of(viewer_client, make_run(RunState.RUNNING))


def test_it_stops_polling_and_loads_the_result_once_it_has_ended(viewer_client: Client) -> None:
    run = measured("decode")
    cell = status_of(viewer_client, run)
    assert "data-poll" not in cell
    assert f'hx-get="/runs/{run.pk}/" hx-trigger="load" hx-target="#run-result"' in cell
    assert 'hx-target="#run-result"' not in page_of(viewer_client, at(run))


def test_it_answers_htmx_with_the_parts_that_changed(viewer_client: Client) -> None:
    run = measured("decode")
    response = viewer_client.get(f"/runs/{run.pk}/", headers=HTMX)
    part = response.content.decode()
    assert "<html" not in part
    assert "HX-Request" in response.headers["Vary"]
    for name in ("run-actions", "run-log", "run-record"):
        assert part.count(f'id="{name}"') == 1
    assert part.count('hx-swap-oob="outerHTML"') == 3
    assert f"<title>Run {run.pk} · Succeeded · Daybreak</title>" in part


def test_it_offers_cancel_only_to_those_who_may(
    viewer_client: Client, operator_client: Client, admin_client: Client
) -> None:
    run = make_run(RunState.RUNNING)
    assert "Cancel run" not in page_of(viewer_client, at(run))
    assert "Cancel run" not in page_of(operator_client, at(run))
    assert "Cancel run" in page_of(admin_client, at(run))


# History, log and files


def test_it_tells_what_happened_attempt_by_attempt(viewer_client: Client) -> None:
    run = failed()
    for number, outcome in ((1, "delivered requeue"), (2, "delivered failed")):
        make_attempt(run, number, outcome=outcome)
    RunEvent.objects.create(run=run, at=run.created_at, kind="requeued", text="disk gone")
    page = page_of(viewer_client, at(run))
    assert "requeued" in page
    assert "disk gone" in page
    assert "delivered requeue" in page


def test_it_shows_the_last_200_lines(viewer_client: Client) -> None:
    run = failed()
    add_file(run, "log.txt", b"".join(b"line %d\n" % n for n in range(500)))
    page = viewer_client.get(f"/runs/{run.pk}/log/").content.decode()
    assert "line 499" in page
    assert "line 300\n" in page
    assert "line 299\n" not in page
    assert "The last 200 lines" in page


def test_it_shows_what_the_worker_sends_while_it_runs(viewer_client: Client) -> None:
    run = make_run(RunState.RUNNING, log_tail="loading\r 50%\r100%\ndone\n")
    part = viewer_client.get(f"/runs/{run.pk}/log/", headers=HTMX).content.decode()
    assert "100%\ndone" in part
    assert "50%" not in part
    assert 'hx-trigger="poll"' in part


def test_it_says_that_a_stored_log_is_gone(viewer_client: Client) -> None:
    run = failed()
    RunArtifact.objects.create(run=run, attempt=1, name="log.txt", artifact=make_artifact())
    assert "The stored log cannot be read" in page_of(viewer_client, at(run))


def test_it_hands_out_files_only_to_be_saved(viewer_client: Client) -> None:
    run = failed()
    add_file(run, "log.txt", b"<script>alert(1)</script>")
    response = viewer_client.get(f"/runs/{run.pk}/files/log.txt")
    assert body_of(response) == b"<script>alert(1)</script>"
    assert response.headers["Content-Type"] == "application/octet-stream"
    name = f'attachment; filename="run{run.pk}-log.txt"'
    assert response.headers["Content-Disposition"] == name
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Content-Security-Policy"].startswith("sandbox")


def test_it_hands_out_the_file_of_the_attempt_asked_for(viewer_client: Client) -> None:
    run = failed(attempt=2, fence=2)
    add_file(run, "log.txt", b"first", attempt=1)
    add_file(run, "log.txt", b"second", attempt=2)
    address = f"/runs/{run.pk}/files/log.txt"
    assert body_of(viewer_client.get(address)) == b"second"
    assert body_of(viewer_client.get(address + "?attempt=1")) == b"first"


@pytest.mark.parametrize(
    "name", ["other.txt", "..%2f..%2fetc%2fpasswd", "%00", "log.txt%23x", "x" * 300]
)
def test_it_knows_no_file_of_another_name(name: str, viewer_client: Client) -> None:
    run = failed()
    add_file(run, "log.txt", b"x")
    Path(settings.VAR_DIR, "other.txt").write_text("secret")
    assert viewer_client.get(f"/runs/{run.pk}/files/{name}").status_code == 404


def test_it_exports_metrics_and_samples_with_all_their_digits(viewer_client: Client) -> None:
    run = measured("decode", ttft=123_456_789.5)
    address = f"/runs/{run.pk}/metrics.csv"
    rows = csv_of(viewer_client.get(address))
    assert [row["metric"] for row in rows] == ["tpot", "ttft"]
    assert rows[1]["value"] == "123456789.5"
    samples = csv_of(viewer_client.get(address + "?metric=ttft"))
    assert [row["sample"] for row in samples] == [str(n) for n in range(1, 11)]


def test_it_has_no_metrics_to_export_without_a_result(viewer_client: Client) -> None:
    assert viewer_client.get(f"/runs/{failed().pk}/metrics.csv").status_code == 404


def test_it_shows_a_spec_that_reads_back_as_the_same(viewer_client: Client) -> None:
    run = failed()
    page = viewer_client.get(f"/runs/{run.pk}/").context["view"].spec_json
    assert specs.parse(page.encode()) == make_spec()
