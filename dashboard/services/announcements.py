"""Announcements: who is told of a change, decided once when it is confirmed or fixed.

Everything that will be sent is written as rows in the transaction of the
change itself; a keeper sends it (`announcement_deliveries`).
"""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Q

from dashboard.models import (
    Announcement,
    AnnouncementKind,
    Change,
    ChangeDirection,
    ChangeState,
    Delivery,
    Endpoint,
    Model,
    Receipt,
    Subscription,
    User,
)
from dashboard.services import audit
from dashboard.services.clock import db_now
from profiler import units
from profiler.analysis.changepoints import SMALLEST
from profiler.analysis.verdict import improves
from profiler.errors import UserError, printable
from profiler.metrics import METRICS

SEVERITIES = (0.0, 0.05, 0.1, 0.2)
"""Smallest changes one can subscribe to, as shares."""


class SubscriptionError(UserError):
    """A subscription that cannot be."""

    kind = "subscription"


def announce(change: Change) -> Announcement | None:
    """Tell of a change that was just confirmed or fixed; None where there is nothing to tell.

    Call it in the transaction that changes its state. The same change in the
    same state again is the same announcement.
    """
    kind = _kind(change)
    if kind is None:
        return None
    with transaction.atomic():
        made, fresh = Announcement.objects.get_or_create(
            change=change,
            kind=kind,
            defaults={
                "model": change.workload.model,
                "severity": abs(change.shown_effect),
                "title": _title(change, kind),
                "sentence": _sentence(change, kind),
                "facts": _facts(change, kind),
                "made_at": db_now(),
            },
        )
        if fresh:
            _address(made)
    return made


def _kind(change: Change) -> AnnouncementKind | None:
    if change.state == ChangeState.FIXED:
        # Nobody was told of one that was acknowledged before it was ever confirmed.
        told = Announcement.objects.filter(change=change).exists()
        return AnnouncementKind.FIXED if told else None
    if change.state == ChangeState.CONFIRMED and not _is_told_way_back(change):
        return AnnouncementKind(change.direction)
    return None


def _is_told_way_back(change: Change) -> bool:
    """Whether a change only leads back from a slow-down whose end was told already.

    That was ended by this change, or by a tuning at one of its commits. What
    leads beyond the level before the slow-down is news.
    """
    if change.direction != ChangeDirection.FASTER:
        return False
    between = Q(
        change__fixed_commit__position__gt=change.before_commit.position,
        change__fixed_commit__position__lte=change.after_commit.position,
    )
    ended = Announcement.objects.filter(
        Q(change__fixed_by=change) | between,
        kind=AnnouncementKind.FIXED,
        change__repository=change.repository,
        change__workload=change.workload,
        change__platform=change.platform,
        change__metric=change.metric,
        change__comparable_hash=change.comparable_hash,
    )
    levels = ended.values_list("change__before_value", flat=True)
    return any(not _leads_beyond(change, level) for level in levels)


def _leads_beyond(change: Change, level: float) -> bool:
    """Whether `change` ends better than `level` by more than what matters."""
    gain = change.after_value / level - 1
    better = improves(gain, METRICS[change.metric].direction) is True
    return better and abs(gain) > SMALLEST


def _title(change: Change, kind: AnnouncementKind) -> str:
    """`llama-tiny decode on cpu: 10.2 % slower since 1a2b3c4d5e`."""
    workload = change.workload
    what = f"{printable(workload.model.name, 64)} {workload.scenario} on {change.platform.slug}"
    share = units.share(abs(change.shown_effect))
    if kind == AnnouncementKind.FIXED:
        return f"{what}: {share} {change.direction} is fixed"
    return f"{what}: {share} {kind} since {change.after_commit.sha[:10]}"


def _sentence(change: Change, kind: AnnouncementKind) -> str:
    """The commit, the operator and the values, in words."""
    definition = METRICS[change.metric]
    before = units.quantity(change.before_value, definition.unit)
    after = units.quantity(change.after_value, definition.unit)
    subject = printable(change.after_commit.subject, 200)
    parts = [f"{definition.title} went from {before} to {after} with “{subject}”"]
    if change.culprit:
        parts.append(f"most of it in {printable(change.culprit, 200)}")
    if kind == AnnouncementKind.FIXED and change.fixed_commit is not None:
        commit = change.fixed_commit
        parts.append(f"fixed by {commit.sha[:10]} “{printable(commit.subject, 200)}”")
    return printable(f"{'; '.join(parts)}. {change.sentence}".strip(), 1000)


