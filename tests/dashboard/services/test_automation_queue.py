"""What fired is queued once, within the budget, and says why it waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from dashboard.models import (
    Budget,
    Commit,
    FetchState,
    Firing,
    Repository,
    Run,
    RunState,
    ScheduleKind,
    Stack,
    Template,
    TemplateVersion,
)
from dashboard.services import automation, automation_due, automation_queue, templates
from tests.automation import fetched, make_firing, make_schedule, make_template
from tests.dashboard.services.scene import Clock
from tests.factories import make_platform, make_run, make_user
from tests.sources import make_commit, make_repository

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def noon(clock: Clock) -> None:
    """Every test starts at noon: the day ends in twelve hours."""
    clock.now = datetime(2026, 1, 5, 12, tzinfo=UTC)


def history(clock: Clock, minutes: float) -> None:
    """Every run of the small template took so long the day before."""
    start = clock.now - timedelta(days=1)
    for spec in templates.runs_of(make_template()):
        ended = start + minutes * MINUTE
        make_run(RunState.SUCCEEDED, spec=spec, started_at=start, ended_at=ended)


def new_runs() -> list[Run]:
    """What schedules queued."""
    return list(Run.objects.filter(group__firing__isnull=False).order_by("id"))


def test_it_queues_a_firing_as_a_group_of_its_template() -> None:
    firing = make_firing()
    assert automation_queue.queue_waiting() == 1
    firing.refresh_from_db()
    assert (firing.state, firing.wait, firing.runs) == ("queued", "", 2)
    assert firing.group is not None and firing.group.version == firing.version
    assert [run.state for run in new_runs()] == ["queued", "queued"]
    assert automation_queue.queue_waiting() == 0


def test_it_queues_at_the_commit_with_the_model_of_the_repository() -> None:
    repository = make_repository(factory="model.py:make")
    commit = make_commit(repository)
    schedule = make_schedule(repository=repository, branch="main")
    make_firing(schedule, commit=commit)
    automation_queue.queue_waiting()
    assert {run.commit for run in new_runs()} == {commit}
    assert {run.spec["factory"] for run in new_runs()} == {"model.py:make"}


def test_it_waits_for_a_fetch_after_its_time_and_takes_what_the_branch_is_then(
    clock: Clock,
) -> None:
    repository = make_repository()
    make_commit(repository, "before")
    fetched(repository, clock.now - MINUTE)
    firing = make_firing(make_schedule(repository=repository, branch="main"), created_at=clock.now)
    automation_queue.queue_waiting()
    firing.refresh_from_db()
    repository.refresh_from_db()
    assert (firing.state, firing.wait) == ("waiting", "fetch")
    assert repository.wanted_at == clock.now
    newer = make_commit(repository, "newer")
    fetched(repository, clock.now + MINUTE)
    assert automation_queue.queue_waiting() == 1
    assert {run.commit for run in new_runs()} == {newer}


def test_it_skips_when_the_repository_cannot_be_fetched(clock: Clock) -> None:
    repository = make_repository(fetched_at=None)
    firing = make_firing(make_schedule(repository=repository, branch="main"))
    automation_queue.queue_waiting()
    Repository.objects.update(
        state=FetchState.FAILED, wanted_at=None, reason="The host is not known", hint="check it"
    )
    automation_queue.queue_waiting()
    firing.refresh_from_db()
    assert firing.state == "skipped"
    assert firing.reason == "models could not be fetched: The host is not known. check it"


def test_it_waits_for_the_next_day_when_the_budget_is_used(clock: Clock) -> None:
    history(clock, minutes=4)
    Budget.objects.create(platform=make_platform(), minutes_per_day=10)
    first, second = make_firing(), make_firing()
    assert automation_queue.queue_waiting() == 1
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.state, first.usual_ns) == ("queued", 8 * 60e9)
    assert (second.state, second.wait) == ("waiting", "budget")
    assert second.reason.startswith("over the budget: 480 s of 600 s of device time a day on cpu")
    clock.advance(12 * 3600)
    assert automation_queue.queue_waiting() == 0  # what was queued yesterday still counts
    midnight = clock.now
    Run.objects.filter(group__firing=first).update(
        state=RunState.SUCCEEDED, started_at=midnight - 3 * MINUTE, ended_at=midnight + MINUTE
    )
    clock.advance(120)
    assert automation_queue.queue_waiting() == 1


def test_it_counts_what_runs_really_took_today(clock: Clock) -> None:
    firing = make_firing()
    automation_queue.queue_waiting()
    one, two = new_runs()
    claimed = {"worker": "w", "fence": 1, "attempt": 1}
    Run.objects.filter(pk=one.pk).update(
        state=RunState.SUCCEEDED,
        started_at=clock.now,
        ended_at=clock.now + 2 * MINUTE,
        **claimed,
    )
    clock.advance(300)
    lease = {"lease_until": clock.now, "deadline_at": clock.now + 90 * MINUTE}
    Run.objects.filter(pk=two.pk).update(
        state=RunState.RUNNING, started_at=clock.now - 3 * MINUTE, **lease, **claimed
    )
    used = automation_queue.used_today_ns(firing.schedule.platform, clock.now)
    assert used == 5 * 60e9


def test_people_do_not_use_the_budget_of_schedules(clock: Clock) -> None:
    now = clock.now
    make_run(RunState.SUCCEEDED, started_at=now - 90 * MINUTE, ended_at=now)
    assert automation_queue.used_today_ns(make_platform(), now) == 0


def test_one_that_never_fits_says_so_and_holds_nobody_back(clock: Clock) -> None:
    history(clock, minutes=20)
    Budget.objects.create(platform=make_platform(), minutes_per_day=10)
    large = make_firing()
    one = Template.objects.create(name="other", created_at=clock.now)
    text = make_template().text.replace('"small"', '"other"').replace("[1, 2]", "[3]")
    version = templates.save_template(text, make_user())
    small = make_firing(make_schedule(template=one), version=version)
    assert automation_queue.queue_waiting() == 1
    large.refresh_from_db()
    small.refresh_from_db()
    assert (large.wait, small.state) == ("too_large", "queued")
    assert "needs 2,400 s" in large.reason and "raise the budget" in large.reason


def test_a_later_one_does_not_overtake_one_that_waits_for_the_budget(clock: Clock) -> None:
    history(clock, minutes=4)
    Budget.objects.create(platform=make_platform(), minutes_per_day=9)
    for _ in range(3):
        make_firing()
    assert automation_queue.queue_waiting() == 1
    assert automation_queue.queue_waiting() == 0
    waits = list(Firing.objects.order_by("id").values_list("wait", "usual_ns"))
    assert waits == [("", 8 * 60e9), ("budget", 8 * 60e9), ("", 8 * 60e9)]
    third = Firing.objects.get(state="waiting", wait="")
    assert third.reason.startswith("waits for its turn")
    elsewhere = make_firing(make_schedule(platform=make_platform("other")))
    assert automation_queue.queue_waiting() == 1
    elsewhere.refresh_from_db()
    assert elsewhere.state == "queued"


def test_a_raised_budget_counts_at_once(clock: Clock) -> None:
    history(clock, minutes=4)
    Budget.objects.create(platform=make_platform(), minutes_per_day=9)
    make_firing()
    make_firing()
    automation_queue.queue_waiting()
    automation.set_budget("cpu", 100, make_user())
    assert automation_queue.queue_waiting() == 1
    automation.set_budget("cpu", None, make_user())
    assert not Budget.objects.exists()


def test_nothing_goes_with_a_budget_of_nothing() -> None:
    Budget.objects.create(platform=make_platform(), minutes_per_day=0)
    firing = make_firing()
    assert automation_queue.queue_waiting() == 0
    firing.refresh_from_db()
    assert firing.wait == "too_large" and "0 ns" in firing.reason


def test_it_skips_what_cannot_be_measured() -> None:
    firing = make_firing()
    text = firing.version.text.replace("prompt_tokens = 8", "prompt_tokens = -8")
    TemplateVersion.objects.update(text=text)
    automation_queue.queue_waiting()
    firing.refresh_from_db()
    assert firing.state == "skipped" and "prompt_tokens" in firing.reason


class Broken(Exception):
    """As if the process had been killed there."""


@contextmanager
def killed_at(number: int) -> Iterator[None]:
    """The statement of that number, and all after it, never reach the database."""
    left = number

    def execute(run: Any, sql: str, *rest: Any) -> Any:  # noqa: ANN401 - Django's own
        nonlocal left
        left -= 1
        # Undoing must work: a database does it by itself when its client is gone.
        if left < 0 and "SAVEPOINT" not in sql:
            raise Broken
        return run(sql, *rest)

    with connection.execute_wrapper(execute):
        yield


def test_it_queues_once_wherever_the_keeper_is_killed(clock: Clock) -> None:
    repository = make_repository()
    for subject in ("one", "two"):
        make_commit(repository, subject)
    commits = make_schedule(
        ScheduleKind.COMMITS, repository=repository, branch="main", now=clock.now
    )
    stack = make_schedule(ScheduleKind.STACK, now=clock.now)
    Stack.objects.create(
        platform=stack.platform, hash="b", is_change=True, seen_at=clock.now + MINUTE
    )
    fetched(repository, clock.now)
    for number in range(0, 200, 3):
        try:
            with killed_at(number):
                for schedule in (commits, stack):
                    automation_due.look(schedule.pk)
                automation_queue.queue_waiting()
        except Broken:
            continue
    for schedule in (commits, stack):
        automation_due.look(schedule.pk)
    automation_queue.queue_waiting()
    assert [row.state for row in Firing.objects.all()] == ["queued"] * 3
    assert Firing.objects.values("group").distinct().count() == 3
    per_commit = [commit.runs.count() for commit in Commit.objects.all()]
    assert (per_commit, Run.objects.count()) == ([2, 2], 6)
