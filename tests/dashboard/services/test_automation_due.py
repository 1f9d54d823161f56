"""What schedules fire: once per moment, commit and stack, whoever looks how often."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dashboard.models import Cause, Commit, Firing, Repository, Schedule, ScheduleKind, Stack
from dashboard.services import automation_due, templates
from tests.automation import TEXT, fetched, make_schedule
from tests.dashboard.services.scene import Clock
from tests.factories import make_platform, make_user
from tests.sources import make_commit, make_repository

pytestmark = pytest.mark.django_db


def fired() -> list[tuple[str, str]]:
    """Cause and commit of every firing, the oldest first."""
    rows = Firing.objects.select_related("commit").order_by("id")
    return [(row.cause, row.commit.subject if row.commit else "") for row in rows]


def look_twice(schedule: Schedule) -> int:
    """A second look finds nothing new."""
    count = automation_due.look(schedule.pk)
    assert automation_due.look(schedule.pk) == 0
    return count


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_it_fires_at_its_hour_once(clock: Clock) -> None:
    clock.now = at("2026-01-05 12:00")
    schedule = make_schedule(now=clock.now)  # every day at 02:00
    assert look_twice(schedule) == 0
    clock.now = at("2026-01-06 01:59")
    assert look_twice(schedule) == 0
    clock.now = at("2026-01-06 02:00")
    assert look_twice(schedule) == 1
    assert Firing.objects.get().key == "time 2026-01-06T02:00"
    clock.now = at("2026-01-07 02:05")
    assert look_twice(schedule) == 1


def test_it_makes_up_for_nothing_that_was_missed(clock: Clock) -> None:
    clock.now = at("2026-01-05 12:00")
    schedule = make_schedule(now=clock.now, every_h=6, at_minute=0)
    clock.now = at("2026-01-09 13:00")
    assert look_twice(schedule) == 1
    assert Firing.objects.get().key == "time 2026-01-09T12:00"
    assert automation_due.next_time(schedule, clock.now) == at("2026-01-09 18:00")


def watched(clock: Clock, *subjects: str, **fields: object) -> tuple[Schedule, Repository]:
    """A schedule of new commits whose first look is done."""
    repository = make_repository()
    for subject in subjects:
        make_commit(repository, subject)
    schedule = make_schedule(
        ScheduleKind.COMMITS, repository=repository, branch="main", now=clock.now, **fields
    )
    fetched(repository, clock.now)
    return schedule, repository


def test_it_fires_for_the_head_and_its_parent_first(clock: Clock) -> None:
    schedule, _ = watched(clock, "one", "two", "three")
    assert look_twice(schedule) == 2
    assert fired() == [(Cause.PARENT, "two"), (Cause.COMMIT, "three")]


def test_it_fires_for_each_new_commit_parents_first(clock: Clock) -> None:
    schedule, repository = watched(clock, "one", "two")
    automation_due.look(schedule.pk)
    for subject in ("three", "four"):
        make_commit(repository, subject)
    clock.advance(60)
    fetched(repository, clock.now)
    assert look_twice(schedule) == 2
    assert fired()[2:] == [(Cause.COMMIT, "three"), (Cause.COMMIT, "four")]


def test_it_measures_the_newest_of_a_large_push_and_says_how_many_are_left_out(
    clock: Clock,
) -> None:
    schedule, repository = watched(clock, "one", newest=2)
    automation_due.look(schedule.pk)
    for number in range(5):
        make_commit(repository, f"new {number}")
    clock.advance(60)
    fetched(repository, clock.now)
    assert look_twice(schedule) == 3
    assert fired()[1:] == [
        (Cause.PARENT, "new 2"),
        (Cause.COMMIT, "new 3"),
        (Cause.COMMIT, "new 4"),
    ]
    assert Firing.objects.get(commit__subject="new 3").left_out == 3


def test_it_follows_the_states_of_the_branch_not_those_merged_into_it(clock: Clock) -> None:
    schedule, repository = watched(clock, "one")
    automation_due.look(schedule.pk)
    base = Commit.objects.get()
    side = make_commit(repository, "on the side")
    make_commit(repository, "merged", parents=[base.sha, side.sha])
    clock.advance(60)
    fetched(repository, clock.now)
    automation_due.look(schedule.pk)
    assert fired()[1:] == [(Cause.COMMIT, "merged")]


def test_it_fires_again_for_a_new_version_of_the_template(clock: Clock) -> None:
    schedule, repository = watched(clock, "one", "two")
    automation_due.look(schedule.pk)
    templates.save_template(TEXT.replace("[1, 2]", "[1, 4]"), make_user())
    clock.advance(60)
    fetched(repository, clock.now)
    assert look_twice(schedule) == 2
    assert [row.version.number for row in Firing.objects.order_by("id")] == [1, 1, 2, 2]


def test_it_goes_back_no_further_when_a_branch_is_set_back(clock: Clock) -> None:
    schedule, repository = watched(clock, "one", "two", "three")
    automation_due.look(schedule.pk)
    two = Commit.objects.get(subject="two")
    Repository.objects.update(heads={"refs/heads/main": two.sha})
    clock.advance(60)
    fetched(repository, clock.now)
    # "two" was measured as a parent; its own parent is added, nothing older.
    assert look_twice(schedule) == 1
    assert fired()[2:] == [(Cause.PARENT, "one")]


def test_it_says_when_its_branch_is_not_there(clock: Clock) -> None:
    schedule, repository = watched(clock, "one")
    Repository.objects.update(heads={})
    assert look_twice(schedule) == 0
    schedule.refresh_from_db()
    assert schedule.problem.startswith("models has no branch main that may be measured")
    Repository.objects.update(heads={"refs/heads/main": Commit.objects.get().sha})
    clock.advance(60)
    fetched(repository, clock.now)
    automation_due.look(schedule.pk)
    schedule.refresh_from_db()
    assert schedule.problem == "" and len(fired()) == 1


def test_it_looks_again_only_after_another_fetch(clock: Clock) -> None:
    schedule, repository = watched(clock, "one")
    automation_due.look(schedule.pk)
    make_commit(repository, "two")
    assert automation_due.look(schedule.pk) == 0


def test_it_asks_for_a_fetch_as_often_as_it_polls(clock: Clock) -> None:
    _, repository = watched(clock, "one")
    make_repository("other")
    assert automation_due.poll_repositories() == 0  # it was just fetched
    clock.advance(130)
    assert automation_due.poll_repositories() == 1
    # The fetch fails: nothing is fetched, nothing is wanted any more.
    Repository.objects.filter(pk=repository.pk).update(wanted_at=None)
    clock.advance(30)
    assert automation_due.poll_repositories() == 0
    clock.advance(100)
    assert automation_due.poll_repositories() == 1
    assert Repository.objects.get(slug="other").wanted_at is None


def test_it_fires_for_a_stack_that_changed_since_it_is_on(clock: Clock) -> None:
    platform = make_platform()
    schedule = make_schedule(ScheduleKind.STACK, now=clock.now)
    seen = {"platform": platform, "is_change": True}
    Stack.objects.create(hash="a", seen_at=clock.now - timedelta(days=1), **seen)
    assert look_twice(schedule) == 0
    Stack.objects.create(hash="b", difference="torch 1 -> 2", seen_at=clock.now, **seen)
    Stack.objects.create(hash="c", seen_at=clock.now, **{**seen, "is_change": False})
    Stack.objects.create(
        hash="d", seen_at=clock.now, **{**seen, "platform": make_platform("other")}
    )
    assert look_twice(schedule) == 1
    assert Firing.objects.get().cause_text == "torch 1 -> 2"


def test_it_is_still_while_it_is_off(clock: Clock) -> None:
    schedule = make_schedule(now=clock.now - timedelta(days=9), enabled=False)
    assert automation_due.look(schedule.pk) == 0
    assert automation_due.enabled_schedules() == []
