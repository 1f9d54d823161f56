"""Runs side by side: values, what stands in the way of a verdict, where pairs can be had."""

# ruff: noqa: ANN401 - the values of columns are of any type

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.models import MetricValue, Run, RunState
from dashboard.queries.compare_runs import RunsView, runs_view
from dashboard.queries.side_by_side import SideBySide
from tests.dashboard.reading import page_of
from tests.factories import (
    make_document,
    make_metric,
    make_model,
    make_platform,
    make_ready_trace,
    make_result,
    make_run,
    make_spec,
)
from tests.sources import make_commit, make_comparison, make_repository

pytestmark = pytest.mark.django_db


def measured(value: float = 8e6, *, spec: Any = None, hash_: str = "a", **fields: Any) -> Run:
    """A run with a result in an environment of that mark."""
    run = make_run(RunState.SUCCEEDED, spec=spec or make_spec(), **fields)
    make_result(
        run,
        value=value,
        comparable_hash=hash_ * 64,
        environment={
            "fields": {"torch": f"2.13.{hash_}", "host": f"h{run.pk}"},
            "missing": [],
            "comparable_hash": hash_ * 64,
            "exact_hash": "b" * 64,
            "schema": 1,
        },
    )
    return run


def view_of(*runs: Run, baseline: int | None = None) -> RunsView:
    found = runs_view(SideBySide(numbers=tuple(run.pk for run in runs), baseline=baseline))
    assert found is not None
    return found


def kinds(view: RunsView, at: int = 0) -> set[str]:
    return {reason.kind for reason in view.candidates[at].reasons}


def test_it_shows_a_change_and_no_verdict(viewer_client: Client) -> None:
    one, two = measured(8e6), measured(6e6)
    page = page_of(viewer_client, f"/compare/runs/?run={one.pk}&run={two.pk}")
    assert "Time per output token: 6.00 ms beside 8.00 ms, −25.0 %. Single launches" in page
    assert "one launch a side says nothing about noise" in page
    assert "faster" not in page.partition("<main")[2]


def test_its_baseline_is_the_oldest_unless_the_address_says_otherwise() -> None:
    one, two, three = measured(8e6), measured(6e6), measured(4e6)
    plain = view_of(three, one, two)
    assert [column.run.pk for column in plain.columns] == [one.pk, three.pk, two.pk]
    assert [cell.change for cell in plain.metrics[0].cells] == [None, -0.5, -0.25]
    other = view_of(three, one, two, baseline=two.pk)
    assert other.baseline.run == two
    assert other.metrics[0].cells[2].change == pytest.approx(8 / 6 - 1)


def test_nothing_but_the_single_launch_is_in_the_way_of_equals() -> None:
    assert kinds(view_of(measured(), measured())) == {"launches"}


def test_it_computes_no_change_of_other_work(viewer_client: Client) -> None:
    one, two = measured(), measured(spec=make_spec(batch=8))
    view = view_of(one, two)
    assert kinds(view) == {"workload", "launches"}
    cell = view.metrics[0].cells[1]
    assert (cell.change, cell.why) == (None, "not the same work")
    page = page_of(viewer_client, f"/compare/runs/?run={one.pk}&run={two.pk}")
    assert "not the same work: batch 1 against 8" in page


def test_it_computes_the_change_of_the_same_work_done_otherwise() -> None:
    view = view_of(measured(8e6), measured(4e6, spec=make_spec(compile="default")))
    assert "the same work done otherwise: compile eager against default" in {
        reason.text for reason in view.candidates[0].reasons
    }
    assert view.metrics[0].cells[1].change == -0.5


def test_how_often_it_was_measured_is_no_other_workload() -> None:
    view = view_of(measured(), measured(spec=make_spec(iterations=50)))
    assert kinds(view) == {"launches"}
    assert [(row.name, row.matters) for row in view.workload] == [("iterations", False)]


def test_it_says_that_platforms_and_environments_differ() -> None:
    far = make_platform("accel-x", device="cuda")
    view = view_of(
        measured(8e6), measured(2e6, spec=make_spec(device="cuda"), platform=far, hash_="d")
    )
    assert kinds(view) == {"platform", "environment", "launches"}
    texts = [reason.text for reason in view.candidates[0].reasons]
    assert "different environments: torch 2.13.a against 2.13.d" in texts
    assert view.metrics[0].cells[1].change == -0.75
    named = {row.name: row.matters for row in view.environment}
    assert named == {"torch": True, "host": False}


def test_it_computes_no_change_of_a_metric_that_was_redefined() -> None:
    one, two = measured(), measured()
    for run in (one, two):
        make_metric(run.result, "ttft", value=1e6)
    MetricValue.objects.filter(result=two.result, name="ttft").update(definition=2)
    view = view_of(one, two)
    assert "definition" in kinds(view)
    cells = {row.name: row.cells[1] for row in view.metrics}
    assert (cells["ttft"].change, cells["ttft"].why) == (None, "defined differently")
    assert cells["tpot"].change == 0


def test_it_says_that_a_run_has_no_result(viewer_client: Client) -> None:
    one, two = measured(), make_run(RunState.FAILED)
    page = page_of(viewer_client, f"/compare/runs/?run={one.pk}&run={two.pk}")
    assert f"run {two.pk} is failed and has no result" in page
    assert "nothing that both measured" in page


