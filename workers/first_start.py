"""What a fresh installation needs: somebody who can sign in, something to look at."""

from __future__ import annotations

from django.urls import reverse

from dashboard.models import Role, User
from dashboard.services import accounts, catalog, demo


def queue_demo() -> list[int]:
    """Queue the demo when there has never been a run; the ids of its runs."""
    return demo.queue_demo()


def known_platform() -> None:
    """The platform of this installation, so that the pages can name it before any run."""
    catalog.ensure_platform()


def admin_link() -> str:
    """The path of a fresh one-time link for the first admin, who is made when there is none."""
    admins = User.objects.filter(role=Role.ADMIN, is_active=True)
    admin = admins.order_by("pk").first() or accounts.create_user("admin", Role.ADMIN)
    return reverse("sign-in-link", args=[accounts.new_sign_in_link(admin)])
