"""Starting, cancelling and repeating runs."""

from __future__ import annotations

import pytest
from django.test import Client

from dashboard.forms.runs import new_nonce
from dashboard.models import Audit, Platform, Run, RunState, User
from profiler import spec as specs
from tests.dashboard.trigger_values import Values, values
from tests.factories import make_platform, make_run, make_spec, make_user


@pytest.fixture(autouse=True)
def cpu(db: None) -> None:
    make_platform("cpu")


def test_it_shows_the_limits_and_a_fresh_nonce(operator_client: Client) -> None:
    page = operator_client.get("/runs/new/").content.decode()
    assert "1 to 4,096" in page
    assert "llama-tiny" in page
    other = operator_client.get("/runs/new/").content.decode()
    assert page.split('name="nonce"')[1][:60] != other.split('name="nonce"')[1][:60]


def test_it_queues_one_run_per_scenario(operator_client: Client, operator: User) -> None:
    response = operator_client.post("/runs/new/", values())
    assert response.status_code == 302
    assert response.headers["Location"] == "/runs/"
    made = Run.objects.order_by("id")
    assert [run.workload.scenario for run in made] == ["prefill", "decode"]
    assert {run.created_by for run in made} == {operator}
    assert made[1].spec["output_tokens"] == 4


def test_it_opens_the_run_when_there_is_one(operator_client: Client) -> None:
    response = operator_client.post("/runs/new/", values(scenarios=["training"]))
    assert response.headers["Location"] == f"/runs/{Run.objects.get().pk}/"


def test_it_makes_the_runs_once_for_a_double_click(operator_client: Client) -> None:
    sent = values()
    first = operator_client.post("/runs/new/", sent)
    assert operator_client.post("/runs/new/", sent).headers == first.headers
    assert Run.objects.count() == 2


def test_it_refuses_a_nonce_that_came_with_other_values(operator_client: Client) -> None:
    sent = values()
    operator_client.post("/runs/new/", sent)
    response = operator_client.post("/runs/new/", {**sent, "batch": 3})
    assert response.status_code == 422
    assert "already sent with other values" in response.content.decode()
    assert Run.objects.count() == 2


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"batch": 0}, "batch", "from 1 to 4,096"),
        ({"batch": 99_999}, "batch", "from 1 to 4,096"),
        ({"batch": "two"}, "batch", "from 1 to 4,096"),
        ({"batch": ""}, "batch", "from 1 to 4,096"),
        ({"iterations": 10**30}, "iterations", "from 1 to 10,000"),
        ({"scenarios": []}, "scenarios", "at least one scenario"),
        ({"scenarios": ["sleeping"]}, "scenarios", "No scenario of that name"),
        ({"model": "gpt-9"}, "model", "No model of that name"),
        ({"platform": "moon"}, "platform", "No platform of that name"),
        ({"dtype": "int3"}, "dtype", "float32, bfloat16, float16"),
        ({"output_tokens": ""}, "output_tokens", "from 2 to 131,072"),
        ({"prompt_tokens": 4096}, "prompt_tokens", "takes up to 512 tokens"),
        ({"model": "llama-small", "batch": 4096, "prompt_tokens": 8192}, "batch", "up to"),
    ],
)
def test_it_ties_an_error_to_its_field(
    changes: Values, field: str, words: str, operator_client: Client
) -> None:
    response = operator_client.post("/runs/new/", values(**changes))
    assert response.status_code == 422
    errors = response.context["form"].errors
    assert words in " ".join(errors[field])
    assert words.replace("'", "&#x27;") in response.content.decode()
    assert not Run.objects.exists()


def test_it_keeps_what_was_typed(operator_client: Client) -> None:
    page = operator_client.post("/runs/new/", values(batch=0, prompt_tokens=77)).content.decode()
    assert 'name="prompt_tokens" value="77"' in page
    assert 'aria-invalid="true"' in page
    assert 'value="decode" id="id_scenarios_1" checked' in page.replace("\n", " ")


