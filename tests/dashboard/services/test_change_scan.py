"""Histories looked through: one row per change, whatever later points do to its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.models import (
    Change,
    ChangeState,
    NoiseFloor,
    Repository,
    Run,
    RunState,
    WatchedSeries,
)
from dashboard.services import change_series, lifecycle
from dashboard.services.change_scan import WITHDRAWN, scan_due, scan_series, want_scan
from dashboard.services.clock import db_now
from tests.dashboard.services import scene
from tests.factories import make_group, make_run
from tests.histories import make_change, make_history, measured, noisy
from tests.sources import make_commit, make_comparison, make_repository

pytestmark = pytest.mark.django_db


def scan(run: Run) -> list[Change]:
    return scan_series(run.workload_id, run.platform_id)


def test_it_keeps_a_step_with_its_commits_and_runs() -> None:
    runs = make_history(noisy((12, 1e6), (4, 1.1e6)))
    (made,) = scan(runs[0])
    assert (made.kind, made.direction, made.state) == ("step", "slower", "new")
    assert (made.before_commit, made.after_commit) == (runs[11].commit, runs[12].commit)
    assert (made.before_run, made.after_run) == (runs[11], runs[12])
    assert made.effect == pytest.approx(0.1, abs=0.01)
    assert made.after_value == pytest.approx(1.1e6, rel=0.01)


def test_the_same_history_again_changes_nothing() -> None:
    runs = make_history(noisy((12, 1e6), (4, 1.1e6)))
    scan(runs[0])
    before = Change.objects.values().get()
    assert scan(runs[0]) == []
    assert Change.objects.values().get() == before


def test_an_improvement_is_a_change_too() -> None:
    (made,) = scan(make_history(noisy((12, 1e6), (4, 0.9e6)))[0])
    assert made.direction == "faster" and made.effect < -0.08


def test_a_later_point_that_moves_a_step_makes_no_second_one() -> None:
    runs = make_history(noisy((12, 1e6), (4, 1.1e6)))
    wrong = make_change(runs[10], runs[11])
    assert scan(runs[0]) == []
    wrong.refresh_from_db()
    assert wrong.after_commit == runs[12].commit


def test_a_decided_change_stays_where_it_was_measured() -> None:
    runs = make_history(noisy((12, 1e6), (4, 1.1e6)))
    kept = make_change(runs[10], runs[11], state=ChangeState.CONFIRMED, effect=0.07)
    assert scan(runs[0]) == []
    kept.refresh_from_db()
    assert (kept.after_commit, kept.effect) == (runs[11].commit, 0.07)


def test_a_suspicion_that_passes_is_withdrawn_and_can_come_back() -> None:
    runs = make_history(noisy((30, 1e6), (3, 1.3e6)))
    (made,) = scan(runs[0])
    Run.objects.filter(pk=runs[-1].pk).update(state=RunState.CANCELLED, failure_kind="cancelled")
    scan(runs[0])
    made.refresh_from_db()
    assert (made.state, made.sentence) == ("rejected", WITHDRAWN)
    Run.objects.filter(pk=runs[-1].pk).update(state=RunState.SUCCEEDED, failure_kind="")
    assert scan(runs[0]) == []
    made.refresh_from_db()
    assert (made.state, made.sentence) == ("new", "")


def test_what_pairs_rejected_is_not_suspected_again() -> None:
    runs = make_history(noisy((12, 1e6), (4, 1.1e6)))
    comparison = make_comparison(repository=Repository.objects.get())
    made = make_change(runs[11], runs[12], state=ChangeState.REJECTED, comparison=comparison)
    assert scan(runs[0]) == []
    made.refresh_from_db()
    assert made.state == "rejected"


def test_another_environment_is_another_series() -> None:
    runs = make_history(noisy((12, 1e6)))
    make_history(noisy((12, 1.2e6)), mark="b" * 64)
    assert scan(runs[0]) == []
    make_history(noisy((4, 1.4e6)), mark="b" * 64)
    (made,) = scan(runs[0])
    assert made.comparable_hash == "b" * 64


def test_points_follow_the_commits_not_the_dates() -> None:
    repository = make_repository()
    commits = [make_commit(repository) for _ in range(16)]
    values = noisy((12, 1e6), (4, 1.1e6))
    late = [measured(commits[at], values[at]) for at in (15, 3, 14, 7, 0, 12, 1, 13, 5)]
    for at in (2, 4, 6, 8, 9, 10, 11):
        measured(commits[at], values[at])
    (made,) = scan(late[0])
    assert made.after_commit == commits[12]


def test_runs_of_one_commit_are_one_point() -> None:
    runs = make_history(noisy((6, 1e6)))
    commit = runs[-1].commit
    assert commit is not None
    for value in (1.3e6, 1.31e6, 1.32e6, 1.33e6):
        measured(commit, value)
    (series,) = change_series.series_of(runs[0].workload_id, runs[0].platform_id)
    assert len(series.points) == 6
    assert (series.points[-1].runs, series.points[-1].value) == (5, 1.31e6)
    assert scan(runs[0]) == []


def test_commits_beside_the_line_of_the_default_branch_do_not_count() -> None:
    runs = make_history(noisy((12, 1e6)))
    repository = Repository.objects.get()
    base = runs[5].commit
    assert base is not None
    head = {"heads": repository.heads, "head_sha": repository.head_sha}
    for number in range(5):
        aside = make_commit(repository, sha=f"{number}" * 40, parents=[base.sha])
        measured(aside, 1.5e6)
    Repository.objects.update(**head)
    assert scan(runs[0]) == []
    (series,) = change_series.series_of(runs[0].workload_id, runs[0].platform_id)
    assert len(series.points) == 12


def test_runs_without_a_commit_and_sessions_are_in_no_series() -> None:
    runs = make_history(noisy((6, 1e6)))
    free = make_run(RunState.SUCCEEDED)
    want_scan(free, db_now())
    assert not WatchedSeries.objects.exists()
    (series,) = change_series.series_of(runs[0].workload_id, runs[0].platform_id)
    assert free.pk not in {point.run_id for point in series.points}


def test_a_step_within_the_noise_floor_of_the_platform_is_none() -> None:
    runs = make_history(noisy((12, 1e6), (6, 1.05e6)))
    NoiseFloor.objects.create(
        group=make_group(),
        platform=runs[0].platform,
        workload=runs[0].workload,
        metric="tpot",
        n=10,
        floor=0.08,
        worst=0.1,
        comparable_hash="a" * 64,
        measured_at=db_now(),
    )
    assert scan(runs[0]) == []


def test_a_slow_leak_comes_out_when_pairs_reject_its_steps_and_stays_one() -> None:
    """A ramp looks like steps; two neighbours measured again differ by nothing."""
    values = [value * (1 + 0.0015 * at) for at, value in enumerate(noisy((60, 1e6), noise=0.01))]
    runs = make_history(values[:55])
    steps = scan(runs[0])
    assert steps and {change.kind for change in steps} == {"step"}
    comparison = make_comparison(repository=Repository.objects.get())
    Change.objects.update(state=ChangeState.REJECTED, comparison=comparison)
    (leak,) = scan(runs[0])
    assert (leak.kind, leak.direction) == ("leak", "slower")
    assert leak.after_commit == runs[-1].commit
    assert leak.before_commit.position < 30 and leak.effect > 0.04
    later = make_history(values[55:])
    assert [change.kind for change in scan(runs[0]) if change.kind == "leak"] == []
    leak.refresh_from_db()
    assert leak.after_commit == later[-1].commit


@pytest.mark.usefixtures("store_root")
def test_the_end_of_a_run_has_its_history_looked_through(tmp_path: Path) -> None:
    repository = make_repository()
    run = scene.queued()
    run.commit = make_commit(repository)
    run.save()
    claim = lifecycle.claim_run(run.pk, 1, scene.WORKER)
    assert claim is not None
    lifecycle.deliver_run(run.pk, claim.fence, scene.succeeded(tmp_path))
    row = WatchedSeries.objects.get()
    assert (row.workload_id, row.platform_id) == (run.workload_id, run.platform_id)
    assert scan_due() == 1
    row.refresh_from_db()
    assert row.wanted_at is None and row.scanned_at is not None
    assert scan_due() == 0


def test_a_run_that_ends_while_it_is_looked_through_is_not_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (run,) = make_history([1e6])
    want_scan(run, db_now())
    later = db_now()

    def meanwhile(_workload: int, _platform: int) -> list[Change]:
        want_scan(run, later)
        return []

    monkeypatch.setattr("dashboard.services.change_scan.scan_series", meanwhile)
    scan_due()
    assert WatchedSeries.objects.get().wanted_at == later
