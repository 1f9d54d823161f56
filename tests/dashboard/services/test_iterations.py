"""Iterations: ideas, comparisons that speak for them, decisions that stay."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from dashboard.models import (
    Audit,
    Comparison,
    ComparisonState,
    Iteration,
    IterationState,
    Numerics,
    Run,
    TemplateVersion,
    Tuning,
)
from dashboard.services.pairs import queue_session
from dashboard.services.repositories import resolve
from dashboard.services.tuning import (
    Decision,
    FindingRef,
    NewIteration,
    TuningError,
    add_iteration,
    attach_comparison,
    close_tuning,
    decide_iteration,
    measure_iteration,
)
from dashboard.services.tuning_iterations import compared_specs
from profiler.errors import UserError
from tests.factories import make_platform, make_ready_trace, make_spec, make_user
from tests.sources import make_commit, make_comparison, make_pair, make_repository
from tests.tunings import keep, make_iteration, make_kept, make_tuning, measure, revert

pytestmark = pytest.mark.django_db


def fresh(row: Iteration) -> Iteration:
    return Iteration.objects.select_related("tuning", "commit", "baseline").get(pk=row.pk)


def test_it_keeps_what_the_finding_said() -> None:
    trace = make_ready_trace()
    finding = FindingRef(
        kind="redundant_copy",
        subject="aten::conti\0guous",
        title="Tensors are copied",
        trace=trace,
        gain_ns=2_000_000,
        share=0.05,
    )
    tuning = make_tuning()
    wanted = NewIteration(hypothesis="keep it", finding=finding, predicted_effect=-0.05)
    made = add_iteration(tuning, wanted, make_user())
    assert (made.number, made.state, made.baseline) == (1, IterationState.IDEA, tuning.day0_commit)
    assert (made.finding_kind, made.finding_subject) == ("redundant_copy", "aten::contiguous")
    assert (made.trace, made.predicted_ns, made.predicted_effect) == (trace, 2_000_000, -0.05)


def test_it_numbers_them_and_wants_a_hypothesis() -> None:
    tuning = make_tuning()
    assert [make_iteration(tuning, f"idea {n}").number for n in range(3)] == [1, 2, 3]
    with pytest.raises(TuningError, match="says what it tries"):
        make_iteration(tuning, "   ")


def test_the_same_idea_sent_twice_is_one() -> None:
    tuning = make_tuning()
    first = make_iteration(tuning, "fuse it")
    with pytest.raises(TuningError, match="Iteration 1 tries the same"):
        make_iteration(tuning, "fuse it")
    revert(first)
    assert make_iteration(tuning, "fuse it").number == 2


def test_a_closed_tuning_takes_no_more() -> None:
    tuning = make_tuning()
    close_tuning(tuning.pk, "done", make_user())
    with pytest.raises(TuningError, match="has ended"):
        make_iteration(tuning)


def test_it_starts_a_comparison_against_what_is_kept() -> None:
    tuning = make_tuning()
    kept = make_kept(tuning)
    made = make_iteration(tuning, "next")
    comparison = measure_iteration(made.pk, "main", make_user())
    assert kept.commit is not None
    assert (comparison.baseline_ref, comparison.candidate_ref) == (kept.commit.sha, "main")
    assert comparison.workloads.get().workload == tuning.workload
    row = fresh(made)
    assert (row.state, row.stands_on_id) == (IterationState.MEASURING, kept.pk)


def test_it_measures_the_templates_other_workloads_of_the_model(mine: TemplateVersion) -> None:
    tuning = make_tuning()
    Tuning.objects.filter(pk=tuning.pk).update(version=mine)
    tuning.refresh_from_db()
    specs = compared_specs(tuning)
    assert specs[0] == make_spec()
    assert {spec.model for spec in specs} == {"llama-tiny"}


def test_it_waits_for_the_comparison_before_another() -> None:
    made = make_iteration(make_tuning())
    measure(made, -0.1, state=ComparisonState.MEASURING)
    with pytest.raises(TuningError, match="is being measured by comparison"):
        measure_iteration(made.pk, "main", None)
    with pytest.raises(TuningError, match="still being measured"):
        keep(made)


def test_it_measures_again_after_a_comparison_that_failed() -> None:
    made = make_iteration(make_tuning())
    first = measure(made, -0.1)
    second = measure_iteration(made.pk, "main", None)
    assert fresh(made).comparison_id == second.pk != first.pk


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"repository": "another"}, "another repository"),
        ({"platform": "moon"}, "another platform"),
        ({"batch": 3}, "does not measure"),
        ({"state": ComparisonState.FAILED}, "without a verdict"),
        ({"baseline": None}, "not looked up"),
        ({"baseline": "other"}, "the ladder stands on"),
    ],
)
def test_it_attaches_only_what_speaks_for_it(changes: dict[str, object], why: str) -> None:
    tuning = make_tuning()
    made = make_iteration(tuning)
    comparison = make_comparison(repository=tuning.repository, baseline=tuning.day0_commit)
    if "repository" in changes:
        comparison.repository = make_repository("another")
    if "platform" in changes:
        comparison.platform = make_platform("moon")
    if "batch" in changes:
        comparison.workloads.all().delete()
    if "state" in changes:
        comparison.state, comparison.ended_at = ComparisonState.FAILED, comparison.created_at
    if "baseline" in changes:
        comparison.state, comparison.baseline = ComparisonState.RESOLVING, None
        if changes["baseline"]:
            comparison.baseline = make_commit(tuning.repository, "other")
    comparison.save()
    with pytest.raises(TuningError, match=why):
        attach_comparison(made.pk, comparison.pk, None)
    assert fresh(made).state == IterationState.IDEA


def test_it_attaches_a_comparison_once() -> None:
    tuning = make_tuning()
    one, other = make_iteration(tuning, "one"), make_iteration(tuning, "other")
    comparison = measure(one, -0.1)
    with pytest.raises(TuningError, match="speaks for iteration 1 already"):
        attach_comparison(other.pk, comparison.pk, None)
    with pytest.raises(TuningError, match="There is no comparison 999"):
        attach_comparison(other.pk, 999, None)


def test_it_keeps_with_verdict_and_reason() -> None:
    made = make_iteration(make_tuning())
    comparison = measure(made, -0.1)
    user = make_user()
    row = keep(made, user=user)
    assert (row.state, row.verdict, row.commit) == ("kept", "faster", comparison.candidate)
    assert row.effect == pytest.approx(-0.1, abs=1e-3)
    assert row.low is not None and row.high is not None and row.effect is not None
    assert row.low <= row.effect <= row.high
    assert (row.pairs, row.decided_by, row.despite) == (10, user, "answers compared by hand")
    assert Audit.objects.filter(action="iteration.keep", user=user).exists()


def test_checked_and_faster_needs_no_further_sentence() -> None:
    made = make_iteration(make_tuning())
    measure(made, -0.1)
    Iteration.objects.update(numerics=Numerics.WITHIN)
    assert keep(made, despite="not needed").despite == ""


@pytest.mark.parametrize(
    ("effect", "numerics", "others", "said"),
    [
        (-0.1, Numerics.NOT_CHECKED, (), "answers that are not checked"),
        (-0.1, Numerics.DIVERGED, (), "answers that are diverged"),
        (0.1, Numerics.WITHIN, (), "Iteration 1 is slower"),
        (0.0, Numerics.WITHIN, (), "Iteration 1 is no change"),
        (-0.1, Numerics.WITHIN, ("faster", "slower"), "makes decode b3"),
    ],
)
def test_keeping_what_is_not_verified_needs_a_sentence(
    effect: float, numerics: Numerics, others: tuple[str, ...], said: str
) -> None:
    made = make_iteration(make_tuning())
    measure(made, effect, others=others)
    Iteration.objects.update(numerics=numerics)
    with pytest.raises(TuningError, match=said):
        keep(made, despite=" ")
    assert fresh(made).state == IterationState.MEASURING
    assert keep(made, despite="it unblocks the next step").state == "kept"


def test_an_unmeasured_one_is_kept_only_with_commit_and_sentence() -> None:
    tuning = make_tuning()
    made = make_iteration(tuning)
    decision = Decision(keep=True, reason="needed", despite="no device was free")
    with pytest.raises(TuningError, match="names no commit"):
        decide_iteration(made.pk, decision, None)
    bare = Decision(keep=True, reason="needed", commit="main")
    with pytest.raises(TuningError, match="was not measured in pairs"):
        decide_iteration(made.pk, bare, None)
    full = Decision(keep=True, reason="needed", despite="no device was free", commit="main")
    row = decide_iteration(made.pk, full, None)
    assert (row.effect, row.commit) == (None, resolve(tuning.repository, "main"))
    unknown = make_iteration(tuning, "another")
    with pytest.raises(UserError, match="is no commit"):
        decide_iteration(
            unknown.pk, Decision(keep=True, reason="r", despite="d", commit="nowhere"), None
        )


@pytest.mark.parametrize("keeps", [True, False])
def test_no_decision_without_a_reason(*, keeps: bool) -> None:
    made = make_iteration(make_tuning())
    measure(made, -0.1)
    with pytest.raises(TuningError, match="needs its reason"):
        decide_iteration(made.pk, Decision(keep=keeps, reason=" \n", despite="x"), None)


def test_it_reverts_an_idea_and_a_measured_one() -> None:
    tuning = make_tuning()
    idea, tried = make_iteration(tuning, "idea"), make_iteration(tuning, "tried")
    measure(tried, 0.1)
    assert revert(idea).verdict == ""
    row = revert(tried, "slower")
    assert (row.state, row.verdict, row.reason, row.despite) == ("reverted", "slower", "slower", "")


def test_a_decision_stays() -> None:
    made = make_iteration(make_tuning())
    measure(made, -0.1)
    kept = keep(made)
    for step in (
        lambda: keep(made),
        lambda: revert(made),
        lambda: measure_iteration(made.pk, "main", None),
        lambda: attach_comparison(made.pk, kept.comparison_id or 0, None),
    ):
        with pytest.raises(TuningError, match="Iteration 1 was kept already"):
            step()


def test_pairs_measured_later_do_not_change_the_ladder() -> None:
    made = make_iteration(make_tuning())
    comparison = measure(made, -0.1)
    row = keep(made)
    for _ in range(10):
        make_pair(comparison.workloads.get(), 1e6, 2e6)
    assert fresh(made).effect == row.effect


def test_what_was_held_against_an_older_commit_is_measured_again() -> None:
    tuning = make_tuning()
    first, second = make_iteration(tuning, "first"), make_iteration(tuning, "second")
    measure(first, -0.1)
    measure(second, -0.2)
    kept = keep(first)
    with pytest.raises(TuningError, match=r"iteration 1 \(.*\) was kept since"):
        keep(second)
    measure_iteration(second.pk, "main", None)
    assert fresh(second).baseline == kept.commit
    assert fresh(second).stands_on_id == kept.pk


def test_reverting_needs_no_new_measurement() -> None:
    tuning = make_tuning()
    first, second = make_iteration(tuning, "first"), make_iteration(tuning, "second")
    measure(first, -0.1)
    measure(second, 0.2)
    keep(first)
    assert revert(second, "slower anyway").state == IterationState.REVERTED


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "odd"},
        {"state": "kept", "reason": "r"},
        {"state": "reverted"},
        {"state": "measuring", "comparison": None},
        {"numerics": "odd"},
        {"hypothesis": ""},
        {"reason": "undecided has none"},
    ],
)
def test_the_database_refuses_what_cannot_be(changes: dict[str, object]) -> None:
    made = make_iteration(make_tuning())
    with pytest.raises(IntegrityError), transaction.atomic():
        Iteration.objects.filter(pk=made.pk).update(**changes)


def test_the_database_wants_the_sentence_too() -> None:
    made = make_iteration(make_tuning())
    measure(made, -0.1)
    keep(made)
    with pytest.raises(IntegrityError), transaction.atomic():
        Iteration.objects.update(despite="")


def test_its_comparison_stays_with_it() -> None:
    made = make_iteration(make_tuning())
    comparison: Comparison = measure(made, -0.1)
    assert list(comparison.iterations.all()) == [made]
    assert not Run.objects.filter(compared__comparison=comparison).exists()
    run = queue_session(comparison.workloads.get(), comparison.created_at)
    assert run.compared is not None
