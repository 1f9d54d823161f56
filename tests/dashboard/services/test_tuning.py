"""Opening a tuning from its Day-0 runs, and closing it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from dashboard.models import (
    Audit,
    Platform,
    Repository,
    Run,
    RunState,
    TargetKind,
    Tuning,
    TuningState,
)
from dashboard.services.tuning import (
    NewTuning,
    Target,
    TuningError,
    close_tuning,
    ladder_of,
    open_tuning,
)
from dashboard.services.tuning_rows import kept_of
from tests.factories import (
    make_metric,
    make_platform,
    make_result,
    make_run,
    make_spec,
    make_user,
)
from tests.sources import make_commit, make_repository
from tests.tunings import make_iteration, make_kept, make_tuning, revert

pytestmark = pytest.mark.django_db


def measured(repository: Repository, value: float = 8e6, **fields: Any) -> Run:  # noqa: ANN401
    """A succeeded run of the repository's newest commit."""
    comparable = fields.pop("comparable_hash", "a" * 64)
    commit = fields.pop("commit", repository.commits.first())
    run = make_run(RunState.SUCCEEDED, commit=commit, **fields)
    make_result(run, value=value, comparable_hash=comparable)
    return run


def wanted(run: Run, repository: Repository, **changes: Any) -> NewTuning:  # noqa: ANN401
    values: dict[str, Any] = {
        "workload": run.workload,
        "platform": run.platform,
        "repository": repository,
        "target": Target(kind=TargetKind.VALUE, value=4e6),
    }
    return NewTuning(**(values | changes))


@pytest.fixture
def repository() -> Repository:
    row = make_repository()
    make_commit(row, "Day-0")
    return row


def test_it_starts_from_the_newest_run(repository: Repository) -> None:
    measured(repository, 9e6)
    run = measured(repository, 8e6)
    user = make_user()
    made = open_tuning(wanted(run, repository), user)
    assert (made.day0_value, made.metric, made.state) == (8e6, "tpot", TuningState.OPEN)
    assert made.day0_commit == run.commit
    assert [row.pk for row in made.day0_runs.all()] == [run.pk]
    assert Audit.objects.get(action="tuning.open").user == user


def test_day0_is_the_median_of_the_runs_chosen(repository: Repository) -> None:
    runs = [measured(repository, value) for value in (8e6, 9e6, 8.2e6)]
    made = open_tuning(wanted(runs[0], repository, runs=tuple(run.pk for run in runs)), None)
    assert made.day0_value == 8.2e6
    assert made.day0_runs.count() == 3


def test_it_takes_another_speed_of_the_scenario(repository: Repository) -> None:
    run = measured(repository)
    make_metric(run.result, "decode_rate", value=100.0)
    target = Target(kind=TargetKind.VALUE, value=200.0)
    made = open_tuning(wanted(run, repository, metric="decode_rate", target=target), None)
    assert (made.metric, made.day0_value) == ("decode_rate", 100.0)


def test_it_names_the_commit_of_runs_without_one(repository: Repository) -> None:
    run = measured(repository, commit=None)
    with pytest.raises(TuningError, match="of no commit"):
        open_tuning(wanted(run, repository), None)
    made = open_tuning(wanted(run, repository, day0_ref="main"), None)
    assert made.day0_commit.subject == "Day-0"


@pytest.mark.parametrize("value", [8e6, 9e6, 0.0, -1.0])
def test_it_refuses_a_target_that_is_met_already(repository: Repository, value: float) -> None:
    run = measured(repository)
    target = Target(kind=TargetKind.VALUE, value=value)
    with pytest.raises(TuningError, match="is met by Day-0 already"):
        open_tuning(wanted(run, repository, target=target), None)


def test_it_refuses_runs_that_do_not_go_together(repository: Repository) -> None:
    one = measured(repository)
    other = measured(repository, comparable_hash="b" * 64)
    with pytest.raises(TuningError, match="different environments"):
        open_tuning(wanted(one, repository, runs=(one.pk, other.pk)), None)
    later = measured(repository, commit=make_commit(repository, "later"))
    with pytest.raises(TuningError, match="different commits"):
        open_tuning(wanted(one, repository, runs=(one.pk, later.pk)), None)