def _facts(change: Change, kind: AnnouncementKind) -> dict[str, str | float | int | None]:
    """What a webhook tells beside the words; field names are a contract."""
    workload, fixed = change.workload, change.fixed_commit
    return {
        "change": change.pk,
        "kind": str(kind),
        "model": workload.model.name,
        "scenario": workload.scenario,
        "workload": workload.label,
        "workload_hash": workload.hash,
        "platform": change.platform.slug,
        "repository": change.repository.slug,
        "metric": change.metric,
        "unit": METRICS[change.metric].unit,
        "before": change.before_value,
        "after": change.after_value,
        "effect": change.shown_effect,
        "baseline_commit": change.before_commit.sha,
        "candidate_commit": change.after_commit.sha,
        "fixed_commit": fixed.sha if fixed else None,
        "operator": change.culprit or None,
        "comparison": change.comparison_id,
    }


def _address(made: Announcement) -> None:
    """A receipt per person who wants it, a delivery per address."""
    now = db_now()
    listeners = _listeners(made)
    Receipt.objects.bulk_create(
        Receipt(announcement=made, user_id=listener.user_id) for listener in listeners
    )
    mails = [one for one in listeners if one.email and settings.EMAIL_ON]
    endpoints = [row for row in Endpoint.objects.filter(enabled=True) if wants(row, made)]
    Delivery.objects.bulk_create(
        [
            *(
                Delivery(announcement=made, user_id=one.user_id, not_before=now, created_at=now)
                for one in mails
            ),
            *(
                Delivery(announcement=made, endpoint=row, not_before=now, created_at=now)
                for row in endpoints
            ),
        ]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listener:
    """A person who is told, and whether by e-mail too."""

    user_id: int
    email: bool


def _listeners(made: Announcement) -> list[_Listener]:
    """Whoever subscribed to nothing hears of everything in the product, by e-mail of nothing."""
    wanted: dict[int, list[Subscription]] = {}
    for row in Subscription.objects.filter(user__is_active=True):
        wanted.setdefault(row.user_id, []).append(row)
    people = User.objects.filter(is_active=True).order_by("pk").values_list("pk", "email")
    found = []
    for user_id, address in people:
        rows = wanted.get(user_id)
        hits = [row for row in rows or () if wants(row, made)]
        if rows is None or hits:
            email = bool(address) and any(row.email for row in hits)
            found.append(_Listener(user_id=user_id, email=email))
    return found


def wants(row: Subscription | Endpoint, made: Announcement) -> bool:
    """Whether an announcement is of that model, large enough, and no unwanted improvement."""
    improvement = made.kind in {AnnouncementKind.FASTER, AnnouncementKind.FIXED}
    return (
        row.model_id in {None, made.model_id}
        and made.severity >= row.least
        and (row.improvements or not improvement)
    )


def mark_read(user: User, up_to: int | None = None) -> int:
    """Everything up to that announcement is read, everything there is without it; how many were."""
    unread = Receipt.objects.filter(user=user, read_at__isnull=True)
    newest = up_to or Announcement.objects.aggregate(newest=Max("pk"))["newest"]
    return unread.filter(announcement_id__lte=newest or 0).update(read_at=db_now())


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What somebody wants to hear about; no model is every model."""

    model: Model | None
    least: float
    improvements: bool
    email: bool = False


def subscribe(user: User, wish: Wish) -> Subscription:
    """Add what `user` wants to hear about; the same model again changes it."""
    if wish.least not in SEVERITIES:
        raise SubscriptionError(f"{wish.least} is no severity", "choose one of the list")
    if wish.email and not user.email:
        raise SubscriptionError("There is no e-mail address to send to", "enter yours first")
    values = {"least": wish.least, "improvements": wish.improvements, "email": wish.email}
    with transaction.atomic():
        row, _ = Subscription.objects.update_or_create(
            user=user,
            model=wish.model,
            defaults=values,
            create_defaults={**values, "created_at": db_now()},
        )
        audit.note(user, "subscription.set", str(wish.model or "every model"))
    return row


def unsubscribe(subscription_id: int, user: User) -> bool:
    """Take one's own subscription away; False when it is not there, or somebody else's."""
    with transaction.atomic():
        gone, _ = Subscription.objects.filter(pk=subscription_id, user=user).delete()
        if gone:
            audit.note(user, "subscription.end", f"subscription {subscription_id}")
    return bool(gone)


def set_address(user: User, address: str) -> None:
    """Where mails to `user` go; without an address their subscriptions send none."""
    with transaction.atomic():
        User.objects.filter(pk=user.pk).update(email=address)
        if not address:
            Subscription.objects.filter(user=user, email=True).update(email=False)
        audit.note(user, "user.email", f"user {user.username}", {"set": int(bool(address))})
    user.email = address
