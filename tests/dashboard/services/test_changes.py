"""What becomes of a change: measured again, confirmed or rejected, acknowledged, fixed."""

from __future__ import annotations

import pytest
from pytest_django.fixtures import Settings

from dashboard.models import (
    Announcement,
    Audit,
    Change,
    ChangeDirection,
    ChangeState,
    ComparedState,
    Comparison,
    ComparisonState,
    Repository,
    Run,
)
from dashboard.services import changes
from dashboard.services.announcements import announce
from dashboard.services.clock import db_now
from dashboard.services.pairs import verdict_of, write_verdict
from profiler.errors import UserError
from tests.factories import make_spec, make_user
from tests.histories import make_change, make_history, measured
from tests.profiler.analysis.layered import Layered
from tests.sources import make_commit, make_explained, make_pair

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _store(store_root: object) -> None:
    """Differences of profiled launches are files."""


def confirming(before: Run | None = None, after: Run | None = None, **fields: object) -> Change:
    """A change whose two commits are being measured in pairs."""
    return changes.confirm_change(make_change(before, after, **fields).pk, make_user())


def measure(change: Change, effect: float, *, pairs: int = 10, explain: bool = False) -> None:
    """The comparison of a change ends with that effect."""
    assert change.comparison is not None
    compared = change.comparison.workloads.get()
    for number in range(pairs):
        make_pair(compared, 1e6 + 100 * number, (1e6 + 150 * number) * (1 + effect))
    write_verdict(compared, verdict_of(compared, compared.metric))
    change.comparison.workloads.update(state=ComparedState.SETTLED)
    if explain:
        make_explained(change.comparison, Layered(operators=("aten::linear>aten::addmm",)))
    end(change, ComparisonState.ENDED)


def end(change: Change, state: str, message: str = "") -> None:
    assert change.comparison_id is not None
    Comparison.objects.filter(pk=change.comparison_id).update(
        state=state, ended_at=db_now(), message=message
    )
    assert changes.settle_confirmations() == 1
    change.refresh_from_db()


def test_it_has_the_two_commits_measured_in_pairs() -> None:
    change = confirming()
    made = Comparison.objects.get()
    assert (change.state, change.comparison) == ("confirming", made)
    shas = (change.before_commit.sha, change.after_commit.sha)
    assert (made.baseline_ref, made.candidate_ref) == shas
    assert made.workloads.get().workload == change.workload
    assert (made.platform, made.repository) == (change.platform, change.repository)
    deed = Audit.objects.get(action="change.confirming")
    assert deed.detail == {"comparison": made.pk}


def test_a_second_wish_makes_no_second_comparison() -> None:
    change = confirming()
    with pytest.raises(changes.ChangeError, match=f"Change {change.pk} is confirming"):
        changes.confirm_change(change.pk, make_user())
    assert Comparison.objects.count() == 1


def test_it_waits_for_the_end_of_the_pairs() -> None:
    change = confirming()
    assert changes.settle_confirmations() == 0
    change.refresh_from_db()
    assert change.state == "confirming"


def test_pairs_that_agree_confirm_it_and_name_the_operator() -> None:
    change = confirming()
    measure(change, 0.12, explain=True)
    assert change.state == "confirmed"
    assert change.measured_effect == pytest.approx(0.12, abs=0.01)
    assert "slower" in change.sentence
    assert change.culprit.startswith("model.layers.*.mlp: ") and "appeared" in change.culprit
    assert change.culprit_detail.startswith("+")


@pytest.mark.parametrize("effect", [0.0, -0.12])
def test_pairs_that_do_not_agree_reject_it(effect: float) -> None:
    change = confirming()
    measure(change, effect)
    assert (change.state, change.culprit) == ("rejected", "")
    assert change.sentence


