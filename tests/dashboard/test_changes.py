"""Pages of changes: the inbox, one change, what may be done, the files."""

from __future__ import annotations

import csv
import io

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django.fixtures import Settings

from dashboard.figures.change import change_figure
from dashboard.models import Change, ChangeDirection, ChangeState, Comparison
from dashboard.queries.changes import change_view
from dashboard.services.change_scan import scan_series
from tests.histories import make_change, make_history, noisy

pytestmark = pytest.mark.django_db
HOSTILE = '<script>alert("x")</script>\x1b[31m'


def text(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


def rows(client: Client, address: str) -> list[dict[str, str]]:
    response = client.get(address)
    assert response.headers["Content-Type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(io.StringIO(response.getvalue().decode())))


def found() -> Change:
    """A change that the detection found in a history of 20 commits."""
    runs = make_history(noisy((14, 1e6), (6, 1.12e6)))
    (made,) = scan_series(runs[0].workload_id, runs[0].platform_id)
    return made


def test_it_says_how_changes_come_about(viewer_client: Client) -> None:
    page = text(viewer_client, "/changes/")
    assert "No change was found yet" in page and "three commits on each side" in page


def test_the_inbox_holds_what_is_open(viewer_client: Client) -> None:
    made = [make_change(state=state, reason="r") for state in ChangeState.values]
    page = text(viewer_client, "/changes/")
    shown = {change.state for change in made if f'href="/changes/{change.pk}/"' in page}
    assert shown == {"new", "confirming", "confirmed"}
    assert "1–3 of 3 changes" in page


@pytest.mark.parametrize("state", ChangeState.values)
def test_its_views_are_in_the_address(viewer_client: Client, state: str) -> None:
    for one in ChangeState.values:
        make_change(state=one, reason="r")
    page = text(viewer_client, f"/changes/?state={state}")
    assert "1–1 of 1 changes" in page
    assert f'<a href="?state={state}" aria-current="page">' in page


def test_it_filters_by_direction_model_and_platform(viewer_client: Client) -> None:
    make_change()
    make_change(direction=ChangeDirection.FASTER, effect=-0.1)
    assert "−10.0 % faster" in text(viewer_client, "/changes/?direction=faster")
    assert "10.0 % slower" not in text(viewer_client, "/changes/?direction=faster")
    both = "/changes/?model=llama-tiny&platform=cpu"
    assert "1–2 of 2 changes" in text(viewer_client, both)
    wrong = text(viewer_client, "/changes/?direction=sideways")
    assert "The filter cannot be used" in wrong and "1–2 of 2 changes" in wrong


def test_an_empty_view_is_a_result(viewer_client: Client) -> None:
    make_change(state=ChangeState.REJECTED)
    assert "Nothing is open: that is a result" in text(viewer_client, "/changes/")
    page = text(viewer_client, "/changes/?state=fixed&model=llama-tiny")
    assert "No change in this view" in page and 'href="?state=fixed"' in page


def test_its_page_says_what_happened_and_shows_the_points(viewer_client: Client) -> None:
    change = found()
    page = text(viewer_client, f"/changes/{change.pk}/")
    answer = page.split("History around it")[0]
    assert "slower, since" in answer and change.after_commit.sha[:10] in answer
    assert "pairs have not decided it yet" in answer
    assert page.count("<circle class=") == 18 and "Table of 18 points" in page
    assert change.after_commit.sha[:10] in page.rsplit("Commits between", 1)[1]
    assert "not measured" in page


def test_it_offers_no_deeds_to_readers(viewer_client: Client) -> None:
    page = text(viewer_client, f"/changes/{make_change().pk}/")
    assert "Confirm by pairs" not in page and "Acknowledge" not in page


def test_a_confirmed_change_names_operator_and_comparison(operator_client: Client) -> None:
    change = make_change(
        state=ChangeState.CONFIRMED,
        culprit="aten::softmax",
        culprit_detail="+1.20 ms of +1.30 ms per step",
        sentence="slower, 12.0 %",
        measured_effect=0.12,
    )
    page = text(operator_client, f"/changes/{change.pk}/")
    assert "aten::softmax" in page and "+1.20 ms of +1.30 ms per step" in page
    assert "+12.0 %, slower" in page
    assert "Confirm by pairs" not in page and "Acknowledge" in page


def test_the_fix_is_named(viewer_client: Client) -> None:
    runs = make_history([1e6, 1.1e6, 1e6])
    faster = make_change(
        runs[1], runs[2], direction=ChangeDirection.FASTER, state=ChangeState.CONFIRMED
    )
    slower = make_change(
        runs[0],
        runs[1],
        state=ChangeState.FIXED,
        fixed_by=faster,
        fixed_commit=faster.after_commit,
    )
    assert f'(<a href="/changes/{faster.pk}/">' in text(viewer_client, f"/changes/{slower.pk}/")
    assert f"change {slower.pk}</a>" in text(viewer_client, f"/changes/{faster.pk}/")


def test_what_came_after_the_fix_is_no_part_of_the_loss(viewer_client: Client) -> None:
    runs = make_history([1e6, 1.1e6, 1.1e6, 1e6, 1e6])
    change = make_change(runs[0], runs[1], state=ChangeState.FIXED, fixed_commit=runs[3].commit)
    sides = [row["side"] for row in rows(viewer_client, f"/changes/{change.pk}/points.csv")]
    assert sides == ["before", "after", "after", "", ""]


def test_the_levels_stay_within_the_box() -> None:
    runs = make_history([1e6, 1.1e6])
    view = change_view(make_change(runs[0], runs[1]))
    figure = change_figure(view)
    assert figure is not None
    assert [(level.x1, level.x2) for level in figure.levels] == [
        ("0.0", "242.4"),
        ("357.6", "600.0"),
    ]


def test_a_change_without_its_runs_still_has_a_page(viewer_client: Client) -> None:
    change = make_change(comparable_hash="f" * 64, before_run=None, after_run=None)
    assert "no longer part of the history" in text(viewer_client, f"/changes/{change.pk}/")


def test_its_buttons_measure_and_acknowledge(operator_client: Client) -> None:
    change = make_change()
    response = operator_client.post(f"/changes/{change.pk}/confirm/", follow=True)
    assert "queued to be measured in pairs" in response.content.decode()
    assert Comparison.objects.count() == 1
    again = operator_client.post(f"/changes/{change.pk}/confirm/", follow=True)
    assert "is confirming" in again.content.decode()
    other = make_change(state=ChangeState.CONFIRMED)
    operator_client.post(f"/changes/{other.pk}/acknowledge/", {"reason": "wanted"})
    other.refresh_from_db()
    assert (other.state, other.reason) == ("acknowledged", "wanted")
    silent = operator_client.post(f"/changes/{other.pk}/acknowledge/", {}, follow=True)
    assert "needs a reason" in silent.content.decode()


def test_foreign_text_stays_text(viewer_client: Client) -> None:
    change = make_change(
        state=ChangeState.ACKNOWLEDGED,
        culprit=HOSTILE,
        culprit_detail=HOSTILE,
        sentence=HOSTILE,
        reason=HOSTILE,
    )
    change.after_commit.subject = HOSTILE
    change.after_commit.save()
    for address in ("/changes/?state=every", f"/changes/{change.pk}/"):
        page = text(viewer_client, address)
        assert "<script>alert" not in page and "\x1b" not in page
        assert "&lt;script&gt;" in page


def test_the_list_is_a_file_too(viewer_client: Client) -> None:
    change = make_change(culprit="=cmd()")
    make_change(state=ChangeState.REJECTED)
    (row,) = rows(viewer_client, "/changes/changes.csv")
    assert (row["change"], row["state"], row["relative_effect"]) == (str(change.pk), "new", "0.1")
    assert row["culprit"] == "'=cmd()" and row["after_commit"] == change.after_commit.sha
    assert len(rows(viewer_client, "/changes/changes.csv?state=every")) == 2


def test_the_points_are_a_file_too(viewer_client: Client) -> None:
    change = found()
    points = rows(viewer_client, f"/changes/{change.pk}/points.csv")
    assert len(points) == 18
    assert [point["side"] for point in points].count("after") == 6
    assert (points[0]["metric"], points[0]["unit"]) == ("tpot", "ns")


def test_its_pages_ask_few_questions(viewer_client: Client) -> None:
    change = found()
    for _ in range(5):
        make_change()
    for address in ("/changes/", f"/changes/{change.pk}/"):
        with CaptureQueriesContext(connection) as asked:
            text(viewer_client, address)
        assert len(asked) <= 14, address


def test_it_says_whether_changes_are_measured_by_themselves(
    viewer_client: Client, settings: Settings
) -> None:
    settings.CONFIRM_CHANGES = False
    assert "CONFIRM_CHANGES is off" in text(viewer_client, "/changes/")
    settings.CONFIRM_CHANGES = True
    assert "one per platform at a time" in text(viewer_client, "/changes/")
