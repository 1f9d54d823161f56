"""The demo for newcomers: what it holds, that it is labelled, and that all of it can be removed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import transaction
from django.test import Client, override_settings
from pytest_django import DjangoDbBlocker, Settings

from dashboard.models import (
    Announcement,
    Artifact,
    Change,
    ComparedWorkload,
    Iteration,
    MetricValue,
    Outbox,
    Repository,
    Result,
    Run,
    RunState,
    Trace,
)
from dashboard.services import artifacts, pairs
from dashboard.services import demo_story as story
from dashboard.services.demo_remove import remove_demo
from dashboard.services.demo_seed import Seeded, _plan, seed_demo
from dashboard.services.demo_trace import Extra, write_trace
from profiler.analysis.ladder import orders
from profiler.errors import ExitCode
from tests.dashboard.reading import page_of
from tests.factories import make_ready_trace, make_result, make_run, make_user, store_artifact

BANNER = "<b>Demo data:</b>"


@dataclass(frozen=True, kw_only=True)
class Demo:
    """The seeded demo, where its files lie, and how many rows of each kind were there before."""

    made: Seeded
    store: Path
    before: dict[str, int]


def row_counts() -> dict[str, int]:
    return {
        model._meta.label: model._default_manager.count()
        for model in apps.get_app_config("dashboard").get_models(include_auto_created=True)
    }


def files_in(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def whole_demo(
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Demo]:
    """Seeded once for all tests here, in a transaction that is rolled back after the last."""
    store = tmp_path_factory.mktemp("demo") / "artifacts"
    with django_db_blocker.unblock(), transaction.atomic():
        before = row_counts()
        with override_settings(ARTIFACTS_URL=store.as_uri()):
            made = seed_demo(1)
        yield Demo(made=made, store=store, before=before)
        transaction.set_rollback(True)


@pytest.fixture
def demo(whole_demo: Demo, db: None, tmp_path: Path, settings: Settings) -> Demo:
    """The demo with a copy of its files, which a test may remove."""
    shutil.copytree(whole_demo.store, tmp_path / "demo-artifacts")
    settings.ARTIFACTS_URL = (tmp_path / "demo-artifacts").as_uri()
    return Demo(made=whole_demo.made, store=tmp_path / "demo-artifacts", before=whole_demo.before)


def test_it_holds_what_it_promises(demo: Demo) -> None:
    assert (demo.made.commits, demo.made.changes) == (60, 2)
    assert (demo.made.kept, demo.made.reverted) == (4, 1)
    decode = Run.objects.filter(workload__scenario="decode", compared__isnull=True)
    assert decode.values("commit").distinct().count() == 60
    assert set(decode.values_list("state", flat=True)) == {"succeeded"}


def test_its_changes_are_found_by_the_detection_and_confirmed_by_their_pairs(demo: Demo) -> None:
    changes = Change.objects.order_by("after_commit__position")
    found = [(one.after_commit.position, one.direction, one.state) for one in changes]
    assert found == [
        (story.FASTER.commit, "faster", "confirmed"),
        (story.SLOWER.commit, "slower", "confirmed"),
    ]
    for change, step in zip(changes, (story.FASTER, story.SLOWER), strict=True):
        assert change.before_commit.position == step.commit - 1
        assert change.measured_effect == pytest.approx(step.effect, abs=0.02)
        assert step.operator in change.culprit


def test_its_verdicts_are_what_the_decision_says_of_its_launches(demo: Demo) -> None:
    compared = list(ComparedWorkload.objects.select_related("comparison"))
    assert len(compared) == 2 + len(story.TRIES)
    for row in compared:
        verdict = pairs.verdict_of(row, row.metric)
        assert (row.verdict, row.effect) == (verdict.state, verdict.effect)
        assert row.comparison.state == "ended"
        seed, wanted = row.comparison.seed, row.pairs_wanted
        assert [pair.order for pair in row.pairs.all()] == list(orders(seed, wanted))


def test_its_tuning_keeps_four_and_reverts_one(demo: Demo) -> None:
    rows = list(Iteration.objects.order_by("number").select_related("commit"))
    assert [row.state == "kept" for row in rows] == [one.keep for one in story.TRIES]
    assert [row.commit and row.commit.position for row in rows] == [
        one.commit for one in story.TRIES
    ]
    for row, one in zip(rows, story.TRIES, strict=True):
        assert row.predicted_effect == one.predicted
        assert row.effect == pytest.approx(one.effect, abs=0.02)


def test_its_environment_changes_once(demo: Demo) -> None:
    marks = Result.objects.order_by("run__commit__position").values_list(
        "comparable_hash", "run__commit__position"
    )
    old = {mark for mark, position in marks if position < story.NEW_STACK_AT}
    new = {mark for mark, position in marks if position >= story.NEW_STACK_AT}
    assert len(old) == len(new) == 1 and old != new


def test_it_says_of_every_number_that_it_is_generated(demo: Demo) -> None:
    assert set(MetricValue.objects.values_list("method", flat=True)) == {story.METHOD}
    assert all("generated" in row.document["warnings"][0] for row in Result.objects.all())


def test_nothing_waits_runs_is_fetched_or_announced_for_it(demo: Demo) -> None:
    active = Run.objects.filter(state__in=[RunState.QUEUED, RunState.RUNNING])
    assert not active.exists()
    assert not Outbox.objects.exists()
    assert not Repository.objects.exclude(wanted_at=None).exists()
    assert not Announcement.objects.exists()


@pytest.mark.parametrize(
    "address",
    [
        "/",
        f"/models/{story.MODEL}/{story.PLATFORM}/",
        "/changes/",
        "/compare/",
        "/tuning/",
        "/runs/",
        "run",
        "trace",
    ],
)
def test_its_pages_open_under_a_banner(demo: Demo, viewer_client: Client, address: str) -> None:
    trace = Trace.objects.filter(run__isnull=False).latest("run__pk")
    own = {"run": f"/runs/{trace.run_id}/", "trace": f"/traces/{trace.pk}/"}
    page = page_of(viewer_client, own.get(address, address))
    assert BANNER in page
    assert "What to optimise next" in page or address not in own


def test_a_page_without_demo_data_has_no_banner(demo: Demo, viewer_client: Client) -> None:
    assert BANNER not in page_of(viewer_client, "/glossary/")
    run = make_run(RunState.SUCCEEDED)
    make_result(run)
    assert BANNER not in page_of(viewer_client, f"/runs/{run.pk}/")


def test_it_refuses_to_be_made_twice(demo: Demo) -> None:
    errors = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("seed_demo", stderr=errors)
    assert ended.value.code == ExitCode.BAD_INPUT
    assert errors.getvalue().strip() == (
        "The demo data is there already. remove it by `manage.py seed_demo --remove` first"
    )


def test_removing_it_leaves_no_row_and_no_file(demo: Demo) -> None:
    told = StringIO()
    call_command("seed_demo", "--remove", stdout=told)
    assert row_counts() == demo.before
    assert files_in(demo.store) == set()
    assert told.getvalue().startswith("Removed the demo data: ")
    errors = StringIO()
    with pytest.raises(SystemExit):
        call_command("seed_demo", "--remove", stderr=errors)
    assert errors.getvalue().startswith("There is no demo data.")


def test_removing_it_spares_measurements_and_files_they_share(demo: Demo) -> None:
    run = make_run(RunState.SUCCEEDED)
    make_result(run)
    shared = Trace.objects.filter(name__startswith=story.MARK).earliest("pk").raw
    trace = make_ready_trace(run=run)
    Trace.objects.filter(pk=trace.pk).update(raw=shared)
    unnamed = store_artifact(b"stored, not named yet")
    person = make_user("real")
    remove_demo()
    assert set(Run.objects.values_list("pk", flat=True)) == {run.pk}
    assert Result.objects.get().run_id == run.pk
    trace.refresh_from_db()
    assert artifacts.read(trace.raw.sha256)
    assert Artifact.objects.filter(pk=unnamed.pk).exists() and type(person).objects.count() == 1


def test_the_same_seed_gives_the_same_numbers(tmp_path: Path) -> None:
    assert _plan(3) == _plan(3)
    assert [one.launch_ns for one in _plan(3)] != [one.launch_ns for one in _plan(4)]
    extra = Extra(operator="aten::all", share=0.1)
    files = [write_trace(tmp_path / name, 1e6, extra).read_bytes() for name in ("a.gz", "b.gz")]
    assert files[0] == files[1]
