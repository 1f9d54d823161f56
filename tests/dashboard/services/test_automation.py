"""A person's verbs on schedules: what cannot work is refused in one sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dashboard.models import Audit, Firing, Run, Schedule, ScheduleKind
from dashboard.services import automation, automation_queue
from dashboard.services.automation import NewSchedule
from profiler.errors import UserError
from tests.automation import make_firing, make_schedule, make_template
from tests.dashboard.services.scene import Clock
from tests.factories import make_platform, make_user
from tests.sources import make_repository

pytestmark = pytest.mark.django_db


def nightly() -> NewSchedule:
    return NewSchedule(
        name="nightly",
        kind=ScheduleKind.INTERVAL,
        template=make_template().template,
        platform=make_platform(),
        every_h=24,
        at_minute=120,
    )


def test_it_stores_a_schedule_with_the_deed() -> None:
    row = automation.create_schedule(nightly(), make_user("ada"))
    assert (row.name, row.every_h, row.enabled) == ("nightly", 24, True)
    deed = Audit.objects.get(action="schedule.create")
    assert (deed.actor, deed.subject) == ("ada", "nightly")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": ""}, "The name is empty"),
        ({"name": "a\u202eb"}, "cannot be shown"),
        ({"every_h": None}, "every None hours cannot be"),
        ({"every_h": 1000}, "every 1000 hours cannot be"),
        ({"at_minute": 1440}, "The time of day cannot be"),
        ({"newest": 0}, "0 commits cannot be"),
        ({"kind": ScheduleKind.COMMITS, "every_h": None}, "New commits of what"),
        ({"branch": "main"}, "A branch and its repository belong together"),
    ],
)
def test_it_refuses_what_cannot_be(change: dict[str, object], words: str) -> None:
    with pytest.raises(UserError, match=words):
        automation.create_schedule(replace(nightly(), **change), make_user())  # type: ignore[arg-type]
    assert not Schedule.objects.exists()


def test_it_refuses_a_branch_that_can_be_none() -> None:
    wanted = replace(nightly(), repository=make_repository(), branch="--upload-pack=x")
    with pytest.raises(UserError, match="can be no branch"):
        automation.create_schedule(wanted, make_user())


def test_it_refuses_the_same_name_twice() -> None:
    automation.create_schedule(nightly(), make_user())
    with pytest.raises(UserError, match="exists already"):
        automation.create_schedule(nightly(), make_user())


def test_switched_on_again_it_counts_from_then(clock: Clock) -> None:
    schedule = make_schedule(now=clock.now, seen_sha="a" * 40)
    user = make_user()
    automation.switch_schedule(schedule.pk, user, enabled=False)
    clock.advance(3600)
    row = automation.switch_schedule(schedule.pk, user, enabled=True)
    assert (row.enabled_at, row.seen_sha) == (clock.now, "")
    actions = list(Audit.objects.order_by("id").values_list("action", flat=True))
    assert actions[-2:] == ["schedule.off", "schedule.on"]


def test_it_fires_once_per_press_of_the_button() -> None:
    schedule, user = make_schedule(), make_user()
    first = automation.fire_now(schedule.pk, user, key="k" * 20)
    assert automation.fire_now(schedule.pk, user, key="k" * 20) == first
    assert automation.fire_now(schedule.pk, user) != first
    assert Firing.objects.count() == 2


def test_it_drops_what_waits_and_nothing_else() -> None:
    firing, user = make_firing(), make_user("olga")
    row = automation.drop_firing(firing.pk, user)
    assert (row.state, row.reason) == ("skipped", "dropped by olga")
    assert automation_queue.queue_waiting() == 0
    with pytest.raises(UserError, match="waits no more"):
        automation.drop_firing(firing.pk, user)


def test_forgetting_a_schedule_keeps_its_runs() -> None:
    firing = make_firing()
    automation_queue.queue_waiting()
    automation.delete_schedule(firing.schedule_id, make_user())
    assert (Firing.objects.count(), Run.objects.count()) == (0, 2)


@pytest.mark.parametrize("minutes", [-1, 1e9])
def test_it_refuses_a_budget_that_cannot_be(minutes: float) -> None:
    make_platform()
    with pytest.raises(UserError, match="minutes a day cannot be"):
        automation.set_budget("cpu", minutes, make_user())