@pytest.mark.parametrize(("second", "state"), [(0.105, "confirmed"), (-0.02, "new")])
def test_it_is_announced_only_when_sure(second: float, state: str) -> None:
    change = confirming()
    assert change.comparison is not None
    compared = change.comparison.workloads.get()
    # Signed ranks of ten pairs: one against, the second smallest, gives p = 6/1024, enough for
    # a verdict (0.008) but not for an announcement (0.004).
    for effect in (0.01, second, *(0.1 + 0.001 * number for number in range(8))):
        make_pair(compared, 1e6, 1e6 * (1 + effect))
    write_verdict(compared, verdict_of(compared, compared.metric))
    change.comparison.workloads.update(state=ComparedState.SETTLED)
    end(change, ComparisonState.ENDED)
    compared.refresh_from_db()
    assert (compared.verdict, change.state) == ("slower", state)
    assert (changes.NOT_SURE in change.sentence) == (state == "new")


def test_pairs_that_settle_nothing_leave_it_new() -> None:
    change = confirming()
    measure(change, 0.12, pairs=4)
    assert change.state == "new" and "inconclusive" in change.sentence.lower()
    again = changes.confirm_change(change.pk, None)
    assert again.state == "confirming" and Comparison.objects.count() == 2


def test_a_comparison_that_fails_leaves_it_new_with_the_reason() -> None:
    change = confirming()
    end(change, ComparisonState.FAILED, "the build broke")
    assert (change.state, change.sentence) == ("new", "the build broke")


def test_a_cancelled_comparison_leaves_it_new() -> None:
    change = confirming()
    end(change, ComparisonState.CANCELLED)
    assert (change.state, change.sentence) == ("new", "The comparison was cancelled")


def test_a_change_whose_runs_are_gone_cannot_be_measured() -> None:
    change = make_change(after_run=None)
    with pytest.raises(changes.ChangeError, match="was deleted"):
        changes.confirm_change(change.pk, None)


def test_acknowledging_needs_a_reason() -> None:
    user = make_user()
    change = make_change(state=ChangeState.CONFIRMED)
    with pytest.raises(changes.ChangeError, match="needs a reason"):
        changes.acknowledge_change(change.pk, user, "  ")
    changes.acknowledge_change(change.pk, user, "price of a fix")
    change.refresh_from_db()
    assert (change.state, change.reason) == ("acknowledged", "price of a fix")
    assert change.acknowledged_by == user


@pytest.mark.parametrize("state", ["confirming", "rejected", "fixed"])
def test_only_what_stands_can_be_acknowledged(state: str) -> None:
    change = make_change(state=state)
    with pytest.raises(changes.ChangeError, match=f"is {state}"):
        changes.acknowledge_change(change.pk, make_user(), "why")


@pytest.mark.parametrize("state", ["new", "confirming", "rejected", "fixed"])
def test_only_what_stands_can_be_fixed(state: str) -> None:
    change = make_change(state=state)
    with pytest.raises(changes.ChangeError, match=f"is {state}"):
        changes.mark_fixed(change.pk)


@pytest.mark.parametrize(("level", "state"), [(1.01e6, "fixed"), (1.06e6, "acknowledged")])
def test_an_improvement_back_to_the_old_level_ends_it(level: float, state: str) -> None:
    """Back within the margin of 2 %."""
    runs = make_history([1e6, 1.1e6, 1.1e6, level])
    slower = make_change(runs[0], runs[1], state=ChangeState.ACKNOWLEDGED, reason="later")
    faster = confirming(
        before=runs[2],
        after=runs[3],
        direction=ChangeDirection.FASTER,
        before_value=1.1e6,
        after_value=level,
        effect=level / 1.1e6 - 1,
    )
    measure(faster, -0.09)
    slower.refresh_from_db()
    assert (faster.state, slower.state) == ("confirmed", state)
    if state == "fixed":
        assert (slower.fixed_by, slower.fixed_commit) == (faster, runs[3].commit)


def slow_and_told(before: Run, after: Run) -> Change:
    """A confirmed slow-down by a tenth that was announced."""
    change = make_change(before, after, state=ChangeState.CONFIRMED)
    announce(change)
    return change


