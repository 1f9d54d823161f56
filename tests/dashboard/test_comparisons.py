"""Pages of comparisons: asking, watching, the verdict, exports."""

from __future__ import annotations

import csv
import io
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.models import ComparedState, Comparison, ComparisonState, Repository, Run
from dashboard.queries.comparisons import between, comparison_view, get_comparison
from dashboard.queries.templates import plan
from dashboard.services.clock import db_now
from dashboard.services.templates import ensure_shipped
from profiler.errors import ExitCode
from tests.factories import make_result, make_run, make_spec
from tests.sources import (
    make_commit,
    make_compared,
    make_comparison,
    make_explained,
    make_pair,
    make_repository,
)

pytestmark = pytest.mark.django_db


def text(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


def ended(*effects: float, pairs: int = 10) -> Comparison:
    """A comparison that has ended, one workload per effect."""
    made = make_comparison()
    more = (make_spec(batch=number + 1) for number in range(1, len(effects)))
    compared = [made.workloads.get(), *(make_compared(made, spec) for spec in more)]
    for item, effect in zip(compared, effects, strict=True):
        for number in range(pairs):
            make_pair(item, 1e6 + number * 100, 1e6 * (1 + effect) + number * 150)
    made.workloads.update(state=ComparedState.SETTLED)
    return finish(made)


def finish(made: Comparison, state: str = ComparisonState.ENDED) -> Comparison:
    Comparison.objects.filter(pk=made.pk).update(state=state, ended_at=db_now())
    found = get_comparison(made.pk)
    assert found is not None
    return found


def form(**changes: object) -> dict[str, object]:
    plain = {
        "repository": "models",
        "baseline": "main",
        "candidate": "HEAD",
        "template": "quick",
        "platform": "cpu",
        "margin": "2",
        "nonce": "x" * 20,
    }
    return {**plain, **changes}


def test_it_says_how_to_begin(operator_client: Client) -> None:
    assert "Comparisons need a repository" in text(operator_client, "/compare/")
    make_repository()
    assert 'href="/compare/new/"' in text(operator_client, "/compare/")


def test_it_queues_a_comparison_once(operator_client: Client) -> None:
    ensure_shipped()
    row = make_repository(factory="bench.py:make")
    for _ in range(2):
        response = operator_client.post("/compare/new/", form())
    made = Comparison.objects.get()
    assert response.headers["Location"] == f"/compare/{made.pk}/"
    assert (made.state, made.margin, made.rungs) == ("resolving", 0.02, [10, 20, 40])
    specs = [item.spec for item in made.workloads.all()]
    assert [spec["scenario"] for spec in specs] == ["prefill", "decode", "training"]
    assert {spec["factory"] for spec in specs} == {"bench.py:make"}
    row.refresh_from_db()
    assert row.wanted_at is not None


def test_it_takes_the_workload_of_a_run(operator_client: Client) -> None:
    make_repository()
    run = make_run(spec=make_spec(batch=3))
    response = operator_client.post("/compare/new/", form(template="", run=run.pk))
    assert response.status_code == 302
    assert Comparison.objects.get().workloads.get().spec["batch"] == 3


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"repository": "other"}, "No repository of that name"),
        ({"baseline": "--output=x"}, "can be no branch"),
        ({"candidate": "a" * 39}, "a part of a commit"),
        ({"template": ""}, "Choose a template"),
        ({"template": "", "run": "999"}, "There is no run 999"),
        ({"margin": "0"}, "greater than or equal"),
        ({"platform": "moon"}, "No platform of that name"),
    ],
)
def test_it_says_what_cannot_be_compared(
    operator_client: Client, changes: dict[str, object], words: str
) -> None:
    ensure_shipped()
    make_repository()
    response = operator_client.post("/compare/new/", form(**changes))
    assert response.status_code == 422
    assert words in response.content.decode()
    assert not Comparison.objects.exists()


def test_it_starts_from_the_address(operator_client: Client) -> None:
    make_repository()
    page = text(operator_client, "/compare/new/?repository=models&baseline=v1&candidate=v2")
    assert 'value="v1"' in page and 'value="v2"' in page


@pytest.mark.parametrize(
    ("effects", "state", "code", "words"),
    [
        ([-0.1], "faster", ExitCode.FINE, "faster, −10.0 %"),
        ([0.1], "slower", ExitCode.REGRESSED, "slower, 10.0 %"),
        ([0.0], "no change", ExitCode.FINE, "no change within ±2 %"),
        (
            [-0.1, 0.1, 0.0],
            "slower",
            ExitCode.REGRESSED,
            "Wins 1, loses 1, unchanged 1; geo",
        ),
        ([-0.1, 0.0], "faster", ExitCode.FINE, "Wins 1, loses 0, unchanged 1"),
    ],
)
def test_its_first_sentence_is_the_verdict(
    viewer_client: Client, effects: list[float], state: str, code: ExitCode, words: str
) -> None:
    made = ended(*effects)
    view = comparison_view(made)
    assert (view.state, view.exit_code) == (state, code)
    page = text(viewer_client, f"/compare/{made.pk}/")
    assert words in page.split("Every workload")[0].replace("+", "")
    assert "numerics not checked" in page


