"""The record of deeds: one append-only row in the transaction of the deed."""

from __future__ import annotations

from collections.abc import Mapping

from dashboard.models import Audit, User
from dashboard.services.clock import db_now


def note(
    user: User | None, action: str, subject: str, detail: Mapping[str, str | int] | None = None
) -> None:
    """Who did what to which object; never secrets."""
    Audit.objects.create(
        at=db_now(),
        user=user,
        actor=user.get_username() if user else "system",
        action=action,
        subject=subject[:200],
        detail=dict(detail or {}),
    )
