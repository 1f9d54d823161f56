"""The dashboard app."""

from __future__ import annotations

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate


def _seed(using: str, **_: object) -> None:
    """After every migration; on the way back to an older schema there may be no table."""
    from dashboard.services.templates import ensure_shipped

    if using == "default" and "dashboard_run" in connections[using].introspection.table_names():
        ensure_shipped()


class DashboardConfig(AppConfig):
    name = "dashboard"
    label = "dashboard"

    def ready(self) -> None:
        from dashboard import checks  # noqa: F401 - registers the system checks

        post_migrate.connect(_seed, sender=self)