def test_it_refuses_runs_of_something_else(repository: Repository) -> None:
    one = measured(repository)
    bigger = measured(repository, spec=make_spec(batch=2))
    with pytest.raises(TuningError, match=f"Run {bigger.pk} has no time per output token"):
        open_tuning(wanted(one, repository, runs=(one.pk, bigger.pk)), None)
    elsewhere = make_repository("elsewhere")
    with pytest.raises(TuningError, match="another repository"):
        open_tuning(wanted(one, elsewhere), None)
    with pytest.raises(TuningError, match="peak_memory is no speed of decode"):
        open_tuning(wanted(one, repository, metric="peak_memory"), None)


def test_it_refuses_where_nothing_was_measured(repository: Repository) -> None:
    run = measured(repository)
    moon: Platform = make_platform("moon")
    with pytest.raises(TuningError, match="No run has"):
        open_tuning(wanted(run, repository, platform=moon), None)


def test_it_refuses_the_model_that_comparisons_would_not_measure() -> None:
    own = make_repository("own", factory="bench.py:make")
    make_commit(own, "Day-0")
    run = measured(own)
    with pytest.raises(TuningError, match="measure the model of that repository"):
        open_tuning(wanted(run, own), None)


def test_one_workload_is_tuned_once_at_a_time(repository: Repository) -> None:
    run = measured(repository)
    first = open_tuning(wanted(run, repository), None)
    with pytest.raises(TuningError, match=f"already by tuning {first.pk}"):
        open_tuning(wanted(run, repository), None)
    close_tuning(first.pk, "enough", make_user())
    assert open_tuning(wanted(run, repository), None).pk != first.pk


def test_it_closes_with_a_reason_as_stopped() -> None:
    tuning = make_tuning()
    with pytest.raises(TuningError, match="with a reason"):
        close_tuning(tuning.pk, "  ", make_user())
    closed = close_tuning(tuning.pk, "other work", make_user())
    assert (closed.state, closed.reason) == (TuningState.STOPPED, "other work")
    assert closed.ended_at is not None
    with pytest.raises(TuningError, match="has ended"):
        close_tuning(tuning.pk, "again", make_user())


def test_it_closes_as_reached_where_the_ladder_meets_the_target() -> None:
    tuning = make_tuning(target=7.5e6)
    make_kept(tuning, -0.1)
    assert close_tuning(tuning.pk, "done", make_user()).state == TuningState.REACHED


def test_it_stays_open_while_something_is_undecided() -> None:
    tuning = make_tuning()
    idea = make_iteration(tuning)
    with pytest.raises(TuningError, match="undecided"):
        close_tuning(tuning.pk, "done", make_user())
    revert(idea)
    assert close_tuning(tuning.pk, "done", make_user()).state == TuningState.STOPPED


def test_its_ladder_is_what_was_kept_in_order() -> None:
    tuning = make_tuning()
    make_kept(tuning, -0.1)
    revert(make_iteration(tuning, "nothing came of it"))
    make_kept(tuning, -0.2)
    ladder = ladder_of(tuning, kept_of(tuning))
    assert [rung.number for rung in ladder.rungs] == [1, 3]
    assert ladder.change == pytest.approx(0.9 * 0.8 - 1, abs=1e-3)
    assert ladder.low is not None and ladder.low < ladder.change


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "odd"},
        {"state": TuningState.REACHED},
        {"day0_value": 0.0},
        {"target_share": 0.7},
        {"reason": "why"},
    ],
)
def test_the_database_refuses_what_cannot_be(changes: dict[str, object]) -> None:
    tuning = make_tuning()
    with pytest.raises(IntegrityError), transaction.atomic():
        Tuning.objects.filter(pk=tuning.pk).update(**changes)
