"""The keeper's fetches: what is asked for is fetched, what fails says why."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from dashboard.models import Commit, Repository
from dashboard.services.repositories import NewRepository, register_repository, request_fetch
from tests.workers.repository import Upstream
from workers.fetch import Fetcher

pytestmark = pytest.mark.fault


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    made = Upstream.make(tmp_path / "upstream")
    made.commit("first")
    return made


def registered(upstream: Upstream, slug: str = "models") -> Repository:
    return register_repository(NewRepository(slug=slug, address=str(upstream.folder)), None)


def fetched(row: Repository, stop: threading.Event | None = None) -> Repository:
    Fetcher(stop or threading.Event()).fetch_due()
    row.refresh_from_db()
    return row


def test_it_fetches_what_was_asked_for_once(database: Path, upstream: Upstream) -> None:
    row = fetched(registered(upstream))
    assert (row.state, row.default_branch, row.wanted_at) == ("ready", "main", None)
    assert Commit.objects.get().subject == "first"
    assert Fetcher(threading.Event()).fetch_due() == 0


def test_it_adds_what_is_new(database: Path, upstream: Upstream) -> None:
    row = fetched(registered(upstream))
    newer = upstream.commit("second")
    request_fetch(row.pk, None)
    assert fetched(row).heads == {"refs/heads/main": newer}
    assert [commit.subject for commit in Commit.objects.order_by("position")] == ["first", "second"]


def test_it_says_why_a_fetch_failed_and_goes_on(database: Path, upstream: Upstream) -> None:
    away = registered(upstream, "away")
    Repository.objects.filter(pk=away.pk).update(address="/nowhere")
    other = registered(upstream, "here")
    assert fetched(away).state == "failed"
    assert "is no git repository" in away.reason
    other.refresh_from_db()
    assert other.state == "ready"


def test_it_leaves_the_work_to_others_when_it_stops(database: Path, upstream: Upstream) -> None:
    stop = threading.Event()
    stop.set()
    row = fetched(registered(upstream), stop)
    assert row.state == "waiting" and row.wanted_at is not None


def test_it_knows_an_empty_repository(database: Path, tmp_path: Path) -> None:
    row = fetched(registered(Upstream.make(tmp_path / "empty")))
    assert (row.state, row.heads) == ("ready", {})
