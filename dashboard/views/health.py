"""Whether this web process can serve, and what else is up; for probes, so without a sign-in."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard import assets
from dashboard.queries.status import KINDS, Process, heartbeats
from dashboard.services.clock import db_now
from profiler import __version__

NAMES = {"keeper": "keeper", "worker": "workers", "ingest": "ingest"}
"""Kind of process -> its key in the answer."""


@never_cache
@login_not_required
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 while the database answers, else 503; tells no names, paths or addresses."""
    try:
        now = db_now()
        processes = heartbeats(now)
    except DatabaseError:
        body = {"status": "unavailable", "version": __version__, "database": {"up": False}}
        return JsonResponse(body, status=503)
    parts = {NAMES[kind]: _part(kind, processes, now) for kind in KINDS}
    body = {
        "status": "ok" if all(part["up"] for part in parts.values()) else "degraded",
        "version": __version__,
        "database": {"up": True, "kind": connection.vendor},
        **parts,
        "assets": {"viewer": assets.speedscope_present()},
    }
    return JsonResponse(body)


def _part(kind: str, processes: Sequence[Process], now: datetime) -> dict[str, object]:
    """How many of a kind are alive, and the age of the newest sign of life in seconds."""
    theirs = [process for process in processes if process.kind == kind]
    ages = [max(0.0, (now - process.at).total_seconds()) for process in theirs]
    alive = sum(process.alive for process in theirs)
    return {"up": alive > 0, "alive": alive, "age_s": round(min(ages), 1) if ages else None}