def test_it_is_inconclusive_before_the_first_rung() -> None:
    view = comparison_view(ended(-0.1, pairs=7))
    assert (view.state, view.exit_code) == ("inconclusive", ExitCode.INCONCLUSIVE)


def test_it_gives_no_verdict_across_environments(viewer_client: Client) -> None:
    made = make_comparison()
    for _ in range(10):
        make_pair(made.workloads.get(), mark="b")
    made.workloads.update(state=ComparedState.SETTLED)
    view = comparison_view(finish(made))
    assert (view.state, view.exit_code) == ("not comparable", ExitCode.NOT_COMPARABLE)
    page = text(viewer_client, f"/compare/{made.pk}/")
    assert "environments of the launches differ in torch" in page
    assert '<td class="mono">2.13.0</td><td class="mono">2.12.0</td>' in page


def test_a_workload_that_failed_forbids_a_verdict_on_the_whole() -> None:
    made = ended(-0.1, 0.0)
    made.workloads.filter(position=1).update(state=ComparedState.FAILED, message="no build")
    assert comparison_view(made).state == "not comparable"


def test_it_counts_pairs_that_lost_a_launch(viewer_client: Client) -> None:
    made = make_comparison()
    compared = made.workloads.get()
    for _ in range(9):
        make_pair(compared)
    make_pair(compared, candidate=None, why="<b>the kernel launch failed</b>")
    page = text(viewer_client, f"/compare/{made.pk}/")
    assert "10 pairs measured, 1 of them dropped" in page
    assert "candidate: &lt;b&gt;the kernel launch failed&lt;/b&gt;" in page


def test_it_shows_the_pairs_as_they_arrive(viewer_client: Client) -> None:
    made = make_comparison()
    page = text(viewer_client, f"/compare/{made.pk}/live/")
    assert 'hx-trigger="poll"' in page and "pair 0 of 10" in page
    for _ in range(7):
        make_pair(made.workloads.get())
    page = text(viewer_client, f"/compare/{made.pk}/live/")
    assert "pair 7 of 10" in page and "so far −10.0 %" in page


def test_it_stops_polling_when_it_has_ended(viewer_client: Client) -> None:
    page = text(viewer_client, f"/compare/{ended(-0.1).pk}/live/")
    assert 'hx-trigger="poll"' not in page and 'hx-target="#comparison-body"' in page


def test_it_says_why_nothing_was_measured(viewer_client: Client) -> None:
    made = make_comparison()
    Comparison.objects.update(failure_kind="build_failed", message="The candidate: no build")
    finish(made, ComparisonState.FAILED)
    page = text(viewer_client, f"/compare/{made.pk}/")
    assert "Nothing was measured: The candidate: no build" in page


def test_it_shows_commits_that_the_baseline_has_not(viewer_client: Client) -> None:
    repository = make_repository()
    base = make_commit(repository, "base")
    side = make_commit(repository, "<i>side</i>", parents=[base.sha])
    merged = make_commit(repository, "merged", parents=[base.sha, side.sha])
    made = make_comparison(repository=repository, baseline=base, candidate=merged)
    found = between(made)
    assert [commit.subject for commit in found.commits] == ["merged", "<i>side</i>"]
    assert (found.total, found.behind) == (2, 0)
    assert "&lt;i&gt;side&lt;/i&gt;" in text(viewer_client, f"/compare/{made.pk}/")


def test_it_repeats_itself_by_a_command(viewer_client: Client) -> None:
    made = ended(-0.1)
    assert made.baseline is not None
    page = text(viewer_client, f"/compare/{made.pk}/")
    assert f"manage.py compare --repo models --base {made.baseline.sha}" in page
    assert "--seed 5" in page


def test_its_pairs_are_a_csv(viewer_client: Client) -> None:
    made = ended(-0.1)
    response = viewer_client.get(f"/compare/{made.pk}/pairs.csv")
    body = b"".join(response.streaming_content).decode()  # type: ignore[attr-defined]
    rows = list(csv.DictReader(io.StringIO(body)))
    assert len(rows) == 10
    assert (rows[0]["baseline"], rows[0]["order"]) == ("1000000.0", "AB")


def test_its_markdown_cannot_be_broken_by_a_commit(viewer_client: Client) -> None:
    repository = make_repository()
    make_commit(repository)
    hostile = make_commit(repository, "| ](http://x) <script> `x`")
    made = make_comparison(repository=repository, candidate=hostile)
    page = text(viewer_client, f"/compare/{made.pk}/report.md")
    assert "\\| \\](http://x) \\<script\\> \\`x\\`" in page
    assert "| workload | verdict |" in page


