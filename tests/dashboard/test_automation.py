"""Pages of schedules, filled and empty, and what wrong input is told."""

from __future__ import annotations

import csv
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.models import Budget, Firing, RunState, Schedule, ScheduleKind
from dashboard.services import automation_queue, templates
from tests.automation import make_firing, make_schedule, make_template
from tests.dashboard.template_text import HOSTILE
from tests.factories import make_heartbeat, make_platform, make_run
from tests.sources import make_commit, make_repository

pytestmark = pytest.mark.django_db


@pytest.fixture
def form() -> dict[str, str]:
    """What an operator enters for a nightly run."""
    make_platform()
    return {
        "name": "nightly",
        "kind": "interval",
        "template": make_template().template.name,
        "platform": "cpu",
        "repository": "",
        "branch": "",
        "every_h": "24",
        "at": "03:30",
        "newest": "",
    }


def text(client: Client, address: str, status: int = 200) -> str:
    response = client.get(address)
    assert response.status_code == status
    return response.content.decode()


def test_it_says_how_to_make_the_first(viewer_client: Client, operator_client: Client) -> None:
    assert "Ask an operator" in text(viewer_client, "/automation/")
    page = text(operator_client, "/automation/")
    assert "No schedule yet" in page and 'href="/automation/new/"' in page


def test_it_makes_a_nightly_schedule(operator_client: Client, form: dict[str, str]) -> None:
    response = operator_client.post("/automation/new/", form)
    row = Schedule.objects.get()
    assert response.headers["Location"] == f"/automation/{row.pk}/"
    assert (row.kind, row.every_h, row.at_minute, row.branch) == ("interval", 24, 210, "")
    assert "every day, counted from 03:30 UTC" in text(operator_client, "/automation/")


def test_it_makes_one_of_new_commits(operator_client: Client, form: dict[str, str]) -> None:
    make_repository()
    change = {"kind": "commits", "repository": "models", "branch": "main", "newest": "3"}
    operator_client.post("/automation/new/", form | change)
    row = Schedule.objects.get()
    assert (row.kind, row.every_h, row.newest) == ("commits", None, 3)
    assert "each new commit of models, branch main" in text(
        operator_client, f"/automation/{row.pk}/"
    )


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("name", "", "required"),
        ("name", "a\x00b", "Null characters"),
        ("kind", "hourly", "not one of the available"),
        ("template", "nothing", "No template of that name"),
        ("platform", "moon", "No platform of that name"),
        ("repository", "nobody", "No repository of that name"),
        ("every_h", "0", "greater than or equal to 1"),
        ("every_h", "x", "whole number"),
        ("at", "25:00", "valid time"),
        ("newest", "99", "less than or equal to 50"),
        ("branch", "main", "A branch and its repository belong together"),
        ("kind", "commits", "New commits of what"),
    ],
)
def test_it_says_what_is_wrong(
    operator_client: Client, form: dict[str, str], field: str, value: str, words: str
) -> None:
    response = operator_client.post("/automation/new/", form | {field: value})
    assert response.status_code == 422
    assert words in response.content.decode()
    assert not Schedule.objects.exists()


def test_it_starts_from_the_address(operator_client: Client) -> None:
    make_repository()
    page = text(operator_client, "/automation/new/?kind=commits&repository=models&branch=main")
    assert '<option value="models" selected>' in page
    assert '<option value="commits" selected>' in page
    text(operator_client, "/automation/new/?kind=nonsense&branch=" + "x" * 999)


def test_its_buttons_switch_fire_and_forget(operator_client: Client) -> None:
    row = make_schedule()
    address = f"/automation/{row.pk}/change/"
    for action, enabled in (("off", False), ("on", True)):
        operator_client.post(address, {"action": action})
        row.refresh_from_db()
        assert row.enabled is enabled
    nonce = "n" * 20
    for _ in range(2):
        operator_client.post(address, {"action": "fire", "nonce": nonce})
    assert Firing.objects.count() == 1
    operator_client.post(address, {"action": "explode"})
    assert Schedule.objects.count() == 1
    operator_client.post(address, {"action": "delete"})
    assert not Schedule.objects.exists()


def test_it_drops_what_waits_and_says_when_it_is_too_late(operator_client: Client) -> None:
    firing = make_firing()
    for said in ("Dropped", "waits no more"):
        response = operator_client.post(f"/automation/firings/{firing.pk}/drop/", follow=True)
        assert said in response.content.decode()


