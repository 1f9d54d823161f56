"""From a good and a bad commit to the culprit, through the verbs of keeper and worker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dashboard.models import (
    Audit,
    Bisect,
    BisectStep,
    Commit,
    Comparison,
    Repository,
    Run,
)
from dashboard.queries.bisect import bisect_view, get_bisect
from dashboard.services import bisect_steps
from dashboard.services.bisect import BisectError, cancel_bisect
from dashboard.services.bisect_steps import advance_all
from dashboard.services.comparisons import cancel_comparison
from profiler.errors import ExitCode
from tests.bisects import Bench, make_line, start_bisect
from tests.factories import make_user
from tests.sources import make_commit, make_repository

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store_root")]

BASE = 1e6


@pytest.fixture
def repository(db: None) -> Repository:
    return make_repository()


def noise(number: int) -> float:
    """A per mille to and fro, so that the interval is not a point."""
    return 1 + 0.001 * ((number * 7) % 5 - 2)


def step_at(culprit: Commit, effect: float) -> Callable[[Commit, int], float]:
    """Launches of the culprit and of all after it take `effect` longer."""

    def takes(commit: Commit, number: int) -> float:
        factor = 1 + effect if commit.position >= culprit.position else 1.0
        return BASE * factor * noise(number + commit.position)

    return takes


def finish(bisect: Bisect, bench: Bench, limit: int = 40) -> Bisect:
    """Keeper and worker in turns until it has ended."""
    for _ in range(limit):
        advance_all()
        bench.work()
        bisect.refresh_from_db()
        if bisect.is_terminal:
            return bisect
    raise AssertionError(f"{bisect} has not ended after {limit} turns")


def said(bisect: Bisect) -> dict[str, str]:
    """Subject of each measured commit -> its answer."""
    return {step.commit.subject: step.answer for step in bisect.steps.all()}


def test_it_finds_the_culprit_among_16(repository: Repository, tmp_path: Path) -> None:
    line = make_line(repository, 17)
    culprit, broken, shaky = line[11], line[9], line[12]
    plain = step_at(culprit, 0.1)

    def takes(commit: Commit, number: int) -> float:
        if commit == shaky:  # as often slow as not, so that no number of pairs settles it
            return BASE * (1.1 if number % 4 in {0, 3} else 1.0) * noise(number)
        return plain(commit, number)

    bench = Bench(tmp_path / "launch", takes, frozenset({broken.sha}), by_files=True)
    made = finish(start_bisect(repository, line[0], line[16]), bench)
    assert (made.state, made.outcome, made.culprit) == ("ended", "confirmed", culprit), said(made)
    answers = said(made)
    assert (answers["change 9"], answers["change 12"]) == ("skipped", "unsure"), answers
    assert made.steps.count() <= 9
    last = made.steps.get(kind="confirm").comparison
    assert last.baseline is not None and last.candidate is not None
    assert (last.baseline.sha, last.candidate.sha) == (line[10].sha, culprit.sha)


@pytest.mark.parametrize("culprit", [1, 5, 8, 16])
def test_it_finds_the_culprit_wherever_it_is(
    culprit: int, repository: Repository, tmp_path: Path
) -> None:
    line = make_line(repository, 17)
    bench = Bench(tmp_path / "launch", step_at(line[culprit], 0.1))
    made = finish(start_bisect(repository, line[0], line[16]), bench)
    assert made.culprit == line[culprit] and made.outcome == "confirmed"
    assert made.steps.count() <= 6
    assert made.effect == pytest.approx(0.1, abs=0.005)
    assert made.threshold == pytest.approx(0.05, abs=0.003)


def test_it_says_what_it_found(repository: Repository, tmp_path: Path) -> None:
    line = make_line(repository, 5)
    made = finish(
        start_bisect(repository, line[0], line[4]), Bench(tmp_path / "l", step_at(line[2], 0.1))
    )
    row = get_bisect(made.pk)
    assert row is not None
    view = bisect_view(row)
    assert view.sentence.startswith(f"{line[2].sha[:10]} “change 2” made Time per output token")
    assert "slower, +" in view.sentence and "of the change between the ends" in view.sentence
    assert [(line.commit.subject, line.fate) for line in view.commits] == [
        ("change 4", "cleared"),
        ("change 3", "cleared"),
        ("change 2", "culprit"),
        ("change 1", "cleared"),
    ]
    assert view.exit_code == ExitCode.FINE


def test_it_finds_who_made_it_faster(repository: Repository, tmp_path: Path) -> None:
    line = make_line(repository, 9)
    bench = Bench(tmp_path / "launch", step_at(line[3], -0.2))
    made = finish(start_bisect(repository, line[0], line[8]), bench)
    assert (made.culprit, made.looked_for) == (line[3], "faster")


def test_it_names_the_few_that_cannot_be_told_apart(repository: Repository, tmp_path: Path) -> None:
    line = make_line(repository, 9)
    unbuilt = frozenset({line[4].sha, line[5].sha})
    bench = Bench(tmp_path / "launch", step_at(line[5], 0.1), unbuilt)
    made = finish(start_bisect(repository, line[0], line[8]), bench)
    assert (made.outcome, made.culprit) == ("several", None)
    row = get_bisect(made.pk)
    assert row is not None
    view = bisect_view(row)
    suspected = [line.commit.subject for line in view.commits if line.fate == "suspect"]
    assert suspected == ["change 6", "change 5", "change 4"]
    assert view.sentence.startswith("One of 3 commits made")
    assert view.exit_code == ExitCode.INCONCLUSIVE


def test_it_skips_a_commit_that_crashes(repository: Repository, tmp_path: Path) -> None:
    line = make_line(repository, 9)
    plain = step_at(line[6], 0.1)

    def takes(commit: Commit, number: int) -> float | None:
        return None if commit == line[4] else plain(commit, number)

    made = finish(start_bisect(repository, line[0], line[8]), Bench(tmp_path / "l", takes))
    assert made.culprit == line[6]
    assert said(made)["change 4"] == "skipped"


def test_it_says_that_the_ends_are_alike(repository: Repository, tmp_path: Path) -> None:
    line = make_line(repository, 5)
    bench = Bench(tmp_path / "launch", lambda _, number: BASE * noise(number))
    made = finish(start_bisect(repository, line[0], line[4]), bench)
    assert (made.outcome, made.steps.count()) == ("alike", 1)
    assert "no change within" in made.message


def test_it_does_not_confirm_what_comes_and_goes(repository: Repository, tmp_path: Path) -> None:
    line = make_line(repository, 5)
    plain = step_at(line[2], 0.1)

    def takes(commit: Commit, number: int) -> float:
        confirming = BisectStep.objects.filter(kind="confirm").exists()
        return BASE * noise(number) if confirming else plain(commit, number)

    made = finish(start_bisect(repository, line[0], line[4]), Bench(tmp_path / "l", takes))
    assert (made.outcome, made.culprit) == ("unconfirmed", line[2])


@pytest.mark.parametrize("end", ["good", "bad"])
def test_it_stops_when_an_end_does_not_build(
    end: str, repository: Repository, tmp_path: Path
) -> None:
    line = make_line(repository, 5)
    unbuilt = frozenset({line[0 if end == "good" else 4].sha})
    bench = Bench(tmp_path / "launch", step_at(line[2], 0.1), unbuilt)
    made = finish(start_bisect(repository, line[0], line[4]), bench)
    assert made.state == "failed"
    side = "baseline" if end == "good" else "candidate"
    assert f"The {side}: The build of it" in made.message


def test_it_stops_when_its_comparison_is_cancelled(repository: Repository, tmp_path: Path) -> None:
    line = make_line(repository, 5)
    made = start_bisect(repository, line[0], line[4])
    advance_all()
    cancel_comparison(made.steps.get().comparison_id, make_user())
    advance_all()
    made.refresh_from_db()
    assert made.state == "failed" and "was cancelled" in made.message


def test_it_refuses_a_good_commit_that_is_none(repository: Repository) -> None:
    line = make_line(repository, 5)
    made = start_bisect(repository, line[4], line[0])
    advance_all()
    made.refresh_from_db()
    assert (made.state, made.failure_kind) == ("failed", "bad_range")
    assert not Comparison.objects.exists()


def test_it_refuses_a_commit_that_is_not_there(repository: Repository) -> None:
    line = make_line(repository, 3)
    made = start_bisect(repository, line[0], line[2], good_ref="nowhere")
    advance_all()
    made.refresh_from_db()
    assert (made.state, made.failure_kind) == ("failed", "unknown_commit")


def test_it_waits_for_a_fetch(repository: Repository) -> None:
    line = make_line(repository, 3)
    made = start_bisect(repository, line[0], line[2])
    Repository.objects.update(fetched_at=None)
    assert advance_all() == 0
    made.refresh_from_db()
    assert made.state == "resolving"


def test_a_second_tick_does_nothing_more(repository: Repository, tmp_path: Path) -> None:
    line = make_line(repository, 9)
    bench = Bench(tmp_path / "launch", step_at(line[3], 0.1))
    made = start_bisect(repository, line[0], line[8])
    for _ in range(3):
        advance_all()
        before = (BisectStep.objects.count(), Comparison.objects.count(), Run.objects.count())
        assert advance_all() == 0
        assert (BisectStep.objects.count(), Comparison.objects.count(), Run.objects.count()) == (
            before
        )
        bench.work()
    assert made.steps.count() == 3


def test_one_bisect_holds_up_no_other(repository: Repository, tmp_path: Path) -> None:
    line = make_line(repository, 5)
    stuck = start_bisect(repository, line[4], line[0])
    made = start_bisect(repository, line[0], line[4])
    finish(made, Bench(tmp_path / "launch", step_at(line[2], 0.1)))
    stuck.refresh_from_db()
    assert (stuck.state, made.culprit) == ("failed", line[2])


def test_it_can_be_cancelled_with_the_comparison_it_is_at(repository: Repository) -> None:
    line = make_line(repository, 5)
    user = make_user()
    made = start_bisect(repository, line[0], line[4])
    advance_all()
    cancel_bisect(made.pk, user)
    made.refresh_from_db()
    assert made.state == "cancelled"
    assert made.steps.get().comparison.state == "cancelled"
    assert advance_all() == 0
    with pytest.raises(BisectError, match="already ended"):
        cancel_bisect(made.pk, user)
    assert Audit.objects.filter(action="bisect.cancel").count() == 1


def test_it_searches_a_branch_that_was_merged(repository: Repository, tmp_path: Path) -> None:
    good = make_commit(repository, "good")
    first = make_commit(repository, "main 1")
    side = make_commit(repository, "side 1", parents=[good.sha])
    culprit = make_commit(repository, "side 2", parents=[side.sha])
    merge = make_commit(repository, "merge", parents=[first.sha, culprit.sha])
    last = make_commit(repository, "last", parents=[merge.sha])
    slow = {culprit.sha, merge.sha, last.sha}

    def takes(commit: Commit, number: int) -> float:
        return BASE * (1.1 if commit.sha in slow else 1.0) * noise(number)

    made = finish(start_bisect(repository, good, last), Bench(tmp_path / "launch", takes))
    assert (made.culprit, made.outcome) == (culprit, "confirmed")


def test_it_reads_a_long_history_page_by_page(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bisect_steps, "HISTORY_CHUNK", 3)
    line = make_line(repository, 12)
    made = start_bisect(repository, line[1], line[9])
    advance_all()
    made.refresh_from_db()
    assert bisect_steps.range_of(made).shas == tuple(commit.sha for commit in line[2:10])