def test_it_offers_pairs_of_two_commits(operator_client: Client, viewer_client: Client) -> None:
    repository = make_repository()
    old, new = make_commit(repository), make_commit(repository)
    one, two = measured(commit=old), measured(commit=new)
    address = f"/compare/runs/?run={one.pk}&run={two.pk}"
    page = page_of(operator_client, address)
    asked = f"baseline={old.sha}&amp;candidate={new.sha}&amp;platform=cpu&amp;run={one.pk}"
    assert f"/compare/new/?repository=models&amp;{asked}" in page
    form = page_of(
        operator_client,
        f"/compare/new/?repository=models&baseline={old.sha}&candidate={new.sha}&run={one.pk}",
    )
    assert old.sha in form and new.sha in form
    assert "/compare/new/" not in page_of(viewer_client, address)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("none", "only runs at commits of a repository"),
        ("other", "belong to different repositories"),
        ("same", "both ran the same commit"),
        ("platform", "measured on one platform"),
    ],
)
def test_it_says_why_pairs_cannot_be_measured(what: str, words: str) -> None:
    repository = make_repository()
    commit = make_commit(repository)
    others: dict[str, dict[str, Any]] = {
        "none": {},
        "same": {"commit": commit},
        "platform": {"commit": make_commit(repository), "platform": make_platform("far")},
        "other": {"commit": make_commit(make_repository("elsewhere"))},
    }
    offer = view_of(measured(commit=commit), measured(**others[what])).candidates[0].offer
    assert offer is not None
    assert words in offer.why_not and not offer.values


def test_it_leads_to_both_traces(viewer_client: Client) -> None:
    one, two = measured(), measured()
    first, second = make_ready_trace(run=one), make_ready_trace(run=two)
    page = page_of(viewer_client, f"/compare/runs/?run={one.pk}&run={two.pk}")
    assert f"/compare/traces/?trace={first.pk}&amp;trace={second.pk}" in page


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", "No runs chosen yet"),
        ("run=1&run=2", "Fewer than two of these runs exist"),
        ("run=x&run=2", "Only whole numbers"),
        ("run=1&run=99999999999999999999", "Only whole numbers"),
        ("&".join(f"run={n}" for n in range(1, 10)), "At most 8"),
    ],
)
def test_it_says_what_to_do_without_runs(viewer_client: Client, query: str, words: str) -> None:
    page = page_of(viewer_client, f"/compare/runs/?{query}")
    assert words in page and 'href="/runs/"' in page


def test_it_names_a_run_that_is_not_there(viewer_client: Client) -> None:
    one, two = measured(), measured()
    page = page_of(viewer_client, f"/compare/runs/?run={one.pk}&run={two.pk}&run=98765")
    assert "There is no run 98765" in page


def test_foreign_text_stays_text(viewer_client: Client) -> None:
    one = measured()
    two = measured(spec=make_spec(model="llama-tiny", compile="default"), hash_="d")
    two.result.environment["fields"]["<script>x"] = "<img src=x>"
    two.result.save()
    page = page_of(viewer_client, f"/compare/runs/?run={one.pk}&run={two.pk}")
    assert "<script>x" not in page and "<img src=x>" not in page
    assert "&lt;img src=x&gt;" in page


def test_it_is_a_csv_and_markdown(viewer_client: Client) -> None:
    one, two = measured(8e6), measured(6e6)
    make_model("| model")
    query = f"run={one.pk}&run={two.pk}"
    response = viewer_client.get(f"/compare/runs/runs.csv?{query}")
    body = b"".join(response.streaming_content).decode()  # type: ignore[attr-defined]
    rows = list(csv.DictReader(io.StringIO(body)))
    assert [(row["run"], row["side"], row["value"]) for row in rows] == [
        (str(one.pk), "baseline", "8000000.0"),
        (str(two.pk), "candidate", "6000000.0"),
    ]
    assert float(rows[1]["relative_change"]) == -0.25
    text = viewer_client.get(f"/compare/runs/report.md?{query}").content.decode()
    assert "| Time per output token | 8.00 ms | 6.00 ms (−25.0 %) |" in text
    assert f"/compare/runs/?{query}" in text


def test_the_list_of_runs_has_ticks(viewer_client: Client) -> None:
    one, two = measured(), measured()
    page = page_of(viewer_client, "/runs/")
    for run in (one, two):
        assert f'name="run" value="{run.pk}" form="pick"' in page
    assert 'action="/compare/runs/"' in page


def test_it_needs_as_many_queries_for_many_runs_as_for_two(viewer_client: Client) -> None:
    runs = [measured() for _ in range(8)]
    counts = []
    for count in (2, 8):
        query = "&".join(f"run={run.pk}" for run in runs[:count])
        with CaptureQueriesContext(connection) as queries:
            page_of(viewer_client, f"/compare/runs/?{query}")
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 12


def test_the_document_of_a_run_is_not_read() -> None:
    one, two = measured(), measured()
    document = make_document(one)
    assert document  # a result holds one, which this page has no use for
    with CaptureQueriesContext(connection) as queries:
        view_of(one, two)
    assert not any('"dashboard_result"."document"' in query["sql"] for query in queries)


def test_the_page_of_a_run_leads_to_its_side(viewer_client: Client) -> None:
    run = measured()
    assert f'href="/compare/runs/?run={run.pk}"' in page_of(viewer_client, f"/runs/{run.pk}/")
    page = page_of(viewer_client, f"/compare/runs/?run={run.pk}")
    assert f"Which run goes beside run {run.pk}?" in page and f'value="{run.pk}"' in page


def test_it_says_that_a_session_has_no_result_of_its_own() -> None:
    compared = make_comparison().workloads.get()
    session = make_run(RunState.SUCCEEDED, compared=compared)
    texts = [reason.text for reason in view_of(measured(), session).candidates[0].reasons]
    assert f"run {session.pk} measured pairs of a comparison: it has no result of its own" in texts