def test_it_shows_why_a_firing_went_and_how_far_it_is(viewer_client: Client) -> None:
    commit = make_commit(repository := make_repository(), HOSTILE)
    schedule = make_schedule(
        ScheduleKind.COMMITS, repository=repository, branch="main", name=HOSTILE
    )
    make_firing(schedule, commit=commit, cause="commit", cause_text=commit.subject, left_out=4)
    automation_queue.queue_waiting()
    for address in ("/automation/", f"/automation/{schedule.pk}/"):
        page = text(viewer_client, address)
        assert "0 of 2" in page and "+4 older left out" in page
        assert "<img src=x" not in page and "&lt;img src=x" in page


def test_the_page_of_a_group_names_the_schedule_that_queued_it(viewer_client: Client) -> None:
    firing = make_firing(make_schedule(name="nightly"))
    automation_queue.queue_waiting()
    firing.refresh_from_db()
    page = text(viewer_client, f"/groups/{firing.group_id}/")
    assert f'by the schedule <a href="/automation/{firing.schedule_id}/">nightly</a>' in page


def test_it_shows_why_a_firing_waits(viewer_client: Client, operator_client: Client) -> None:
    Budget.objects.create(platform=make_platform(), minutes_per_day=0)
    firing = make_firing()
    automation_queue.queue_waiting()
    assert "raise the budget or drop this firing" in text(viewer_client, "/automation/")
    drop = f'action="/automation/firings/{firing.pk}/drop/"'
    assert drop not in text(viewer_client, "/automation/")
    assert drop in text(operator_client, "/automation/")


def test_it_forecasts_the_queue_of_every_platform(viewer_client: Client) -> None:
    now = timezone.now()
    specs = templates.runs_of(make_template())
    make_run(RunState.SUCCEEDED, spec=specs[0], started_at=now - timedelta(seconds=90))
    for _ in range(2):
        make_run(RunState.QUEUED, spec=specs[0])
    make_run(RunState.QUEUED, spec=specs[1])
    make_heartbeat("worker")
    for address in ("/automation/", "/platforms/cpu/"):
        page = text(viewer_client, address)
        row = page[page.index('<th scope="row"><a href="/platforms/cpu/">') :].split("</tr>")[0]
        cells = [cell.partition("<")[0] for cell in row.replace("</td>", "").split('"num"')[1:]]
        values = [cell.rpartition(">")[2].strip() for cell in cells]
        assert values[:3] == ["1", "3", "0"]
        assert "180 s" in row and "1" in values


def test_a_platform_without_history_or_worker_says_so(viewer_client: Client) -> None:
    make_run(RunState.QUEUED)
    page = text(viewer_client, "/automation/")
    assert "not known" in page and "no worker" in page


def test_it_sets_and_takes_away_a_budget(operator_client: Client) -> None:
    make_platform()
    operator_client.post("/platforms/cpu/budget/", {"minutes": "30"})
    assert Budget.objects.get().minutes_per_day == 30
    assert 'value="30.0"' in text(operator_client, "/platforms/cpu/budget/")
    operator_client.post("/platforms/cpu/budget/", {"minutes": ""})
    assert not Budget.objects.exists()


@pytest.mark.parametrize("minutes", ["-1", "nan", "inf", "1e9", "many"])
def test_it_refuses_a_budget_that_cannot_be(operator_client: Client, minutes: str) -> None:
    make_platform()
    response = operator_client.post("/platforms/cpu/budget/", {"minutes": minutes})
    assert response.status_code == 422
    assert not Budget.objects.exists()


def test_there_is_no_budget_of_nowhere(operator_client: Client) -> None:
    assert operator_client.get("/platforms/nowhere/budget/").status_code == 404


def test_its_table_is_a_csv_too(viewer_client: Client) -> None:
    firing = make_firing(cause_text="=cmd()")
    response = viewer_client.get(f"/automation/{firing.schedule_id}/firings.csv")
    lines = b"".join(response).decode().splitlines()
    (row,) = csv.DictReader(lines)
    assert (row["firing"], row["cause_text"], row["usual_ns"]) == (str(firing.pk), "'=cmd()", "")


@pytest.mark.parametrize("page", ["2", "x", "-1", "99999999999999999999"])
def test_a_page_that_is_not_there_is_the_nearest(viewer_client: Client, page: str) -> None:
    make_firing()
    assert "1–1 of 1 firings" in text(viewer_client, f"/automation/?page={page}").replace(
        "&ndash;", "–"
    )


def test_it_needs_as_many_queries_for_many_as_for_one(viewer_client: Client) -> None:
    counts = []
    for number in range(2):
        for _ in range(1 + 4 * number):
            make_firing(make_schedule(platform=make_platform(f"p{Schedule.objects.count()}")))
            make_run(RunState.QUEUED)
        automation_queue.queue_waiting()
        make_firing()
        with CaptureQueriesContext(connection) as queries:
            text(viewer_client, "/automation/")
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 12
