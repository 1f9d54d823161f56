"""The list of runs: filter, order, pages, export."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.models import FailureKind, Run, RunState
from dashboard.queries.runs import PAGE_SIZE, RunFilter, run_page
from tests.dashboard.reading import csv_of
from tests.factories import make_platform, make_result, make_run, make_spec, make_trace, make_user

HOSTILE = '"><img src=x onerror=alert(1)>'


def listed(client: Client, query: str = "") -> list[int]:
    """The numbers of the runs on the page, in its order."""
    page = client.get(f"/runs/{query}").content.decode()
    return [int(number) for number in re.findall(r'aria-label="Compare run (\d+)"', page)]


@pytest.fixture
def two_runs(db: None) -> tuple[Run, Run]:
    """A decode that succeeded on the CPU and a queued training on a gpu."""
    first = make_run(RunState.SUCCEEDED, created_by=make_user("olga"))
    make_result(first)
    spec = make_spec(model="qwen3-moe-tiny", scenario="training", device="cuda:0")
    return first, make_run(spec=spec, platform=make_platform("gpu", device="cuda:0"))


def test_it_says_what_to_do_without_runs(operator_client: Client) -> None:
    page = operator_client.get("/runs/").content.decode()
    assert "No runs yet" in page
    assert "Start the first run" in page


def test_it_offers_no_start_to_viewers(viewer_client: Client) -> None:
    page = viewer_client.get("/runs/").content.decode()
    assert "Ask an operator" in page
    assert "/runs/new/" not in page


def test_it_shows_the_headline_with_spread_and_n(
    viewer_client: Client, two_runs: tuple[Run, Run]
) -> None:
    page = viewer_client.get("/runs/").content.decode()
    assert "7.62 ms" in page
    assert "± 50.0 µs" in page
    assert 'title="7,620,000 ns"' in page


@pytest.mark.parametrize(
    ("query", "places"),
    [
        ("", [1, 0]),
        ("?model=qwen3-moe-tiny", [1]),
        ("?scenario=decode", [0]),
        ("?state=succeeded", [0]),
        ("?state=active", [1]),
        ("?state=unsuccessful", []),
        ("?platform=gpu", [1]),
        ("?q=olga", [0]),
        ("?q=MOE", [1]),
        ("?q=nothing+like+it", []),
        ("?model=llama-tiny&scenario=training", []),
        ("?sort=run", [0, 1]),
        ("?sort=-model", [1, 0]),
        ("?sort=state", [1, 0]),
        ("?sort=-duration", [0, 1]),
        ("?sort=platform", [0, 1]),
    ],
)
def test_it_filters_and_sorts(
    query: str, places: list[int], viewer_client: Client, two_runs: tuple[Run, Run]
) -> None:
    assert listed(viewer_client, query) == [two_runs[place].pk for place in places]


def test_it_finds_a_run_by_its_number(viewer_client: Client, two_runs: tuple[Run, Run]) -> None:
    number = two_runs[1].pk
    assert number in listed(viewer_client, f"?q={number}")
    assert number in listed(viewer_client, f"?q=%23{number}")


@pytest.mark.parametrize(
    "query",
    [
        "?state=exploded",
        "?model=nobody",
        "?sort=spec",
        "?sort=-spec_hash;drop",
        "?page=0",
        "?page=x",
        "?q=" + "x" * 101,
        "?q=%00",
        "?platform=%27%20OR%201=1",
    ],
)
def test_it_says_what_is_wrong_and_shows_everything(
    query: str, viewer_client: Client, two_runs: tuple[Run, Run]
) -> None:
    response = viewer_client.get(f"/runs/{query}")
    assert response.status_code == 200
    assert "The filter cannot be used" in response.content.decode()
    assert listed(viewer_client, query) == [two_runs[1].pk, two_runs[0].pk]


def test_it_offers_to_clear_a_filter_that_leaves_nothing(
    viewer_client: Client, two_runs: tuple[Run, Run]
) -> None:
    page = viewer_client.get("/runs/?q=nothing").content.decode()
    assert "No run matches the filter" in page
    assert "Clear filter" in page


def test_it_breaks_ties_by_number(db: None) -> None:
    made = [make_run().pk for _ in range(5)]
    rows = run_page(RunFilter(sort="state")).rows
    assert [row.id for row in rows] == made


def test_it_pages_and_counts(viewer_client: Client) -> None:
    made = [make_run().pk for _ in range(PAGE_SIZE + 1)]
    assert listed(viewer_client) == made[:0:-1]
    assert listed(viewer_client, "?page=2") == made[:1]
    assert "51–51 of 51 runs" in viewer_client.get("/runs/?page=2").content.decode()


def test_it_shows_the_last_page_for_one_past_it(viewer_client: Client) -> None:
    run = make_run()
    assert listed(viewer_client, "?page=99") == [run.pk]


def test_it_keeps_the_filter_in_the_links(viewer_client: Client) -> None:
    for _ in range(PAGE_SIZE + 1):
        make_run()
    page = viewer_client.get("/runs/?scenario=decode&sort=run").content.decode()
    assert "?scenario=decode&amp;sort=run&amp;page=2" in page
    assert "/runs/runs.csv?scenario=decode&amp;sort=run" in page


def test_it_asks_the_database_as_often_for_one_run_as_for_five(viewer_client: Client) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as queries:
            viewer_client.get("/runs/")
        return len(queries)

    make_trace(run=make_result().run)
    viewer_client.get("/runs/")
    once = asked()
    for number in range(4):
        spec = make_spec(scenario="prefill", batch=number + 2)
        make_trace(run=make_result(make_run(RunState.SUCCEEDED, spec=spec)).run)
    assert asked() == once
    assert once <= 12


def test_it_escapes_names(viewer_client: Client) -> None:
    run = make_run(RunState.FAILED, created_by=make_user(HOSTILE[:100]))
    run.workload.model.name = HOSTILE
    run.workload.model.save()
    page = viewer_client.get("/runs/").content.decode()
    assert "<img" not in page
    assert "&lt;img" in page


def test_it_exports_what_the_filter_leaves(
    viewer_client: Client, two_runs: tuple[Run, Run]
) -> None:
    response = viewer_client.get("/runs/runs.csv?state=succeeded")
    assert response.headers["Content-Type"].startswith("text/csv")
    assert response.headers["Content-Disposition"] == 'attachment; filename="runs.csv"'
    (row,) = csv_of(response)
    assert row["run"] == str(two_runs[0].pk)
    assert (row["value"], row["unit"], row["half_iqr"]) == ("7620000.0", "ns", "50000.0")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "'"])
def test_it_exports_no_formula(start: str, viewer_client: Client) -> None:
    make_run(created_by=make_user(f"{start}cmd|' /C calc'!A0"))
    (row,) = csv_of(viewer_client.get("/runs/runs.csv"))
    assert row["by"].startswith(f"'{start}")


def test_it_names_why_a_run_did_not_succeed(viewer_client: Client) -> None:
    make_run(RunState.FAILED, failure_kind=FailureKind.OOM_HOST)
    assert "Out of host memory" in viewer_client.get("/runs/").content.decode()


def ended_after(seconds: int) -> Run:
    now = timezone.now()
    started = now - timedelta(seconds=seconds)
    return make_run(RunState.SUCCEEDED, started_at=started, ended_at=now)


def test_it_sorts_by_time_taken_with_unfinished_runs_last(db: None) -> None:
    waiting, slow, quick = make_run(), ended_after(60), ended_after(2)
    order = [row.id for row in run_page(RunFilter(sort="duration")).rows]
    assert order == [quick.pk, slow.pk, waiting.pk]
