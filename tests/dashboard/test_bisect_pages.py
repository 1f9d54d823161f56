"""Pages of bisects: asking, watching, what every commit said, and the CSV."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.models import Bisect, Repository
from dashboard.services.bisect_steps import advance_all
from tests.bisects import Bench, make_bisect, make_line, start_bisect
from tests.dashboard.reading import csv_of, page_of
from tests.factories import make_run, make_spec
from tests.sources import make_commit, make_repository

pytestmark = pytest.mark.django_db


def form(**changes: object) -> dict[str, object]:
    plain = {
        "repository": "models",
        "good": "v1",
        "bad": "main",
        "platform": "cpu",
        "margin": "2",
        "nonce": "x" * 20,
    }
    return {**plain, **changes}


def worked(folder: Path, turns: int, count: int = 9) -> Bisect:
    """A bisect of `count` commits after some turns of keeper and worker; the fourth is slower."""
    repository = Repository.objects.filter(slug="models").first() or make_repository()
    line = make_line(repository, count)
    made = start_bisect(repository, line[0], line[-1])
    bench = Bench(
        folder,
        lambda commit, number: (
            1e6 * (1.1 if commit.position >= line[3].position else 1) + number * 150
        ),
    )
    for _ in range(turns):
        advance_all()
        bench.work()
    advance_all()
    made.refresh_from_db()
    return made


def test_it_says_how_to_begin(operator_client: Client, viewer_client: Client) -> None:
    assert "Bisects need a repository" in page_of(operator_client, "/bisect/")
    make_repository()
    assert 'href="/bisect/new/"' in page_of(operator_client, "/bisect/")
    assert "Ask an operator" in page_of(viewer_client, "/bisect/")


def test_it_queues_a_bisect_once(operator_client: Client) -> None:
    make_repository()
    run = make_run(spec=make_spec(batch=3))
    for _ in range(2):
        response = operator_client.post("/bisect/new/", form(run=run.pk))
    made = Bisect.objects.get()
    assert response.headers["Location"] == f"/bisect/{made.pk}/"
    assert (made.state, made.spec["batch"], made.metric) == ("resolving", 3, "tpot")
    assert "Looking up the two commits." in page_of(operator_client, f"/bisect/{made.pk}/")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"repository": "other"}, "No repository of that name"),
        ({"good": "--output=x"}, "can be no branch"),
        ({"bad": "a" * 39}, "a part of a commit"),
        ({"run": "999"}, "There is no run 999"),
        ({"run": ""}, "required"),
        ({"margin": "0"}, "greater than or equal"),
        ({"platform": "moon"}, "No platform of that name"),
    ],
)
def test_it_says_what_cannot_be_searched(
    operator_client: Client, changes: dict[str, object], words: str
) -> None:
    make_repository()
    run = make_run()
    response = operator_client.post("/bisect/new/", form(**{"run": run.pk, **changes}))
    assert response.status_code == 422
    assert words in response.content.decode()
    assert not Bisect.objects.exists()


def test_it_starts_from_the_address(operator_client: Client) -> None:
    make_repository()
    page = page_of(operator_client, "/bisect/new/?repository=models&good=v1&bad=v2&run=4")
    assert all(f'value="{value}"' in page for value in ("v1", "v2", "4"))


def test_it_shows_the_search_while_it_is_measured(tmp_path: Path, viewer_client: Client) -> None:
    made = worked(tmp_path / "launch", 1)
    page = page_of(viewer_client, f"/bisect/{made.pk}/")
    assert "8 of 8 commits are suspected to be slower; about 4 more comparisons." in page
    assert 'hx-trigger="poll"' in page and "step 2: pair 0 of 10" in page
    live = page_of(viewer_client, f"/bisect/{made.pk}/live/")
    assert 'hx-trigger="poll"' in live and "<html" not in live


def test_it_shows_what_every_commit_said(tmp_path: Path, viewer_client: Client) -> None:
    made = worked(tmp_path / "launch", 8)
    page = page_of(viewer_client, f"/bisect/{made.pk}/")
    assert 'hx-trigger="poll"' not in page
    assert "“change 3” made Time per output token slower" in page
    assert '<span class="chip worse">culprit</span>' in page
    assert f'href="/compare/{made.steps.get(kind="confirm").comparison_id}/"' in page
    listed = page_of(viewer_client, "/bisect/")
    assert "“change 3” made Time per output token slower" in listed


def test_its_commits_are_a_csv(tmp_path: Path, viewer_client: Client) -> None:
    made = worked(tmp_path / "launch", 8)
    rows = csv_of(viewer_client.get(f"/bisect/{made.pk}/commits.csv"))
    assert [row["subject"] for row in rows] == [f"change {n}" for n in range(8, 0, -1)]
    assert [row["fate"] for row in rows].count("culprit") == 1
    by_subject = {row["subject"]: row for row in rows}
    assert (by_subject["change 3"]["answer"], by_subject["change 3"]["pairs"]) == ("bad", "10")
    assert float(by_subject["change 3"]["relative_change"]) == pytest.approx(0.1, abs=0.01)
    assert by_subject["change 6"]["answer"] == ""


def test_the_comparison_of_a_step_leads_back(tmp_path: Path, viewer_client: Client) -> None:
    made = worked(tmp_path / "launch", 1)
    page = page_of(viewer_client, f"/compare/{made.steps.get(number=0).comparison_id}/")
    assert f'href="/bisect/{made.pk}/"' in page


def test_it_cancels(operator_client: Client) -> None:
    made = make_bisect()
    page = operator_client.post(f"/bisect/{made.pk}/cancel/", follow=True).content.decode()
    made.refresh_from_db()
    assert made.state == "cancelled" and "what was measured is kept" in page
    page = operator_client.post(f"/bisect/{made.pk}/cancel/", follow=True).content.decode()
    assert "has already ended" in page


def test_foreign_text_stays_text(viewer_client: Client) -> None:
    repository = make_repository()
    make_commit(repository, "<script>alert(1)</script>", author="<b>x</b>")
    made = make_bisect(repository=repository)
    page = page_of(viewer_client, f"/bisect/{made.pk}/")
    assert "<script>alert" not in page and "<b>x</b>" not in page


def test_it_needs_as_many_queries_for_many_commits_as_for_few(
    tmp_path: Path, viewer_client: Client
) -> None:
    counts = []
    for count in (4, 20):
        made = worked(tmp_path / "launch", 8, count)
        with CaptureQueriesContext(connection) as queries:
            page_of(viewer_client, f"/bisect/{made.pk}/")
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 12
