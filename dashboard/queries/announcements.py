"""Reads behind the pages of announcements: the list, subscriptions, webhooks and their log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Count, Max, Q, QuerySet

from dashboard.models import (
    Announcement,
    Delivery,
    DeliveryState,
    DeliveryTry,
    Endpoint,
    Receipt,
    Subscription,
    User,
)
from dashboard.services.clock import db_now

PAGE_SIZE = 50
SHOWN_DELIVERIES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnouncementRow:
    """One announcement as a person sees it; `unread` only of what they wanted to hear."""

    announcement: Announcement
    unread: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnouncementPage:
    """One page of the list, the newest first."""

    rows: tuple[AnnouncementRow, ...]
    total: int
    page: int
    pages: int
    unread: int
    newest_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRow:
    """One delivery with the last that was heard of it."""

    delivery: Delivery
    text: str
    at: datetime
    earlier: tuple[DeliveryTry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointRow:
    """One webhook with how its deliveries went."""

    endpoint: Endpoint
    sent: int
    waiting: int
    gave_up: int
    last_sent_at: datetime | None


def unread_count(user: User) -> int:
    """How many announcements wait to be read."""
    return Receipt.objects.filter(user=user, read_at__isnull=True).count()


def _listed(user: User, *, every: bool, kind: str, model: str) -> QuerySet[Announcement]:
    rows = Announcement.objects.select_related("model", "change__platform")
    if not every:
        rows = rows.filter(receipts__user=user)
    if kind:
        rows = rows.filter(kind=kind)
    return rows.filter(model__name=model) if model else rows


def announcement_page(
    user: User, *, every: bool = False, kind: str = "", model: str = "", page: int = 1
) -> AnnouncementPage:
    """What `user` was told, or everything; a page past the end is the last one."""
    found = _listed(user, every=every, kind=kind, model=model)
    total = found.count()
    pages = max(1, -(-total // PAGE_SIZE))
    page = min(page, pages)
    rows = list(found[(page - 1) * PAGE_SIZE : page * PAGE_SIZE])
    unread = set(
        Receipt.objects.filter(
            user=user, read_at__isnull=True, announcement__in=[row.pk for row in rows]
        ).values_list("announcement_id", flat=True)
    )
    newest = Announcement.objects.aggregate(newest=Max("pk"))["newest"]
    return AnnouncementPage(
        rows=tuple(AnnouncementRow(announcement=row, unread=row.pk in unread) for row in rows),
        total=total,
        page=page,
        pages=pages,
        unread=unread_count(user),
        newest_id=newest or 0,
    )


def get_announcement(announcement_id: int) -> Announcement | None:
    """The announcement with its change, or None."""
    related = ("model", "change__platform", "change__after_commit__repository")
    return Announcement.objects.select_related(*related).filter(pk=announcement_id).first()


def deliveries_of(announcement: Announcement) -> tuple[DeliveryRow, ...]:
    """Where it went; addresses of people stay theirs, so mails are named by the account."""
    rows = announcement.deliveries.select_related("user", "endpoint")
    return _rows(rows.prefetch_related("log").order_by("id")[:SHOWN_DELIVERIES])


def subscriptions_of(user: User) -> tuple[Subscription, ...]:
    """What a person wants to hear about, every model first."""
    rows = Subscription.objects.filter(user=user).select_related("model")
    return tuple(sorted(rows, key=lambda row: row.model.name if row.model else ""))


def endpoint_rows() -> tuple[EndpointRow, ...]:
    """Every webhook by name, in a fixed number of queries."""

    def counted(state: DeliveryState) -> Count:
        return Count("deliveries", filter=Q(deliveries__state=state))

    rows = Endpoint.objects.select_related("model").annotate(
        sent=counted(DeliveryState.SENT),
        waiting=counted(DeliveryState.WAITING),
        gave_up=counted(DeliveryState.GAVE_UP),
        last_sent_at=Max("deliveries__ended_at", filter=Q(deliveries__state=DeliveryState.SENT)),
    )
    return tuple(
        EndpointRow(
            endpoint=row,
            sent=row.sent,
            waiting=row.waiting,
            gave_up=row.gave_up,
            last_sent_at=row.last_sent_at,
        )
        for row in rows
    )


def get_endpoint(endpoint_id: int) -> Endpoint | None:
    """The webhook, or None."""
    related = ("model", "created_by")
    return Endpoint.objects.select_related(*related).filter(pk=endpoint_id).first()


def endpoint_log(row: Endpoint) -> tuple[DeliveryRow, ...]:
    """The last deliveries to a webhook, the newest first."""
    rows = row.deliveries.select_related("announcement").prefetch_related("log")
    return _rows(rows[:SHOWN_DELIVERIES])


def _rows(deliveries: Sequence[Delivery] | QuerySet[Delivery]) -> tuple[DeliveryRow, ...]:
    found = []
    for row in deliveries:
        log = list(row.log.all())
        text, at = (log[-1].text, log[-1].at) if log else ("not tried yet", row.created_at)
        found.append(DeliveryRow(delivery=row, text=text, at=at, earlier=tuple(log[-2::-1])))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class MailState:
    """Whether e-mails leave, and how many wait or were given up lately."""

    on: bool
    server: str
    links: bool
    waiting: int
    gave_up: int


def mail_state() -> MailState:
    """For the page that says why no mail comes."""
    since = db_now().replace(hour=0, minute=0, second=0, microsecond=0)
    mails = Delivery.objects.filter(user__isnull=False).aggregate(
        waiting=Count("id", filter=Q(state=DeliveryState.WAITING)),
        gave_up=Count("id", filter=Q(state=DeliveryState.GAVE_UP, ended_at__gte=since)),
    )
    return MailState(
        on=settings.EMAIL_ON,
        server=settings.EMAIL_HOST,
        links=bool(settings.BASE_URL),
        waiting=mails["waiting"],
        gave_up=mails["gave_up"],
    )
