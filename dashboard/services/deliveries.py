"""Deliveries of announcements: a sender's claim, what it sends, and what came of it.

A row is written once; it is sent at least once: a sender that dies after
sending and before noting it leaves a row that another one sends again. The
text, the signature and the id are the same then, so that a receiver can tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
from django.conf import settings
from django.db import transaction

from dashboard.models import Announcement, Delivery, DeliveryState, DeliveryTry, Endpoint, User
from dashboard.services import signatures
from dashboard.services.clock import db_now
from dashboard.services.endpoints import secret_of
from profiler.errors import printable

LEASE = timedelta(minutes=2)
"""How long one try may take before another sender makes the next."""

PAUSES_S = (30, 120, 600, 1800, 3600, 3 * 3600, 6 * 3600)
"""Between one try and the next; after the last one it is given up."""

TRIES = len(PAUSES_S) + 1
AGENT = "Daybreak"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """One e-mail."""

    to: str
    subject: str
    text: str
    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """One signed HTTP call."""

    url: str
    private_network: bool
    body: bytes
    headers: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A delivery that is ours to try once, now."""

    delivery_id: int
    fence: int
    tries: int
    what: Mail | Post


def claim_delivery() -> Claimed | None:
    """The delivery that waits longest; None when none is due. Those that cannot go are ended."""
    while True:
        now = db_now()
        row = _due(now)
        if row is None:
            return None
        taken = Delivery.objects.filter(
            pk=row.pk, state=DeliveryState.WAITING, fence=row.fence
        ).update(fence=row.fence + 1, tries=row.tries + 1, not_before=now + LEASE)
        if not taken:
            continue  # another sender was faster
        why = _why_not(row)
        if why:
            _end(row.pk, row.fence + 1, DeliveryState.GAVE_UP, why)
            continue
        what = _post(row, row.endpoint) if row.endpoint else _mail(row, row.user)
        return Claimed(delivery_id=row.pk, fence=row.fence + 1, tries=row.tries + 1, what=what)


def _due(now: datetime) -> Delivery | None:
    rows = Delivery.objects.filter(state=DeliveryState.WAITING, not_before__lte=now)
    if not settings.EMAIL_ON:
        rows = rows.filter(endpoint__isnull=False)
    return rows.select_related("announcement", "user", "endpoint").order_by("not_before").first()


def _why_not(row: Delivery) -> str:
    if row.tries >= TRIES:
        return "given up: the last try was never heard of again"
    if row.endpoint is not None:
        return "" if row.endpoint.enabled else "not sent: the webhook is switched off"
    user = row.user
    return "" if user and user.is_active and user.email else "not sent: no address any more"


def delivered(claimed: Claimed, text: str) -> None:
    """It arrived; a result that comes after another sender took over changes nothing."""
    _end(claimed.delivery_id, claimed.fence, DeliveryState.SENT, text)


@transaction.atomic
def failed(claimed: Claimed, text: str) -> None:
    """It did not arrive: try again later, or give up after the last try."""
    if claimed.tries >= TRIES:
        _end(claimed.delivery_id, claimed.fence, DeliveryState.GAVE_UP, text)
        return
    pause = timedelta(seconds=PAUSES_S[claimed.tries - 1] / settings.TIME_SCALE)
    mine = Delivery.objects.filter(
        pk=claimed.delivery_id, fence=claimed.fence, state=DeliveryState.WAITING
    )
    if mine.update(not_before=db_now() + pause):
        _log(claimed.delivery_id, text, worked=False)


@transaction.atomic
def _end(delivery_id: int, fence: int, state: DeliveryState, text: str) -> None:
    mine = Delivery.objects.filter(pk=delivery_id, fence=fence, state=DeliveryState.WAITING)
    if mine.update(state=state, ended_at=db_now()):
        _log(delivery_id, text, worked=state == DeliveryState.SENT)


def _log(delivery_id: int, text: str, *, worked: bool) -> None:
    DeliveryTry.objects.create(
        delivery_id=delivery_id, at=db_now(), worked=worked, text=printable(text, 300)
    )


def address_of(made: Announcement) -> str:
    """Where the change is read about; empty where `BASE_URL` does not say who we are."""
    return f"{settings.BASE_URL}/announcements/{made.pk}/" if settings.BASE_URL else ""


def _mail(row: Delivery, user: User | None) -> Mail:
    made = row.announcement
    assert made is not None and user is not None  # by a constraint, and mails are no tests
    link = address_of(made)
    why = "You get this because you subscribed to such changes in Daybreak."
    parts = [made.sentence, *([link] if link else []), why]
    return Mail(
        to=user.email,
        subject=printable(f"[Daybreak] {made.title}", 200),
        text="\n\n".join(parts) + "\n",
        message_id=f"<daybreak-{row.pk}@{_host()}>",
    )


def _host() -> str:
    return settings.BASE_URL.partition("://")[2].partition("/")[0].partition(":")[0] or "localhost"


def _post(row: Delivery, endpoint: Endpoint) -> Post:
    body = body_of(row.announcement)
    headers = (
        ("Content-Type", "application/json"),
        ("User-Agent", AGENT),
        ("X-Daybreak-Event", "announcement" if row.announcement else "test"),
        ("X-Daybreak-Delivery", str(row.pk)),
        ("X-Daybreak-Signature-256", signatures.signature(secret_of(endpoint), body)),
    )
    return Post(
        url=endpoint.url, private_network=endpoint.private_network, body=body, headers=headers
    )


def body_of(made: Announcement | None) -> bytes:
    """The JSON that is sent, the same at every try; a test without an announcement says so."""
    if made is None:
        return msgspec.json.encode({"event": "test", "text": "A test of this webhook by Daybreak"})
    told = {
        "event": "announcement",
        "id": made.pk,
        "made_at": made.made_at.isoformat(),
        "title": made.title,
        "text": made.sentence,
        "severity": made.severity,
        "url": address_of(made) or None,
        **made.facts,
    }
    return msgspec.json.encode(told)
