"""Verbs on changes: measure again, acknowledge, mark as fixed, and what a keeper does by itself."""

from __future__ import annotations

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from dashboard.models import (
    Change,
    ChangeDirection,
    ChangeState,
    Commit,
    ComparedState,
    ComparedWorkload,
    Comparison,
    User,
)
from dashboard.services import audit
from dashboard.services.announcements import announce
from dashboard.services.change_culprit import culprit_of
from dashboard.services.change_scan import scan_due, scan_series, want_scan
from dashboard.services.clock import db_now
from dashboard.services.comparisons import NewComparison, create_comparison
from dashboard.services.pairs import settings_of, verdict_of
from profiler.analysis.changepoints import SMALLEST
from profiler.analysis.decide import is_sure
from profiler.analysis.verdict import improves
from profiler.errors import UserError, printable
from profiler.metrics import METRICS
from profiler.types import RunSpec

__all__ = [
    "ChangeError",
    "acknowledge_change",
    "confirm_by_policy",
    "confirm_change",
    "mark_fixed",
    "scan_due",
    "scan_series",
    "settle_confirmations",
    "tend_changes",
    "want_scan",
]

BATCH = 10
NOT_SURE = "Not sure enough to announce what nobody asked about: measure it again."
UNDECIDED = (ChangeState.NEW, ChangeState.REJECTED)
STANDING = (ChangeState.CONFIRMED, ChangeState.ACKNOWLEDGED)


class ChangeError(UserError):
    """Something a change cannot be, or not any more."""

    kind = "change"


def confirm_change(change_id: int, user: User | None) -> Change:
    """Have the two neighbouring commits measured in pairs; the verdict decides.

    Raises `ChangeError` for a change that is being measured or is decided, and
    `UserError` for a workload that pairs cannot measure.
    """
    with transaction.atomic():
        change = _locked(change_id, UNDECIDED, "measured again")
        if change.after_run is None:
            raise ChangeError(
                f"The run behind change {change_id} was deleted", "compare the two commits by hand"
            )
        comparison = create_comparison(
            NewComparison(
                repository=change.repository,
                baseline=change.before_commit.sha,
                candidate=change.after_commit.sha,
                platform=change.platform,
                specs=(msgspec.convert(change.after_run.spec, RunSpec),),
                key=f"change-{change.pk}-{change.comparison_id or 0}",
            ),
            user,
        )
        change.comparison = comparison
        _enter(change, ChangeState.CONFIRMING, user, {"comparison": comparison.pk})
    return change


def acknowledge_change(change_id: int, user: User, reason: str) -> Change:
    """Say why a change is left as it is. Raises `ChangeError` without a reason or once it is over.

    A change that is being measured again goes on being measured first.
    """
    told = printable(reason.strip(), 1000)
    if not told:
        raise ChangeError("An acknowledged change needs a reason", "say why it may stay")
    with transaction.atomic():
        change = _locked(change_id, (ChangeState.NEW, *STANDING), "acknowledged")
        change.reason, change.acknowledged_by = told, user
        _enter(change, ChangeState.ACKNOWLEDGED, user, {})
    return change


def mark_fixed(
    change_id: int,
    *,
    commit: Commit | None = None,
    by: Change | None = None,
    user: User | None = None,
) -> Change:
    """A confirmed or acknowledged slow-down is gone: by a commit, or by another change of its own.

    Raises `ChangeError` for a change that is neither.
    """
    with transaction.atomic():
        change = _locked(change_id, STANDING, "fixed")
        change.fixed_by = by
        change.fixed_commit = commit or (by.after_commit if by else None)
        _enter(change, ChangeState.FIXED, user, {"by": by.pk if by else 0})
    return change


def tend_changes() -> int:
    """A keeper's turn: look through histories, start confirmations, take their verdicts."""
    return scan_due() + settle_confirmations() + confirm_by_policy()


def settle_confirmations(limit: int = BATCH) -> int:
    """Give the changes whose comparison has ended their state; how many it were."""
    waiting = Change.objects.filter(state=ChangeState.CONFIRMING).exclude(
        comparison__isnull=False, comparison__ended_at__isnull=True
    )
    ids = list(waiting.order_by("pk").values_list("pk", flat=True)[:limit])
    for change_id in ids:
        _settle(change_id)
    return len(ids)