def way_back(before: Run, after: Run, level: float) -> Change:
    """An improvement from the level of the slow-down that pairs confirm."""
    change = confirming(
        before=before,
        after=after,
        direction=ChangeDirection.FASTER,
        before_value=1.1e6,
        after_value=level,
        effect=level / 1.1e6 - 1,
    )
    measure(change, level / 1.1e6 - 1)
    return change


@pytest.mark.parametrize(
    ("level", "told"),
    [
        (1.0e6, ["slower", "fixed"]),
        (0.99e6, ["slower", "fixed"]),
        (0.9e6, ["slower", "fixed", "faster"]),
        (1.05e6, ["slower", "faster"]),
    ],
)
def test_a_way_back_is_told_as_that_alone(level: float, told: list[str]) -> None:
    """Unless it leads beyond the level before."""
    runs = make_history([1e6, 1.1e6, 1.1e6, level])
    slow_and_told(runs[0], runs[1])
    assert way_back(runs[2], runs[3], level).state == "confirmed"
    assert list(Announcement.objects.order_by("pk").values_list("kind", flat=True)) == told


@pytest.mark.parametrize(("mended_at", "kinds"), [(3, 2), (2, 3)])
def test_a_way_back_that_a_tuning_told_is_no_news(mended_at: int, kinds: int) -> None:
    """An improvement after the commit that mended it is something else."""
    runs = make_history([1e6, 1.1e6, 1.1e6, 1e6])
    slower = slow_and_told(runs[0], runs[1])
    changes.mark_fixed(slower.pk, commit=runs[mended_at].commit)
    assert way_back(runs[2], runs[3], 1e6).state == "confirmed"
    assert Announcement.objects.count() == kinds


def test_a_way_back_from_what_nobody_was_told_of_is_news() -> None:
    runs = make_history([1e6, 1.1e6, 1.1e6, 1e6])
    make_change(runs[0], runs[1], state=ChangeState.ACKNOWLEDGED, reason="later")
    way_back(runs[2], runs[3], 1e6)
    assert Announcement.objects.get().kind == "faster"


def test_the_policy_measures_one_change_per_platform_at_a_time(settings: Settings) -> None:
    settings.CONFIRM_CHANGES = True
    runs = make_history([1e6, 1.1e6, 1.2e6])
    make_change(runs[0], runs[1])
    newer = make_change(runs[1], runs[2])
    assert (changes.confirm_by_policy(), changes.confirm_by_policy()) == (1, 0)
    assert Change.objects.get(state=ChangeState.CONFIRMING) == newer


def test_the_policy_does_not_ask_twice(settings: Settings) -> None:
    settings.CONFIRM_CHANGES = True
    make_change(sentence="inconclusive after 40 pairs")
    assert changes.confirm_by_policy() == 0


def test_the_policy_can_be_off(settings: Settings) -> None:
    settings.CONFIRM_CHANGES = False
    make_change()
    assert changes.confirm_by_policy() == 0
    assert not Comparison.objects.exists()


def test_the_policy_says_what_pairs_cannot_measure(settings: Settings) -> None:
    settings.CONFIRM_CHANGES = True
    repository_run = make_history([1e6])[0]
    spec = make_spec(scenario="training", ranks=2, device="cpu", parallel="data")
    other = measured(make_commit(Repository.objects.get()), 1.1e6, spec=spec)
    change = make_change(repository_run, other)
    assert changes.confirm_by_policy() == 0
    change.refresh_from_db()
    assert change.state == "new" and "one device" in change.sentence
    with pytest.raises(UserError, match="ranks"):
        changes.confirm_change(change.pk, None)


def test_a_keepers_turn_does_all_of_it(settings: Settings) -> None:
    settings.CONFIRM_CHANGES = True
    make_change()
    assert changes.tend_changes() == 1
    assert changes.tend_changes() == 0
