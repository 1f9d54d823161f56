"""Registering, fetching and resolving, against the real rows."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest

from dashboard.models import Audit, Commit, Repository
from dashboard.services import repositories
from dashboard.services.addresses import RefError
from dashboard.services.contract import FetchClaim, Fetched, FoundCommit, SupersededError
from dashboard.services.repositories import (
    NewRepository,
    UnknownCommitError,
    register_repository,
    resolve,
)
from dashboard.services.sources import RegisterError, source_of
from profiler.errors import UserError
from tests.dashboard.services.scene import Clock
from tests.sources import make_commit, make_repository

pytestmark = pytest.mark.django_db
WANTED = NewRepository(slug="models", address="https://example.org/models.git")


def found(number: int, **fields: object) -> FoundCommit:
    plain = FoundCommit(
        sha=f"{number:040x}",
        parents=(f"{number - 1:040x}",) if number > 1 else (),
        author="Ann",
        authored_s=1_700_000_000,
        committed_s=1_700_000_000,
        subject=f"step {number}",
    )
    return dataclasses.replace(plain, **fields)  # type: ignore[arg-type]


def claimed() -> FetchClaim:
    claim = repositories.claim_fetch()
    assert claim is not None
    return claim


def test_it_registers_and_asks_for_a_fetch() -> None:
    row = register_repository(WANTED, None)
    assert claimed().origin.repository_id == row.pk
    assert Audit.objects.get().action == "repository.register"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"slug": "a b"}, "The name"),
        ({"slug": ""}, "The name"),
        ({"slug": "x" * 50}, "too long"),
        ({"allowed_refs": ()}, "No branch"),
        ({"allowed_refs": ("--x",)}, "no branch"),
        ({"import_paths": ("/etc",)}, "no folder inside"),
        ({"factory": "../x.py:f"}, "path/file.py:function"),
        ({"factory": "x.py"}, "path/file.py:function"),
        ({"build_command": "make 'x"}, "open quote"),
        ({"build_limit_s": 0.0}, "time limit"),
        ({"address": "ext::sh -c id"}, "not fetched from"),
    ],
)
def test_it_says_what_cannot_be_registered(changes: dict[str, object], words: str) -> None:
    with pytest.raises(UserError, match=words):
        register_repository(dataclasses.replace(WANTED, **changes), None)  # type: ignore[arg-type]
    assert not Repository.objects.exists()


def test_it_refuses_a_second_of_the_same_name() -> None:
    register_repository(WANTED, None)
    with pytest.raises(RegisterError, match="exists already"):
        register_repository(WANTED, None)


def test_it_stores_commits_in_the_order_of_their_history() -> None:
    row = register_repository(WANTED, None)
    heads = {"refs/heads/main": found(2).sha}
    repositories.store_fetch(claimed(), Fetched(heads=heads, commits=(found(1), found(2))))
    repositories.request_fetch(row.pk, None)
    claim = claimed()
    assert claim.known == {found(2).sha}
    repositories.store_fetch(claim, Fetched(heads=heads, commits=(found(2), found(3))))
    stored = Commit.objects.filter(repository=row).order_by("position")
    assert [commit.subject for commit in stored] == ["step 1", "step 2", "step 3"]


@pytest.mark.parametrize("seconds", [-(10**17), 10**17, -1])
def test_it_sets_impossible_times_to_the_nearest_possible(seconds: int) -> None:
    register_repository(WANTED, None)
    repositories.store_fetch(claimed(), Fetched(commits=(found(1, authored_s=seconds),)))
    assert Commit.objects.get().authored_at.year in (1970, 2100)


def test_it_cuts_names_that_are_too_long() -> None:
    register_repository(WANTED, None)
    long = found(1, author="a" * 9999, subject="s" * 9999)
    repositories.store_fetch(claimed(), Fetched(commits=(long,)))
    commit = Commit.objects.get()
    assert (len(commit.author), len(commit.subject)) == (200, 500)


def test_it_lets_one_fetcher_have_a_repository() -> None:
    register_repository(WANTED, None)
    claimed()
    assert repositories.claim_fetch() is None


def test_it_takes_a_fetch_over_from_a_dead_fetcher(clock: Clock) -> None:
    register_repository(WANTED, None)
    dead = claimed()
    clock.advance(timedelta(minutes=20).total_seconds())
    alive = claimed()
    repositories.store_fetch(alive, Fetched())
    with pytest.raises(SupersededError):
        repositories.store_fetch(dead, Fetched())


def test_it_fetches_again_for_who_asked_during_a_fetch(clock: Clock) -> None:
    row = register_repository(WANTED, None)
    claim = claimed()
    clock.advance(10)
    repositories.request_fetch(row.pk, None)
    repositories.store_fetch(claim, Fetched())
    assert repositories.claim_fetch() is not None


def test_it_keeps_what_it_knew_when_a_fetch_fails() -> None:
    row = make_repository(wanted_at="2026-01-01T00:00Z")
    commit = make_commit(row)
    repositories.fail_fetch(claimed(), UserError("no route\x1b[31m", "try later"))
    row.refresh_from_db()
    assert (row.state, row.reason, row.hint) == ("failed", "no route\\x1b[31m", "try later")
    assert resolve(row, "main") == commit


def test_it_gives_a_fetch_back_when_the_keeper_stops() -> None:
    register_repository(WANTED, None)
    repositories.give_back_fetch(claimed())
    assert repositories.claim_fetch() is not None


@pytest.mark.parametrize("name", ["main", "HEAD", "refs/heads/main"])
def test_it_resolves_a_name_to_one_commit(name: str) -> None:
    row = make_repository()
    make_commit(row)
    last = make_commit(row)
    assert resolve(row, name) == last


def test_it_resolves_a_whole_hash() -> None:
    row = make_repository()
    first = make_commit(row)
    make_commit(row)
    assert resolve(row, first.sha) == first


@pytest.mark.parametrize("name", ["develop", "0" * 40, "tags/v9"])
def test_it_says_which_commits_it_does_not_know(name: str) -> None:
    row = make_repository()
    make_commit(row)
    with pytest.raises(UnknownCommitError, match="allowed branches of models"):
        resolve(row, name)


def test_it_does_not_find_a_commit_of_another_repository() -> None:
    theirs = make_commit(make_repository("theirs"))
    with pytest.raises(UnknownCommitError):
        resolve(make_repository("ours"), theirs.sha)


def test_it_refuses_a_name_like_an_option() -> None:
    with pytest.raises(RefError):
        resolve(make_repository(), "--output=x")


def test_it_tells_a_worker_how_to_make_a_commit_ready() -> None:
    row = make_repository(build_command="make -j2 'all of it'", import_paths=["src"])
    source = source_of(make_commit(row))
    assert source.build_command == ("make", "-j2", "all of it")
    assert (source.import_paths, source.origin.allowed_refs) == (("src",), ("main",))
