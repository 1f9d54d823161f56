"""Pages of tunings: opening, the ladder, what next, closing."""

from __future__ import annotations

import dataclasses
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.models import Commit, Iteration, RunState, Trace, Tuning, TuningState
from dashboard.services.tuning import FindingRef, NewIteration, add_iteration, close_tuning
from tests.dashboard.test_findings_panel import finding
from tests.factories import (
    make_metric,
    make_platform,
    make_ready_trace,
    make_report,
    make_result,
    make_run,
    make_user,
)
from tests.sources import make_commit, make_repository
from tests.tunings import keep, make_iteration, make_kept, make_tuning, measure, revert

pytestmark = pytest.mark.django_db


def text(client: Client, address: str, status: int = 200) -> str:
    response = client.get(address)
    assert response.status_code == status
    return response.content.decode()


def traced(tuning: Tuning, *findings: object) -> Trace:
    """The newest run of the tuned workload has a trace with these findings."""
    report = dataclasses.replace(make_report(), findings=list(findings))  # type: ignore[arg-type]
    return make_ready_trace(run=tuning.day0_runs.get(), report=report)


@pytest.fixture
def ready() -> dict[str, str]:
    """A measured run at a commit, and the form that tunes it."""
    repository = make_repository("kernels")
    run = make_run(RunState.SUCCEEDED, commit=make_commit(repository, "Day-0"))
    make_result(run, value=8e6)
    return {
        "place": f"{run.workload_id}-{run.platform_id}",
        "repository": "kernels",
        "target": "value",
        "value": "4 ms",
    }


def test_it_says_how_to_begin(operator_client: Client) -> None:
    page = text(operator_client, "/tuning/")
    assert "Nothing is tuned yet" in page and 'href="/tuning/new/"' in page
    page = text(operator_client, "/tuning/new/")
    assert "Nothing was measured yet" in page and "No repository is registered" in page


def test_only_operators_are_asked_to_act(viewer_client: Client) -> None:
    tuning = make_tuning()
    assert 'href="/tuning/new/"' not in text(viewer_client, "/tuning/")
    page = text(viewer_client, f"/tuning/{tuning.pk}/")
    assert "Try something" not in page and "/close/" not in page


def test_it_opens_a_tuning(operator_client: Client, ready: dict[str, str]) -> None:
    response = operator_client.post("/tuning/new/", ready)
    made = Tuning.objects.get()
    assert response.headers["Location"] == f"/tuning/{made.pk}/"
    assert (made.target_value, made.day0_value, made.metric) == (4e6, 8e6, "tpot")


def test_it_opens_towards_a_share_of_the_roofline(
    operator_client: Client, ready: dict[str, str]
) -> None:
    form = {**ready, "target": "roofline", "share": "50"}
    page = operator_client.post("/tuning/new/", form)
    assert page.status_code == 422
    assert "The roofline of decode" in page.content.decode()
    run = make_run(RunState.SUCCEEDED, commit=Commit.objects.get())
    make_metric(make_result(run, value=8e6), "mbu", value=0.25)
    operator_client.post("/tuning/new/", form)
    made = Tuning.objects.get()
    assert (made.target_value, made.target_share) == (4e6, 0.5)
    assert made.day0_commit.subject == "Day-0"


def test_it_opens_towards_a_rival(operator_client: Client, ready: dict[str, str]) -> None:
    rival = make_platform("rival")
    form = {**ready, "target": "rival", "rival": "rival"}
    assert "never measured on rival" in operator_client.post("/tuning/new/", form).content.decode()
    make_result(make_run(RunState.SUCCEEDED, platform=rival), value=5e6)
    operator_client.post("/tuning/new/", form)
    made = Tuning.objects.get()
    assert (made.target_value, made.rival) == (5e6, rival)
    assert "what rival reached" in text(operator_client, f"/tuning/{made.pk}/")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"place": "9-9"}, "Nothing of that kind was measured there"),
        ({"repository": "other"}, "No repository of that name"),
        ({"runs": "12, x"}, "Numbers of runs with commas"),
        ({"runs": "999"}, "Run 999 has no time per output token"),
        ({"day0": "--output=x"}, "can be no branch"),
        ({"value": "fast"}, "is no value of time per output token"),
        ({"value": "4"}, "write it with its unit: 4.6 ms"),
        ({"value": ""}, "Say which"),
        ({"value": "9 ms"}, "is met by Day-0 already"),
        ({"target": "roofline", "share": ""}, "Say which"),
        ({"target": "rival", "rival": "cpu"}, "choose another platform as rival"),
        ({"metric": "ttft"}, "no speed of decode"),
    ],
)
def test_it_says_what_cannot_be_tuned(
    operator_client: Client, ready: dict[str, str], changes: dict[str, str], words: str
) -> None:
    response = operator_client.post("/tuning/new/", {**ready, **changes})
    assert response.status_code == 422
    assert words in response.content.decode()
    assert not Tuning.objects.exists()