def test_it_measures_more_pairs(operator_client: Client) -> None:
    made = ended(-0.1)
    operator_client.post(f"/compare/{made.pk}/more/", {"pairs": "10"})
    made.refresh_from_db()
    assert (made.state, made.rungs[-1]) == ("measuring", 50)
    assert Run.objects.get().compared == made.workloads.get()


def test_it_measures_no_more_while_it_measures(operator_client: Client) -> None:
    made = make_comparison()
    response = operator_client.post(f"/compare/{made.pk}/more/", {"pairs": "10"}, follow=True)
    assert "once it has ended" in response.content.decode()


def test_it_cancels(operator_client: Client) -> None:
    made = make_comparison(state=ComparisonState.RESOLVING)
    operator_client.post(f"/compare/{made.pk}/cancel/")
    made.refresh_from_db()
    assert made.state == "cancelled"


def test_the_page_of_a_session_leads_to_its_comparison(viewer_client: Client) -> None:
    made = make_comparison()
    run = make_run("succeeded", compared=made.workloads.get())
    assert f'href="/compare/{made.pk}/"' in text(viewer_client, f"/runs/{run.pk}/")


def test_it_needs_as_many_queries_for_many_pairs_as_for_few(viewer_client: Client) -> None:
    made = ended(-0.1, 0.0, pairs=2)
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as queries:
            text(viewer_client, f"/compare/{made.pk}/")
        counts.append(len(queries))
        make_compared(made, make_spec(batch=9))
        for item in made.workloads.all():
            make_pair(item)
    assert counts[0] == counts[1] <= 12


def test_its_list_needs_as_many_queries_for_many_as_for_one(viewer_client: Client) -> None:
    repository = make_repository()
    counts = []
    for _ in range(2):
        make_comparison(repository=repository)
        with CaptureQueriesContext(connection) as queries:
            text(viewer_client, "/compare/")
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 12
    assert Repository.objects.count() == 1


def test_a_session_takes_no_place_among_measured_runs(viewer_client: Client) -> None:
    made = make_comparison()
    compared = made.workloads.get()
    run = make_run("succeeded", spec=make_spec())
    make_result(run, value=7.62e6)
    make_run("succeeded", spec=make_spec(), compared=compared)
    assert "7.62 ms" in text(viewer_client, "/")
    assert plan([make_spec()], "cpu").rows[0].past == 1


def test_it_offers_to_find_the_commit_among_several(operator_client: Client) -> None:
    repository = make_repository()
    base = make_commit(repository, "base")
    make_commit(repository, "between")
    made = make_comparison(repository=repository, baseline=base)
    compared = made.workloads.get()
    for number in range(10):
        make_pair(compared, 1e6, 1.1e6 + number)
    session = make_run("succeeded", compared=compared)
    made.workloads.update(state=ComparedState.SETTLED)
    found = finish(made)
    assert found.candidate is not None
    asked = f"good={base.sha}&amp;bad={found.candidate.sha}&amp;platform=cpu&amp;run={session.pk}"
    assert f"/bisect/new/?repository=models&amp;{asked}" in text(
        operator_client, f"/compare/{made.pk}/"
    )


def test_a_grid_of_workloads_is_a_heat_map(viewer_client: Client) -> None:
    made = ended(-0.12, 0.3, 0.0)
    page = text(viewer_client, f"/compare/{made.pk}/")
    grid = page.partition('<table class="heat">')[2].partition("</table>")[0]
    assert "decode out32 float32: Time per output token" in grid
    assert re.search(r'<td class="better3"[^>]*>▼ −12.0 %</td>', grid)
    assert re.search(r'<td class="worse4"[^>]*>▲ \+30.0 %</td>', grid)
    assert re.search(r'<td class="same"[^>]*>[+−]0.0 %, within ±2 %</td>', grid)


def test_a_grid_says_what_is_open_and_what_failed(viewer_client: Client) -> None:
    made = ended(-0.1, -0.1, 0.0)
    made.workloads.filter(position=1).update(state=ComparedState.FAILED, message="no build")
    made.workloads.filter(position=2).update(state=ComparedState.MEASURING)
    page = text(viewer_client, f"/compare/{made.pk}/live/")
    grid = page.partition('<table class="heat">')[2].partition("</table>")[0]
    assert ">failed</td>" in grid and ">pair 10 of 10</td>" in grid


def test_a_single_workload_needs_no_grid(viewer_client: Client) -> None:
    assert '<table class="heat">' not in text(viewer_client, f"/compare/{ended(-0.1).pk}/")


def test_its_page_loads_the_waterfall_of_what_changed_most(viewer_client: Client) -> None:
    made = make_explained(ended(-0.1, 0.3))
    page = text(viewer_client, f"/compare/{made.pk}/")
    assert (
        f'class="panel later" aria-labelledby="leading-title" hx-get="/compare/{made.pk}/' in page
    )
    part = viewer_client.get(f"/compare/{made.pk}/workloads/0/", headers={"HX-Request": "true"})
    body = part.content.decode()
    assert "<html" not in body and "Where the difference comes from" in body
