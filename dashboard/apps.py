"""The dashboard app."""

from __future__ import annotations

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    name = "dashboard"
    label = "dashboard"

    def ready(self) -> None:
        from dashboard import checks  # noqa: F401 - registers the system checks