def test_it_is_opened_from_a_finding_and_goes_on_to_the_first_iteration(
    operator_client: Client, ready: dict[str, str]
) -> None:
    run = make_run(RunState.SUCCEEDED, commit=make_commit(make_repository("other")))
    del ready["place"]
    make_result(run)
    report = dataclasses.replace(make_report(), findings=[finding(subject="aten::mm")])
    trace = make_ready_trace(run=run, report=report)
    page = text(operator_client, f"/traces/{trace.pk}/")
    address = f"/tuning/start/?trace={trace.pk}&kind=redundant_copy&subject=aten%3A%3Amm"
    assert address.replace("&", "&amp;") in page
    started = operator_client.get(address)
    assert started.headers["Location"].startswith("/tuning/new/?trace=")
    form = text(operator_client, started.headers["Location"])
    assert f'name="trace" value="{trace.pk}"' in form
    assert f'value="{run.workload_id}-{run.platform_id}" selected' in form
    origin = {"trace": str(trace.pk), "kind": "redundant_copy", "subject": "aten::mm"}
    place = {"place": f"{run.workload_id}-{run.platform_id}", "repository": "other"}
    opened = operator_client.post("/tuning/new/", {**ready, **place, **origin})
    made = Tuning.objects.get()
    target = urlsplit(opened.headers["Location"])
    assert target.path == f"/tuning/{made.pk}/new/"
    assert parse_qs(target.query) == {key: [value] for key, value in origin.items()}
    again = operator_client.get(address)
    assert again.headers["Location"].startswith(f"/tuning/{made.pk}/new/?trace=")


def test_uploads_are_not_tuned(operator_client: Client) -> None:
    report = dataclasses.replace(make_report(), findings=[finding()])
    trace = make_ready_trace(report=report)
    assert "Tune this" not in text(operator_client, f"/traces/{trace.pk}/")


def test_its_first_sentence_says_where_we_are(viewer_client: Client) -> None:
    tuning = make_tuning(target=4e6)
    page = text(viewer_client, f"/tuning/{tuning.pk}/")
    assert "Time per output token is at its Day-0 value of 8.00 ms; nothing was tried yet" in page
    assert "4.00 ms (−50.0 %) remain to the target of 4.00 ms" in page
    make_kept(tuning, -0.25)
    revert(make_iteration(tuning, "no use"))
    page = text(viewer_client, f"/tuning/{tuning.pk}/")
    assert "went from 8.00 ms at Day-0 to 6.00 ms: 1.33 × as fast, −25.0 %" in page
    assert "1 of 2 tried kept. 2.00 ms (−33.3 %) remain" in page
    make_kept(tuning, -0.5)
    assert "The target of 4.00 ms is reached." in text(viewer_client, f"/tuning/{tuning.pk}/")


def test_its_page_shows_what_was_kept_and_what_failed(viewer_client: Client) -> None:
    tuning = make_tuning()
    make_kept(tuning, -0.1)
    tried = make_iteration(tuning, "quantise <b>it</b>")
    measure(tried, 0.1)
    revert(tried, "dequantising dominates")
    page = text(viewer_client, f"/tuning/{tuning.pk}/")
    assert "quantise &lt;b&gt;it&lt;/b&gt;" in page and "dequantising dominates" in page
    assert "Kept all the same because:" in page and "answers compared by hand" in page
    assert "▼ faster" in page and "▲ slower" in page
    assert 'id="ladder-figure"' in page


def test_it_says_how_far_the_roofline_is_or_why_not(viewer_client: Client) -> None:
    tuning = make_tuning()
    page = text(viewer_client, f"/tuning/{tuning.pk}/")
    assert "The distance to the roofline is not known: no peak of the device" in page
    make_metric(tuning.day0_runs.get().result, "mbu", value=0.25)
    page = text(viewer_client, f"/tuning/{tuning.pk}/")
    assert "What is kept reaches 25.0 % of the roofline (2.00 ms" in page


