"""A keeper's schedules: real commits of a real repository, several keepers, a broken schedule."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.db import connection

from dashboard.models import Cause, Firing, Run, Schedule, ScheduleKind, Template
from dashboard.services import hooks
from dashboard.services.hooks import Call
from dashboard.services.repositories import NewRepository, register_repository
from dashboard.services.signatures import signature
from tests.automation import make_schedule
from tests.factories import make_user
from tests.workers.repository import Upstream
from workers.automation import tend_schedules
from workers.fetch import Fetcher

pytestmark = pytest.mark.fault


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    made = Upstream.make(tmp_path / "upstream")
    made.commit("first")
    made.commit("second")
    return made


def watch(upstream: Upstream) -> Schedule:
    row = register_repository(NewRepository(slug="models", address=str(upstream.folder)), None)
    return make_schedule(ScheduleKind.COMMITS, repository=row, branch="main")


def keep() -> None:
    """What a keeper does within a few seconds."""
    tend_schedules()
    Fetcher(threading.Event()).fetch_due()
    tend_schedules()


def measured() -> list[tuple[str, str, int]]:
    """Cause, subject and number of runs of what was fired, in its order."""
    rows = Firing.objects.select_related("commit", "group").order_by("id")
    return [
        (row.cause, row.commit.subject, row.group.runs.count())
        for row in rows
        if row.commit and row.group
    ]


def test_a_push_is_measured_once_it_is_fetched(database: Path, upstream: Upstream) -> None:
    schedule = watch(upstream)
    keep()
    start = [(Cause.PARENT, "first", 2), (Cause.COMMIT, "second", 2)]
    assert measured() == start
    upstream.commit("third")
    hook = hooks.open_hook(schedule.repository_id or 0, make_user())
    body = b'{"ref": "refs/heads/main"}'
    right = {"x-hub-signature-256": signature(hooks.secret_of(hook), body)}
    assert hooks.receive(Call(slug="models", body=body, headers=right))
    keep()
    assert measured() == [*start, (Cause.COMMIT, "third", 2)]
    keep()
    assert Run.objects.count() == 6


def test_keepers_at_the_same_time_queue_once(database: Path, upstream: Upstream) -> None:
    watch(upstream)
    Fetcher(threading.Event()).fetch_due()
    gate = threading.Barrier(3)

    def keeper() -> None:
        gate.wait()
        try:
            tend_schedules()
        finally:
            connection.close()

    threads = [threading.Thread(target=keeper) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert measured() == [(Cause.PARENT, "first", 2), (Cause.COMMIT, "second", 2)]
    assert Run.objects.count() == 4


def test_a_schedule_that_cannot_look_keeps_no_other_from_its_time(
    database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    empty = Template.objects.create(name="empty", created_at=long_ago)
    broken = make_schedule(every_h=1, now=long_ago, template=empty)
    other = make_schedule(every_h=1, now=long_ago)
    assert tend_schedules() == 1
    assert Firing.objects.get().schedule == other
    assert f"schedule {broken.pk}: empty has no version" in caplog.text