def test_it_needs_no_output_tokens_without_decode(operator_client: Client) -> None:
    sent = values(scenarios=["prefill"], output_tokens="")
    assert operator_client.post("/runs/new/", sent).status_code == 302


def test_it_starts_from_an_earlier_run(operator_client: Client) -> None:
    run = make_run(spec=make_spec(batch=7, scenario="training"))
    page = operator_client.get(f"/runs/new/?like={run.pk}").content.decode()
    assert 'name="batch" value="7"' in page
    assert 'value="training" id="id_scenarios_2" checked' in page


@pytest.mark.parametrize("like", ["0", "x", "987654", str(2**63), "-1"])
def test_it_starts_empty_from_a_run_that_is_not_there(like: str, operator_client: Client) -> None:
    page = operator_client.get(f"/runs/new/?like={like}")
    assert page.status_code == 200
    assert 'name="batch" value="1"' in page.content.decode()


def test_it_passes_the_device_of_the_platform_on(operator_client: Client) -> None:
    make_platform("gpu", device="cuda:0")
    operator_client.post("/runs/new/", values(platform="gpu", scenarios=["prefill"]))
    assert Run.objects.get().spec["device"] == "cuda:0"


def test_it_offers_the_platform_of_the_installation_before_its_first_worker(
    operator_client: Client,
) -> None:
    Platform.objects.all().delete()
    assert 'value="cpu"' in operator_client.get("/runs/new/").content.decode()
    operator_client.post("/runs/new/", values(scenarios=["prefill"]))
    assert Run.objects.get().platform.slug == "cpu"


def test_it_asks_before_it_cancels(operator_client: Client, operator: User) -> None:
    run = make_run(created_by=operator)
    page = operator_client.get(f"/runs/{run.pk}/cancel/").content.decode()
    assert f"Cancel run {run.pk}?" in page
    run.refresh_from_db()
    assert run.state == RunState.QUEUED


def test_it_cancels_a_queued_run_at_once(operator_client: Client, operator: User) -> None:
    run = make_run(created_by=operator)
    response = operator_client.post(f"/runs/{run.pk}/cancel/", follow=True)
    run.refresh_from_db()
    assert run.state == RunState.CANCELLED
    assert "Cancelled." in response.content.decode()
    assert Audit.objects.filter(action="run.cancel", user=operator).count() == 1


def test_it_asks_the_worker_of_a_running_run_to_stop(
    operator_client: Client, operator: User
) -> None:
    run = make_run(RunState.RUNNING, created_by=operator)
    page = operator_client.post(f"/runs/{run.pk}/cancel/", follow=True).content.decode()
    run.refresh_from_db()
    assert run.cancel_requested_at is not None
    assert "Cancelling" in page
    assert 'id="cancel-run"' not in page


def test_it_says_that_a_run_has_ended_already(operator_client: Client, operator: User) -> None:
    run = make_run(RunState.SUCCEEDED, created_by=operator)
    page = operator_client.post(f"/runs/{run.pk}/cancel/", follow=True).content.decode()
    assert f"Run {run.pk} has already ended" in page
    asked = operator_client.get(f"/runs/{run.pk}/cancel/").content.decode()
    assert "nothing left to cancel" in asked


def test_it_repeats_a_run_once_per_press(operator_client: Client) -> None:
    run = make_run(RunState.FAILED, created_by=make_user("somebody"))
    pressed = {"nonce": new_nonce()}
    first = operator_client.post(f"/runs/{run.pk}/again/", pressed)
    again = operator_client.post(f"/runs/{run.pk}/again/", pressed)
    repeated = Run.objects.exclude(pk=run.pk).get()
    assert first.headers["Location"] == again.headers["Location"] == f"/runs/{repeated.pk}/"
    assert repeated.rerun_of == run
    assert repeated.spec_hash == specs.spec_hash(make_spec())


def test_it_repeats_a_run_without_a_nonce(operator_client: Client) -> None:
    run = make_run(RunState.FAILED)
    operator_client.post(f"/runs/{run.pk}/again/", {"nonce": "<script>"})
    assert Run.objects.filter(rerun_of=run).count() == 1