@transaction.atomic
def _settle(change_id: int) -> None:
    found = _locked_rows().filter(pk=change_id, state=ChangeState.CONFIRMING).first()
    if found is None:
        return  # another keeper was faster
    compared = _settled_workload(found.comparison)
    if compared is None:
        _undecided(found, _why_not(found.comparison))
        return
    found.sentence, found.measured_effect = compared.sentence, compared.effect
    if compared.verdict == found.direction and not _is_sure(compared):
        _undecided(found, f"{compared.sentence} {NOT_SURE}")
    elif compared.verdict == found.direction:
        found.culprit, found.culprit_detail = culprit_of(compared)
        # First what it ends: a way back is told as that, and not once more as news of its own.
        _fix_earlier(found)
        _enter(found, ChangeState.CONFIRMED, None, {"verdict": compared.verdict})
    elif compared.verdict in {"no change", *ChangeDirection.values}:
        _enter(found, ChangeState.REJECTED, None, {"verdict": compared.verdict})
    else:
        _undecided(found, compared.sentence)


def _settled_workload(comparison: Comparison | None) -> ComparedWorkload | None:
    if comparison is None:
        return None
    return comparison.workloads.filter(state=ComparedState.SETTLED).first()


def _is_sure(compared: ComparedWorkload) -> bool:
    return is_sure(verdict_of(compared, compared.metric), settings_of(compared.comparison))


def _why_not(comparison: Comparison | None) -> str:
    if comparison is None:
        return "The comparison was deleted before it ended"
    return comparison.message or f"The comparison was {comparison.get_state_display().lower()}"


def _undecided(change: Change, sentence: str) -> None:
    """Back to new: a person may ask again, the policy does not."""
    change.sentence = sentence[:1000]
    _enter(change, ChangeState.NEW, None, {})


def _fix_earlier(change: Change) -> None:
    """A confirmed improvement that leads back to the old level ends the slow-downs before it."""
    if change.direction != ChangeDirection.FASTER:
        return
    slower = Change.objects.filter(
        repository=change.repository,
        workload=change.workload,
        platform=change.platform,
        metric=change.metric,
        comparable_hash=change.comparable_hash,
        direction=ChangeDirection.SLOWER,
        state__in=STANDING,
        after_commit__position__lt=change.after_commit.position,
    )
    for one in slower:
        if _is_back(one, change):
            mark_fixed(one.pk, by=change)


def _is_back(slower: Change, faster: Change) -> bool:
    """Whether the level after `faster` is that before `slower`, within the margin, or better."""
    left = faster.after_value / slower.before_value - 1
    return abs(left) <= SMALLEST or improves(left, METRICS[slower.metric].direction) is True


def confirm_by_policy() -> int:
    """Start the confirmation of what nobody asked about yet, one per platform at a time.

    Nothing where `CONFIRM_CHANGES` is off. A workload that pairs cannot
    measure says so and waits for a person.
    """
    if not settings.CONFIRM_CHANGES:
        return 0
    busy = set(
        Change.objects.filter(state=ChangeState.CONFIRMING).values_list("platform", flat=True)
    )
    count = 0
    waiting = Change.objects.filter(state=ChangeState.NEW, comparison=None, sentence="")
    for change in waiting.order_by("-pk")[: 10 * BATCH]:
        if change.platform_id in busy:
            continue
        try:
            confirm_change(change.pk, None)
        except UserError as error:
            Change.objects.filter(pk=change.pk, state=ChangeState.NEW).update(
                sentence=f"It cannot be measured in pairs: {error.line()}"[:1000]
            )
            continue
        busy.add(change.platform_id)
        count += 1
    return count


def _locked(change_id: int, allowed: tuple[ChangeState, ...], done: str) -> Change:
    change = _locked_rows().get(pk=change_id)
    if change.state not in allowed:
        raise ChangeError(
            f"Change {change_id} is {change.get_state_display().lower()}",
            f"it cannot be {done} now",
        )
    return change


def _locked_rows() -> QuerySet[Change]:
    related = (
        "repository", "platform", "before_commit", "after_commit", "after_run", "comparison"
    )  # fmt: skip
    return Change.objects.select_related(*related).select_for_update(of=("self",))


def _enter(
    change: Change, state: ChangeState, user: User | None, detail: dict[str, str | int]
) -> None:
    """Write the change in its new state and the deed; tell people what they want to know."""
    change.state, change.state_at = state, db_now()
    change.save()
    audit.note(user, f"change.{state}", f"change {change.pk}", detail)
    announce(change)
