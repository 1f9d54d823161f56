"""Signs of life of long-running processes."""

from __future__ import annotations

from dashboard.models import Heartbeat
from dashboard.services.clock import db_now
from profiler import __version__


def beat(name: str, kind: str, *, platform: str = "", detail: str = "") -> None:
    """This process is alive; `kind` is worker, ingest or keeper."""
    now = db_now()
    fresh = {"kind": kind, "platform": platform, "version": __version__, "at": now}
    fresh["detail"] = detail[:200]
    Heartbeat.objects.update_or_create(
        name=name, defaults=fresh, create_defaults={**fresh, "started_at": now}
    )


def farewell(name: str) -> None:
    """This process ends on purpose; it is no longer expected."""
    Heartbeat.objects.filter(name=name).delete()
