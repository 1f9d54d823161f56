"""Planning and queueing a template, and the group of runs that comes of it."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.forms.runs import new_nonce
from dashboard.models import Run, RunGroup, RunState, TemplateVersion, User
from dashboard.services import templates
from tests.dashboard.reading import page_of
from tests.dashboard.template_text import HOSTILE, TEXT
from tests.factories import make_platform, make_run, make_spec


def order(**changes: object) -> dict[str, object]:
    plain: dict[str, object] = {"platform": "cpu", "seed": 7, "nonce": new_nonce(), "version": 1}
    return plain | changes


def test_it_plans_without_guessing(operator_client: Client, mine: TemplateVersion) -> None:
    page = page_of(operator_client, "/templates/mine/run/")
    assert "<b>4 runs</b> on cpu." in page
    assert "The time of all of them is unknown" in page
    assert "No worker of it is up" in page


def measured(batch: int, seconds: float, platform: str = "cpu") -> None:
    now = timezone.now()
    spec = make_spec(scenario="prefill", prompt_tokens=8, batch=batch)
    make_run(
        RunState.SUCCEEDED,
        spec=spec,
        platform=make_platform(platform),
        started_at=now - timedelta(seconds=seconds),
        ended_at=now,
    )


def test_it_estimates_from_the_median_of_earlier_runs(
    operator_client: Client, mine: TemplateVersion
) -> None:
    for seconds in (10, 20, 90):
        measured(1, seconds)
    measured(2, 15)
    measured(2, 500, platform="gpu")
    page = page_of(operator_client, "/templates/mine/run/?platform=cpu&models=llama-tiny")
    assert "<b>2 runs</b> on cpu, usually about <b>35.0 s</b> one after another." in page
    both = page_of(operator_client, "/templates/mine/run/")
    assert "one after another for the 2 that ran before. The time of 2 more is unknown" in both


def test_it_queues_the_plan_once_as_a_group(operator_client: Client, mine: TemplateVersion) -> None:
    sent = order(models=["llama-tiny"])
    first = operator_client.post("/templates/mine/run/", sent)
    again = operator_client.post("/templates/mine/run/", sent)
    group = RunGroup.objects.get()
    assert first.headers["Location"] == again.headers["Location"] == f"/groups/{group.pk}/"
    assert (group.version, group.seed, group.platform.slug) == (mine, 7, "cpu")
    assert sorted(run.spec["batch"] for run in group.runs.all()) == [1, 2]


def test_it_queues_the_version_that_was_shown(
    operator_client: Client, operator: User, mine: TemplateVersion
) -> None:
    templates.save_template(TEXT.replace("[1, 2]", "[1, 2, 4]"), operator, base=1)
    operator_client.post("/templates/mine/run/", order())
    assert Run.objects.count() == 4


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"platform": "moon"}, "No platform of that name"),
        ({"models": ["gpt-9"]}, "No model of that name"),
        ({"seed": "x"}, "Nothing was queued"),
        ({"nonce": "short"}, "Nothing was queued"),
    ],
)
def test_it_queues_nothing_for_an_order_that_cannot_be(
    changes: dict[str, object], said: str, operator_client: Client, mine: TemplateVersion
) -> None:
    response = operator_client.post("/templates/mine/run/", order(**changes))
    assert response.status_code == 422
    assert said in response.content.decode()
    assert not Run.objects.exists()


def test_it_says_when_another_model_cannot_take_the_lengths(
    operator_client: Client, operator: User
) -> None:
    templates.save_template(
        TEXT.replace("llama-tiny", "llama-small")
        .replace('"qwen3-moe-tiny"', '"qwen3-small"')
        .replace("prompt_tokens = 8", "prompt_tokens = 1024"),
        operator,
    )
    response = operator_client.get("/templates/mine/run/?models=llama-tiny")
    assert response.status_code == 422
    assert "llama-tiny takes up to 512 tokens" in response.content.decode()


def test_it_offers_no_models_to_a_template_that_brings_its_own(
    operator_client: Client, operator: User
) -> None:
    own = TEXT.replace('model = ["llama-tiny", "qwen3-moe-tiny"]', "").replace(
        "[fields]", '[fields]\nmodel = "own"\nconfig = { model_type = "llama" }'
    )
    templates.save_template(own, operator)
    page = page_of(operator_client, "/templates/mine/run/")
    assert "<legend>Models</legend>" not in page
    assert operator_client.post("/templates/mine/run/", order()).status_code == 302
    assert {run.workload.model.title for run in Run.objects.all()} == {"own (config)"}


def queued(client: Client) -> RunGroup:
    client.post("/templates/mine/run/", order())
    return RunGroup.objects.get()


def test_it_shows_the_progress_of_a_group(operator_client: Client, mine: TemplateVersion) -> None:
    group = queued(operator_client)
    first, second = group.runs.order_by("id")[:2]
    now = timezone.now()
    Run.objects.filter(pk=first.pk).update(state=RunState.SUCCEEDED, ended_at=now)
    Run.objects.filter(pk=second.pk).update(
        state=RunState.FAILED, failure_kind="crashed", ended_at=now
    )
    page = page_of(operator_client, f"/groups/{group.pk}/")
    assert "2 of 4 runs ended" in page
    for said in ("1 succeeded", "1 unsuccessful", "2 queued", "seed 7", "4 runs in this group"):
        assert said in page
    assert HOSTILE not in page
    cell = page_of(operator_client, f"/groups/{group.pk}/status/")
    assert 'hx-trigger="poll"' in cell
    assert "<html" not in cell


def test_it_stops_asking_when_a_group_is_over(
    operator_client: Client, mine: TemplateVersion
) -> None:
    group = queued(operator_client)
    group.runs.update(state=RunState.SUCCEEDED, ended_at=timezone.now())
    assert "hx-trigger" not in page_of(operator_client, f"/groups/{group.pk}/status/")


def test_it_filters_runs_by_group_and_template(
    operator_client: Client, mine: TemplateVersion
) -> None:
    other = make_run()
    group = queued(operator_client)
    for query in (f"group={group.pk}", "template=mine", f"group={group.pk}&state=active"):
        page = page_of(operator_client, f"/runs/?{query}")
        assert "4 runs match the filter" in page
        assert f'href="/runs/{other.pk}/"' not in page
    assert "No run matches" in page_of(operator_client, "/runs/?template=quick")
    assert "cannot be used" in page_of(operator_client, "/runs/?group=x")


def test_it_keeps_the_group_when_its_runs_are_sorted(
    operator_client: Client, mine: TemplateVersion
) -> None:
    group = queued(operator_client)
    make_run()
    page = page_of(operator_client, f"/groups/{group.pk}/?sort=run&group=99")
    numbers = [int(n) for n in re.findall(r'aria-label="Compare run (\d+)"', page)]
    assert numbers == sorted(run.pk for run in group.runs.all())


@pytest.mark.parametrize("address", ["/templates/", "/templates/mine/", "/groups/{group}/"])
def test_it_asks_the_database_as_often_for_many_rows(
    address: str, operator_client: Client, operator: User, mine: TemplateVersion
) -> None:
    address = address.format(group=queued(operator_client).pk)
    with CaptureQueriesContext(
        connection,
    ) as few:
        operator_client.get(address)
    for number in range(5):
        text = TEXT.replace("[1, 2]", f"[1, 2, {number + 3}]")
        templates.save_template(text, operator)
        templates.save_template(text.replace('"mine"', f'"t{number}"'), operator)
        operator_client.post("/templates/mine/run/", order())
    with CaptureQueriesContext(connection) as many:
        operator_client.get(address)
    assert len(many) == len(few) <= 12
