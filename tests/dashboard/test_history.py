"""The page of a model on a platform: its histories, marks, tables and files."""

# ruff: noqa: ANN401 - figures are JSON of any shape

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.models import Annotation, ComparedState, RunState, Standing, User
from dashboard.services.clock import db_now
from tests.dashboard.histories import commits, measured
from tests.dashboard.reading import csv_of, page_of
from tests.factories import make_model, make_platform, make_run, make_spec
from tests.sources import make_comparison

pytestmark = pytest.mark.django_db

PAGE = "/models/llama-tiny/cpu/"


def figure_of(client: Client, address: str = PAGE, scenario: str = "decode") -> Any:
    page = client.get(address).content.decode()
    found = re.search(
        f'<script id="{scenario}-figure" type="application/json">(.*?)</script>', page
    )
    assert found is not None
    return json.loads(found[1])


def lines(figure: Any) -> list[Any]:
    return [one for one in figure["data"] if one["mode"] == "lines+markers"]


def summary(page: str) -> str:
    found = re.search(r'aria-label="Summary"> <p>(.*?)</p>', page)
    assert found is not None
    return re.sub(r"<[^>]+>", "", found[1])


def test_it_answers_how_it_moved_since_day0(viewer_client: Client) -> None:
    first, second, third = commits(3)
    measured(12.1e6, first)
    measured(7e6, second)
    measured(7.62e6, third)
    assert summary(page_of(viewer_client, PAGE)) == (
        "Prefill not measured yet; Decode 1.59x faster than on Day-0 (12.1 ms to 7.62 ms); "
        f"best so far 7.00 ms at {second.sha[:10]}; Training not measured yet."
    )


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (10.1e6, "as fast as on Day-0 (10.1 ms); best so far 10.0 ms"),
        (12e6, "1.20x slower than on Day-0 (10.0 ms to 12.0 ms)"),
        (8e6, "1.25x faster than on Day-0 (10.0 ms to 8.00 ms), its best so far"),
    ],
)
def test_it_says_faster_slower_or_alike(last: float, said: str, viewer_client: Client) -> None:
    first, second = commits(2)
    measured(10e6, first)
    measured(last, second)
    assert said in summary(page_of(viewer_client, PAGE))


def test_it_draws_commits_in_the_order_of_the_graph(viewer_client: Client) -> None:
    first, second = commits(2)
    later, earlier = measured(6e6, second), measured(8e6, first)
    figure = figure_of(viewer_client)
    (line,) = lines(figure)
    assert line["y"] == [8.0, 6.0]
    assert line["customdata"] == [f"/runs/{earlier.pk}/", f"/runs/{later.pk}/"]
    assert figure["layout"]["xaxis"]["ticktext"] == [first.sha[:7], second.sha[:7]]
    assert "commits of models, parents before children" in page_of(viewer_client, PAGE)


def test_runs_without_a_commit_come_in_the_order_they_were_made(viewer_client: Client) -> None:
    runs = [measured(value) for value in (9e6, 8e6)]
    page = page_of(viewer_client, PAGE)
    assert "runs in the order they were made, as they have no commit" in page
    (line,) = lines(figure_of(viewer_client))
    assert line["customdata"] == [f"/runs/{run.pk}/" for run in runs]


def test_an_environment_change_splits_the_line_and_says_what_changed(
    viewer_client: Client,
) -> None:
    first, second, third = commits(3)
    measured(9e6, first)
    measured(9e6, second)
    measured(8e6, third, mark="b")
    figure = figure_of(viewer_client)
    assert [line["x"] for line in lines(figure)] == [[0, 1], [2]]
    (label,) = (one for one in figure["layout"]["annotations"] if "Day-0" not in one["text"])
    assert label["text"] == "torch a → b"
    page = page_of(viewer_client, PAGE)
    assert "Day-0 of decode was measured in another environment" in page


