"""The status page: what is up, what waits, what broke."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from dashboard import assets, sqlite
from dashboard.models import Outbox, RunState
from dashboard.queries import status as queries
from tests.factories import make_heartbeat, make_platform, make_run, make_trace


def page_of(client: Client, **headers: str) -> str:
    response = client.get("/status/", headers=headers)
    assert response.status_code == 200
    return re.sub(r"\s+", " ", response.content.decode())


def answer(page: str) -> str:
    found = re.search(r'<p role="status">(.*?)</p>', page)
    assert found is not None
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", found[1])).strip()


@pytest.fixture
def all_alive(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in queries.KINDS:
        make_heartbeat(kind)
    monkeypatch.setattr(assets, "speedscope_present", lambda: True)


def test_it_says_that_everything_is_up(all_alive: None, viewer_client: Client) -> None:
    make_run(RunState.RUNNING)
    assert answer(page_of(viewer_client)) == "Everything is up. 1 run running, 0 queued."


def test_it_names_what_is_gone_and_what_that_means(viewer_client: Client) -> None:
    page = page_of(viewer_client)
    assert answer(page).startswith("Not heard of: keeper, worker, ingest.")
    assert "nothing is lost" in page
    assert "<code>make up</code>" in page


@pytest.mark.parametrize(("beats", "alive"), [(0.5, True), (3.5, True), (4.5, False)])
def test_it_takes_a_process_for_silent_after_four_missed_beats(
    db: None, settings: Settings, *, beats: float, alive: bool
) -> None:
    make_heartbeat("worker", age_s=beats * settings.HEARTBEAT_S)
    (process,) = queries.pulse().processes
    assert process.alive is alive


def test_it_drops_processes_that_are_gone_for_a_day(db: None) -> None:
    make_heartbeat("worker", age_s=86_500)
    make_heartbeat("sweep")
    assert not queries.pulse().processes


def test_it_shows_the_queue_of_every_platform(all_alive: None, viewer_client: Client) -> None:
    now = timezone.now()
    far = make_platform("h100")
    for minutes in (5, 44):
        made = now - timedelta(minutes=minutes)
        make_run(RunState.QUEUED, platform=far, created_at=made)
    make_run(RunState.RUNNING)
    rows = {queue.platform: queue for queue in queries.pulse().queues}
    assert (rows["h100"].queued, rows["h100"].running, rows["h100"].workers) == (2, 0, 0)
    assert (rows["cpu"].queued, rows["cpu"].running, rows["cpu"].workers) == (0, 1, 1)
    page = page_of(viewer_client)
    assert answer(page).startswith("Queued runs wait on h100: no worker of that platform")
    assert "44 min" in page


def test_it_shows_a_running_run(all_alive: None, viewer_client: Client) -> None:
    long_ago = timezone.now() - timedelta(minutes=9)
    run = make_run(RunState.RUNNING, step=4, steps=10, started_at=long_ago)
    page = page_of(viewer_client)
    assert f'href="/runs/{run.pk}/"' in page
    assert "4 of 10" in page
    assert "9 min" in page


def test_it_says_when_a_run_is_being_cancelled(all_alive: None, viewer_client: Client) -> None:
    make_run(RunState.RUNNING, cancel_requested_at=timezone.now())
    assert "<td>cancelling</td>" in page_of(viewer_client)


def test_it_lists_failures_of_the_last_day_only(all_alive: None, viewer_client: Client) -> None:
    make_run(RunState.FAILED, failure_message='<img src=x onerror="1">\u202e')
    make_run(RunState.FAILED, ended_at=timezone.now() - timedelta(days=2))
    page = page_of(viewer_client)
    assert "1 run</span>" in page
    assert "&lt;img src=x onerror=&quot;1&quot;&gt;\\u202e" in page


def test_it_counts_more_failures_than_it_lists(all_alive: None) -> None:
    for _ in range(queries.ROWS + 3):
        make_run(RunState.FAILED)
    status = queries.status()
    assert (len(status.failed), status.failed_total) == (queries.ROWS, queries.ROWS + 3)


def test_it_shows_how_long_messages_wait(all_alive: None, viewer_client: Client) -> None:
    now = timezone.now()
    made = now - timedelta(minutes=7)
    Outbox.objects.create(
        queue="platform.cpu",
        task="run_benchmark",
        subject_id=1,
        attempt=1,
        created_at=made,
        not_before=made,
    )
    make_trace("pending")
    page = page_of(viewer_client)
    assert "1 message waits for the broker, the oldest for 7 min." in page
    assert "1 trace pending, 0 being read, 0 rejected in 24 h." in page


def test_it_shows_database_and_disk(all_alive: None, viewer_client: Client) -> None:
    page = page_of(viewer_client)
    assert re.search(r"SQLite 3\.\d+\.\d+", page)
    assert re.search(r"[\d.]+ GiB free of", page)


def test_it_warns_of_a_database_library_that_corrupts(
    all_alive: None, viewer_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "is_safe", lambda version: False)
    page = page_of(viewer_client)
    assert answer(page).startswith("The database library is unsafe;")
    assert "install the pysqlite3 wheel" in page


def test_it_answers_its_poll_with_the_cells_alone(all_alive: None, viewer_client: Client) -> None:
    page = page_of(viewer_client, **{"HX-Request": "true"})
    assert page.strip().startswith('<div id="status-cells"')
    assert "<html" not in page
    assert "Unsuccessful in the last 24 h" not in page


def test_it_varies_by_who_asks(all_alive: None, viewer_client: Client) -> None:
    assert "HX-Request" in viewer_client.get("/status/").headers["Vary"]


def test_it_needs_as_many_queries_for_many_rows_as_for_one(
    all_alive: None, viewer_client: Client
) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as made:
            page_of(viewer_client)
        return len(made)

    make_run(RunState.RUNNING)
    make_run(RunState.FAILED)
    one = count()
    for place in range(5):
        far = make_platform(f"platform-{place}")
        make_run(RunState.RUNNING, platform=far)
        make_run(RunState.FAILED, platform=far)
        make_heartbeat("worker")
    assert count() == one
    assert one <= 11