def test_what_next_leaves_out_what_was_tried(operator_client: Client) -> None:
    tuning = make_tuning()
    trace = traced(tuning, finding(title="Copy A"), finding(title="Gap B", kind="roofline_gap"))
    page = text(operator_client, f"/tuning/{tuning.pk}/").split('id="next"')[1]
    assert page.index("Copy A") < page.index("Gap B") and "Tried already" not in page
    ref = FindingRef(kind="redundant_copy", subject="aten::contiguous", title="Copy A", trace=trace)
    made = add_iteration(tuning, NewIteration(hypothesis="no copy", finding=ref), None)
    revert(made)
    page = text(operator_client, f"/tuning/{tuning.pk}/").split('id="next"')[1]
    assert "Gap B" in page.split("Tried already and still there: 1")[0]
    assert "Copy A" in page.split("Tried already and still there: 1")[1]
    assert "iteration 1 reverted" in page


def test_what_next_says_when_there_is_no_trace(viewer_client: Client) -> None:
    assert "No trace of this workload was read yet" in text(
        viewer_client, f"/tuning/{make_tuning().pk}/"
    )


def test_nothing_left_to_try_is_a_result(viewer_client: Client) -> None:
    tuning = make_tuning()
    traced(tuning)
    assert "That is a result." in text(viewer_client, f"/tuning/{tuning.pk}/")


def test_the_list_tells_every_tuning_and_filters(viewer_client: Client) -> None:
    tuning = make_tuning()
    make_kept(tuning, -0.5)
    make_iteration(tuning, "undecided")
    page = text(viewer_client, "/tuning/")
    assert f'href="/tuning/{tuning.pk}/"' in page and "2.00" in page
    assert "Target reached" in page
    assert "No tuning is in that state" in text(viewer_client, "/tuning/?state=stopped")
    assert "The filter cannot be used" in text(viewer_client, "/tuning/?state=odd")


def test_it_closes_with_a_reason(operator_client: Client) -> None:
    tuning = make_tuning()
    address = f"/tuning/{tuning.pk}/close/"
    assert "closes as stopped" in text(operator_client, address)
    assert operator_client.post(address, {"reason": ""}).status_code == 422
    idea = make_iteration(tuning)
    blocked = operator_client.post(address, {"reason": "enough"})
    assert blocked.status_code == 422 and "undecided" in blocked.content.decode()
    revert(idea)
    operator_client.post(address, {"reason": "<i>enough</i>"})
    tuning.refresh_from_db()
    assert tuning.state == TuningState.STOPPED
    page = text(operator_client, f"/tuning/{tuning.pk}/")
    assert "&lt;i&gt;enough&lt;/i&gt;" in page and "Try something" not in page


def test_a_closed_tuning_can_be_followed_by_another(
    operator_client: Client, ready: dict[str, str]
) -> None:
    operator_client.post("/tuning/new/", ready)
    assert "already by tuning" in operator_client.post("/tuning/new/", ready).content.decode()
    close_tuning(Tuning.objects.get().pk, "done", make_user())
    operator_client.post("/tuning/new/", ready)
    assert Tuning.objects.count() == 2


def test_its_page_takes_a_fixed_number_of_queries(viewer_client: Client) -> None:
    tuning = make_tuning()
    traced(tuning, finding())
    make_kept(tuning, -0.1)

    def count() -> int:
        with CaptureQueriesContext(connection) as caught:
            text(viewer_client, f"/tuning/{tuning.pk}/")
        return len(caught)

    few = count()
    for number in range(4):
        made = make_iteration(tuning, f"more {number}")
        measure(made, -0.1)
    keep(Iteration.objects.get(number=2))
    assert count() <= few + 1
    assert few <= 12


def test_the_list_takes_a_fixed_number_of_queries(viewer_client: Client) -> None:
    make_kept(make_tuning())
    with CaptureQueriesContext(connection) as one:
        text(viewer_client, "/tuning/")
    for tuning in list(Tuning.objects.all()):
        close_tuning(tuning.pk, "done", make_user())
    make_kept(make_tuning(target=3e6))
    with CaptureQueriesContext(connection) as two:
        text(viewer_client, "/tuning/")
    assert len(one) == len(two) <= 12