def test_every_boundary_is_told_in_the_table(
    viewer_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.queries.history.BOUNDARIES", 1)
    for commit, mark in zip(commits(3), "aba", strict=True):
        measured(9e6, commit, mark=mark)
    (_, *changed) = (text for line in lines(figure_of(viewer_client)) for text in line["text"])
    assert ["environment" in text for text in changed] == [True, True]
    assert "environment changed" in changed[0], "an old one is not looked up"
    assert "environment: torch b → a" in changed[1]


def test_the_band_is_the_spread(viewer_client: Client) -> None:
    first, second = commits(2)
    measured(10e6, first, iqr=2e6)
    for value in (6e6, 7e6, 8e6):
        measured(value, second)
    (band,) = (one for one in figure_of(viewer_client)["data"] if one.get("fill"))
    assert band["x"] == [0, 1, 1, 0]
    assert band["y"] == [11.0, 7.5, 6.5, 9.0]


def test_hover_says_what_the_row_says(viewer_client: Client) -> None:
    first, second = commits(2)
    measured(10e6, first)
    run = measured(8e6, second, iqr=3e5)
    (line,) = lines(figure_of(viewer_client))
    hover = line["text"][1]
    assert hover == (
        f"{second.sha[:10]} · run {run.pk} · 8.00 ms ± 150 µs · n = 10 in one launch"
        " · −20.0 % since Day-0 · change 1"
    )
    page = page_of(viewer_client, PAGE)
    link = f'href="/runs/{run.pk}/">{second.sha[:10]}'
    row = next(part for part in page.split("<tr>") if link in part)
    for said in ("8.00 ms", "150 µs", "−20.0 %", "change 1"):
        assert said in row
    assert "behind it is n = 10 in one launch in every row" in page


def test_the_address_chooses_workload_source_and_length(viewer_client: Client) -> None:
    small, large = make_spec(), make_spec(batch=8)
    for number in range(55):
        measured(9e6 + number, batch=1)
    measured(5e6, batch=8)
    (line,) = lines(figure_of(viewer_client))
    assert len(line["y"]) == 1, "the workload that ran last"
    chosen = Standing.objects.get(workload__batch=small.batch).workload_id
    address = f"{PAGE}?decode={chosen}&runs=50"
    (line,) = lines(figure_of(viewer_client, address))
    assert len(line["y"]) == 50
    page = page_of(viewer_client, address)
    assert "The last 50 of 55 runs; the CSV has all." in page
    assert f"b{large.batch} in128" in page


def test_one_source_is_drawn_at_a_time(viewer_client: Client) -> None:
    (first,) = commits(1)
    measured(5e6, first)
    measured(9e6)
    (line,) = lines(figure_of(viewer_client, f"{PAGE}?source=models"))
    assert line["y"] == [5.0]
    (line,) = lines(figure_of(viewer_client, f"{PAGE}?source=none"))
    assert line["y"] == [9.0]


def test_an_address_that_cannot_be_shows_everything(viewer_client: Client) -> None:
    measured(5e6)
    page = page_of(viewer_client, f"{PAGE}?decode=x&runs=7")
    assert "The filter cannot be used" in page
    assert len(lines(figure_of(viewer_client, f"{PAGE}?decode=x"))) == 1


def test_every_launch_is_in_the_csv(viewer_client: Client) -> None:
    first, second = commits(2)
    measured(6e6, second)
    early = measured(10e6, first)
    workload = Standing.objects.get().workload_id
    rows = csv_of(viewer_client.get(f"{PAGE}history.csv?workload={workload}"))
    assert [row["value"] for row in rows] == ["10000000.0", "6000000.0"]
    assert rows[0]["commit"] == first.sha
    assert (rows[0]["run"], rows[0]["unit"]) == (str(early.pk), "ns")


def test_comparisons_stand_at_their_candidate(viewer_client: Client) -> None:
    made = make_comparison()
    compared = made.workloads.get()
    compared.verdict, compared.effect, compared.state = "faster", -0.062, ComparedState.SETTLED
    compared.save()
    assert made.baseline is not None and made.candidate is not None
    measured(10e6, made.baseline)
    measured(9e6, made.candidate)
    (mark,) = (one for one in figure_of(viewer_client)["data"] if one.get("name") == "comparison")
    assert mark["x"] == [1]
    assert mark["customdata"] == [f"/compare/{made.pk}/"]
    assert mark["text"] == [f"comparison {made.pk}: faster −6.2 % against {made.baseline.sha[:10]}"]


def test_an_operator_annotates_a_commit(operator_client: Client, operator: User) -> None:
    first, second = commits(2)
    measured(10e6, first)
    measured(9e6, second)
    said = {"text": "new <b>weights</b>", "commit": first.sha[:8]}
    answer = operator_client.post(f"{PAGE}annotate/", said)
    assert (answer.status_code, answer["Location"]) == (302, PAGE)
    (mark,) = (one for one in figure_of(operator_client)["data"] if one.get("name") == "annotation")
    assert mark["x"] == [0]
    assert mark["text"] == ["new &lt;b&gt;weights&lt;/b&gt; (otto)"]
    assert "<b>weights" not in page_of(operator_client, PAGE)


def test_a_remark_on_a_platform_stands_on_every_model(operator_client: Client) -> None:
    measured(10e6)
    run = measured(9e6)
    make_model("other")
    said = {"text": "driver 560", "run": run.pk, "everywhere": "on"}
    operator_client.post("/models/other/cpu/annotate/", said)
    (mark,) = (one for one in figure_of(operator_client)["data"] if one.get("name") == "annotation")
    assert mark["x"] == [1]


def test_a_remark_of_now_stands_at_the_last_run(operator_client: Client) -> None:
    for value in (10e6, 9e6):
        measured(value)
    operator_client.post(f"{PAGE}annotate/", {"text": "quiet room"})
    (mark,) = (one for one in figure_of(operator_client)["data"] if one.get("name") == "annotation")
    assert mark["x"] == [1]


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"text": ""}, "This field is required"),
        ({"text": "x", "run": "999"}, "There is no run 999"),
        ({"text": "x", "commit": "abcdef1"}, "No measured repository has abcdef1"),
        ({"text": "x", "commit": "zz"}, "at least the first 7 characters"),
        ({"text": "x", "commit": "abcdef1", "run": "1"}, "not both"),
    ],
)
def test_it_says_what_is_wrong_with_an_annotation(
    said: dict[str, str], problem: str, operator_client: Client
) -> None:
    measured(10e6)
    answer = operator_client.post(f"{PAGE}annotate/", said)
    assert answer.status_code == 422
    assert problem in answer.content.decode()
    assert not Annotation.objects.exists()


