"""The WSGI entry point."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
application = get_wsgi_application()


def _ready() -> None:
    """Load addresses and the template engine now: the first reader of a process need not wait."""
    from django.template import engines
    from django.urls import get_resolver

    assert get_resolver().url_patterns
    assert engines.all()


_ready()
