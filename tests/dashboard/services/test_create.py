"""Creating, cancelling and repeating runs."""

from __future__ import annotations

import dataclasses
import importlib
import re

import pytest
from django.apps import apps

from dashboard.models import Audit, IdempotencyKey, Outbox, Run, RunState, Workload
from dashboard.services import lifecycle, runs
from dashboard.services.demo import queue_demo
from dashboard.services.runs import KeyReusedError, QuotaError, RunStateError
from profiler.errors import SpecError
from tests.dashboard.services import scene

pytestmark = pytest.mark.django_db

OTHER = dataclasses.replace(scene.SPEC, batch=2)


def test_it_writes_run_event_message_and_audit_together() -> None:
    run = scene.queued(by=scene.user())
    assert run.state == RunState.QUEUED
    assert [event.kind for event in run.events.all()] == ["queued"]
    assert Outbox.objects.get().subject_id == run.pk
    assert Audit.objects.get().action == "run.create"


def test_it_answers_a_repeated_request_with_the_first_runs() -> None:
    def send() -> list[Run]:
        return runs.create_runs(
            [scene.SPEC, OTHER], platform=scene.platform(), user=scene.user(), key="k"
        )

    assert [run.pk for run in send()] == [run.pk for run in send()]
    assert Run.objects.count() == 2


def test_it_refuses_a_key_that_came_with_other_specs() -> None:
    runs.create_runs([scene.SPEC], platform=scene.platform(), user=scene.user(), key="k")
    with pytest.raises(KeyReusedError, match="already sent with other values"):
        runs.create_runs([OTHER], platform=scene.platform(), user=scene.user(), key="k")


def test_two_people_may_use_the_same_key() -> None:
    for name in ("olga", "omar"):
        runs.create_runs([scene.SPEC], platform=scene.platform(), user=scene.user(name), key="k")
    assert IdempotencyKey.objects.count() == 2


def test_it_makes_all_runs_or_none() -> None:
    bad = dataclasses.replace(scene.SPEC, batch=0)
    with pytest.raises(SpecError, match=r"spec\.batch is 0"):
        runs.create_runs([scene.SPEC, bad], platform=scene.platform(), user=scene.user())
    assert not Run.objects.exists()


def test_it_names_the_known_models() -> None:
    unknown = dataclasses.replace(scene.SPEC, model="gpt-9")
    with pytest.raises(SpecError) as error:
        scene.queued(unknown)
    assert "llama-tiny" in error.value.hint
    assert not Run.objects.exists()


def test_it_limits_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "REQUEST_LIMIT", 2)
    with pytest.raises(QuotaError, match="3 runs in one request"):
        runs.create_runs([scene.SPEC] * 3, platform=scene.platform(), user=scene.user())


def test_it_limits_what_one_person_has_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "QUEUE_LIMIT", 2)
    scene.queued(by=scene.user())
    scene.queued(by=scene.user("omar"))
    with pytest.raises(QuotaError, match="1 of your runs wait already"):
        runs.create_runs([scene.SPEC] * 2, platform=scene.platform(), user=scene.user())


def test_the_same_workload_is_one_row_however_often_it_is_measured() -> None:
    scene.queued()
    scene.queued(dataclasses.replace(scene.SPEC, iterations=99, seed=7))
    scene.queued(OTHER)
    assert Workload.objects.count() == 2


def test_it_cancels_a_queued_run_at_once() -> None:
    run = runs.cancel_run(scene.queued().pk, scene.user())
    assert (run.state, run.failure_kind) == (RunState.CANCELLED, "cancelled")
    assert run.failure_message == "Cancelled by olga"


def test_it_asks_the_worker_of_a_running_run() -> None:
    pk = scene.queued().pk
    assert lifecycle.claim_run(pk, 1, scene.WORKER)
    run = runs.cancel_run(pk, scene.user())
    assert run.state == RunState.RUNNING and run.cancel_requested_at is not None


def test_it_cannot_cancel_what_has_ended() -> None:
    run = runs.cancel_run(scene.queued().pk, scene.user())
    with pytest.raises(RunStateError, match="already ended"):
        runs.cancel_run(run.pk, scene.user())


def test_it_runs_again_as_a_new_run() -> None:
    old = runs.cancel_run(scene.queued().pk, scene.user())
    new = runs.rerun(old.pk, scene.user())
    assert new.pk != old.pk and new.rerun_of == old
    assert (new.spec, new.workload) == (old.spec, old.workload)
    old.refresh_from_db()
    assert old.state == RunState.CANCELLED


def test_the_demo_is_two_models_in_three_scenarios_once() -> None:
    made = queue_demo()
    pairs = Workload.objects.values_list("model__name", "scenario")
    assert len(made) == 6 and len(set(pairs)) == 6
    assert queue_demo() == []


@pytest.mark.parametrize(
    ("changes", "variant"),
    [
        ({}, ""),
        ({"batch": 4, "iterations": 99, "seed": 3, "device": "cuda:0"}, ""),
        ({"attention": "eager", "compile": "default"}, "compile=default attention=eager"),
        ({"compile": "backend:vendor", "threads": 2}, "threads=2 compile=backend:vendor"),
        ({"scenario": "training", "ranks": 2, "parallel": "data"}, "ranks=2 parallel=data"),
        ({"model": "own", "factory": "a.py:f"}, "factory=a.py:f"),
    ],
)
def test_a_workload_says_what_sets_it_apart(changes: dict[str, object], variant: str) -> None:
    spec = dataclasses.replace(scene.SPEC, **changes)  # type: ignore[arg-type]
    row = scene.queued(spec).workload
    assert row.variant == variant
    assert row.label.endswith(f"float32 {variant}".rstrip())


def test_a_workload_names_a_long_value_by_its_hash() -> None:
    specs = [
        dataclasses.replace(scene.SPEC, model="own", config={"model_type": name * 20})
        for name in ("a", "b")
    ]
    first, second = (scene.queued(spec).workload.variant for spec in specs)
    assert re.fullmatch(r"config=[0-9a-f]{6}", first)
    assert first != second


def test_a_workload_of_before_learns_it_from_a_run() -> None:
    row = scene.queued(dataclasses.replace(scene.SPEC, compile="default", threads=2)).workload
    plain = scene.queued().workload
    Workload.objects.update(variant="")
    migration = importlib.import_module("dashboard.migrations.0007_workload_variant")
    migration.fill(apps, None)
    row.refresh_from_db()
    plain.refresh_from_db()
    assert (row.variant, plain.variant) == ("threads=2 compile=default", "")