def test_only_the_author_or_an_admin_removes_it(
    operator_client: Client, admin_client: Client, admin: User
) -> None:
    measured(10e6)
    row = Annotation.objects.create(
        platform=make_platform(), at=db_now(), text="x", author=admin, created_at=db_now()
    )
    operator_client.post(f"{PAGE}unannotate/", {"annotation": row.pk})
    assert Annotation.objects.exists()
    admin_client.post(f"{PAGE}unannotate/", {"annotation": row.pk})
    assert not Annotation.objects.exists()


def test_it_says_why_there_is_nothing(viewer_client: Client) -> None:
    make_model()
    make_platform()
    assert "llama-tiny was never run on cpu" in page_of(viewer_client, PAGE)
    make_run(RunState.QUEUED)
    page = page_of(viewer_client, PAGE)
    assert "Decode not measured yet" in summary(page)
    assert "Nothing is measured yet, so nothing is known of what is left" in page
    assert viewer_client.get("/models/llama-tiny/none/").status_code == 404
    assert viewer_client.get("/models/none/cpu/").status_code == 404


def test_it_lists_models_with_a_filter(viewer_client: Client) -> None:
    assert "No model was run yet" in page_of(viewer_client, "/models/")
    measured(5e6)
    measured(5e6, model="other")
    page = page_of(viewer_client, "/models/")
    assert 'href="/models/llama-tiny/cpu/"' in page and 'href="/models/other/cpu/"' in page
    assert "llama-tiny" not in page_of(viewer_client, "/models/?q=OTH").split("<tbody>")[1]
    assert "has “<i>”" not in page_of(viewer_client, "/models/?q=%3Ci%3E")


def test_it_needs_few_queries_however_long_the_history(viewer_client: Client) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as made:
            page_of(viewer_client, PAGE)
        return len(made)

    history = commits(6)
    for scenario in ("prefill", "decode", "training"):
        measured(5e6, history[0], scenario=scenario)
        measured(5e6, history[1], scenario=scenario, mark="b")
    one = count()
    for commit in history[2:]:
        for scenario in ("prefill", "decode", "training"):
            measured(5e6, commit, scenario=scenario)
    now = timezone.now() - timedelta(hours=1)
    Annotation.objects.create(platform=make_platform(), at=now, text="x", created_at=now)
    assert count() <= one <= 12
