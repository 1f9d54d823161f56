"""The first page: numbers of every model, what needs a look, what to do when it is empty."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.models import RunState
from dashboard.queries import overview as queries
from tests.factories import (
    make_heartbeat,
    make_metric,
    make_platform,
    make_result,
    make_run,
    make_spec,
    make_trace,
)


def page_of(client: Client) -> str:
    response = client.get("/")
    assert response.status_code == 200
    return re.sub(r"\s+", " ", response.content.decode())


def summary(page: str) -> str:
    """The words of the sentence that answers."""
    found = re.search(r'aria-label="Summary"> <p>(.*?)</p>', page)
    assert found is not None
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", found[1])).strip()


def measured(value: float = 7.62e6, **fields: object) -> None:
    spec = make_spec(**fields)
    make_result(make_run(RunState.SUCCEEDED, spec=spec), value=value, iqr=2e5)


def test_it_tells_an_operator_what_to_do_first(operator_client: Client) -> None:
    page = page_of(operator_client)
    assert "Nothing has been measured yet" in page
    assert 'href="/runs/new/"' in page
    assert 'href="/traces/upload/"' in page


def test_it_tells_a_viewer_who_can_start(viewer_client: Client) -> None:
    page = page_of(viewer_client)
    assert "An operator or admin can queue the first run" in page
    assert "/runs/new/" not in page


def test_it_shows_value_spread_and_n(viewer_client: Client) -> None:
    measured()
    page = page_of(viewer_client)
    assert ">7.62 ms</a>" in page
    assert "± 100 µs" in page, "half the interquartile range"
    assert "n = 10 · b1 in128 out32 float32" in page
    assert 'title="Time per output token: 7,620,000 ns, run' in page


def test_it_says_that_all_is_well(viewer_client: Client) -> None:
    measured()
    measured(scenario="prefill")
    assert summary(page_of(viewer_client)) == (
        "All 2 workloads are measured, and no newest run has failed."
    )


@pytest.mark.parametrize(
    "state", [RunState.FAILED, RunState.TIMED_OUT, RunState.LOST, RunState.EXPIRED]
)
def test_it_names_a_workload_whose_newest_run_did_not_succeed(
    viewer_client: Client, state: RunState
) -> None:
    measured()
    make_run(state, failure_message="It <b>broke</b>")
    page = page_of(viewer_client)
    assert summary(page).startswith("1 of 1 workload needs a look: the newest run of llama-tiny")
    assert "It &lt;b&gt;broke&lt;/b&gt;" in page
    assert ">7.62 ms</a>" in page, "the last good number stays"


def test_it_forgets_a_failure_after_a_success(viewer_client: Client) -> None:
    make_run(RunState.FAILED)
    measured()
    page = page_of(viewer_client)
    assert "All" in summary(page) or "The one workload is measured" in summary(page)
    assert "Nothing: every workload" in page


def test_it_does_not_count_a_cancelled_run_as_a_problem(viewer_client: Client) -> None:
    measured()
    make_run(RunState.CANCELLED)
    assert queries.overview().attention_total == 0


def test_it_counts_what_is_still_on_its_way(viewer_client: Client) -> None:
    make_run(RunState.RUNNING)
    make_heartbeat("worker")
    assert summary(page_of(viewer_client)) == "Nothing is measured yet; 1 run running, 0 queued."


def test_it_says_when_nobody_takes_queued_runs(viewer_client: Client) -> None:
    make_run(RunState.QUEUED)
    page = page_of(viewer_client)
    assert summary(page) == "Queued runs wait for a worker on cpu: none is alive."
    assert "Not heard of: keeper, worker, ingest." in page


def test_it_draws_the_values_of_earlier_runs(viewer_client: Client) -> None:
    for value in (9e6, 8e6, 7e6):
        measured(value)
    cell = queries.overview().rows[0].cells[1]
    assert cell is not None and cell.measure is not None
    assert cell.measure.history == (9e6, 8e6, 7e6)
    assert "<polyline points=" in page_of(viewer_client)


def test_it_keeps_platforms_apart(db: None) -> None:
    measured(5e6)
    far = make_platform("h100")
    make_result(make_run(RunState.SUCCEEDED, platform=far), value=1e6)
    rows = queries.overview().rows
    cells = {row.platform: row.cells[1] for row in rows}
    values = {name: cell.measure.value for name, cell in cells.items() if cell and cell.measure}
    assert values == {"cpu": 5e6, "h100": 1e6}


def test_it_shows_the_workload_that_ran_last_and_counts_the_others(db: None) -> None:
    measured(5e6, batch=1)
    measured(6e6, batch=8)
    cell = queries.overview().rows[0].cells[1]
    assert cell is not None and cell.measure is not None
    assert (cell.workload, cell.others, cell.measure.value) == ("b8 in128 out32 float32", 1, 6e6)


def test_it_shows_no_spread_for_a_single_sample(viewer_client: Client) -> None:
    result = make_result(iqr=None)
    make_metric(result, "ttft")
    assert "± " not in page_of(viewer_client).split("<tbody>")[1]


def test_it_mentions_rejected_traces_of_the_day(viewer_client: Client) -> None:
    measured()
    make_trace("rejected")
    make_trace("rejected", ended_at=timezone.now() - timedelta(days=2))
    assert "1 trace rejected" in page_of(viewer_client)


def test_it_needs_as_many_queries_for_many_models_as_for_one(viewer_client: Client) -> None:
    def count() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries_made:
            page_of(viewer_client)
        return len(queries_made)

    measured()
    make_run(RunState.FAILED, spec=make_spec(model="other"))
    one = count()
    for place in range(5):
        measured(model=f"model-{place}")
        make_run(RunState.FAILED, spec=make_spec(model=f"bad-{place}"))
    assert count() == one
    assert one <= 12
