"""Reads behind the pages about people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from dashboard.models import Audit, SignInLink, User
from dashboard.services.clock import db_now

AUDIT_ROWS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRow:
    """One person of the list."""

    id: int
    name: str
    role: str
    active: bool
    has_password: bool
    last_sign_in: datetime | None
    created_at: datetime
    open_link_until: datetime | None


def users() -> tuple[UserRow, ...]:
    """Everybody, by name; who may still sign in first."""
    links = dict(_open_links().values_list("user_id", "expires_at"))
    rows = User.objects.order_by("-is_active", "username")
    return tuple(_row(user, links.get(user.pk)) for user in rows)


def user_row(user_id: int) -> UserRow | None:
    """One person, or None."""
    user = User.objects.filter(pk=user_id).first()
    if user is None:
        return None
    link = _open_links().filter(user=user).first()
    return _row(user, link.expires_at if link else None)


def deeds(name: str) -> QuerySet[Audit]:
    """The latest audit rows about a person: what they did, and what was done to them."""
    theirs = Audit.objects.filter(actor=name) | Audit.objects.filter(subject=f"user {name}")
    return theirs.order_by("-id")[:AUDIT_ROWS]


def _open_links() -> QuerySet[SignInLink]:
    return SignInLink.objects.filter(used_at__isnull=True, expires_at__gt=db_now())


def _row(user: User, link_until: datetime | None) -> UserRow:
    return UserRow(
        id=user.pk,
        name=user.username,
        role=user.role,
        active=user.is_active,
        has_password=user.has_usable_password(),
        last_sign_in=user.last_login,
        created_at=user.date_joined,
        open_link_until=link_until,
    )
