"""Panel: the flame graph, drawn by the viewer in a frame of its own."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from django.conf import settings
from django.urls import reverse

from dashboard.assets import SPEEDSCOPE
from dashboard.models import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class FlamePanel:
    """Where the profile lies and what the frame opens; both are ours, never foreign text."""

    profile: str
    viewer: str
    size_bytes: int


def flame_panel(trace: Trace) -> FlamePanel | None:
    """The flame graph of a trace that was read; `None` before."""
    if trace.flame is None:
        return None
    profile = reverse("trace-flame", args=[trace.pk])
    # The viewer's own files carry hashes in their names and must stay beside its page, so the
    # page is opened under its plain name. Number and time of the reading make a new reading new.
    read_at = int(trace.ended_at.timestamp()) if trace.ended_at else 0
    viewer = (
        f"{settings.STATIC_URL}{SPEEDSCOPE}?r={trace.pk}-{read_at}"
        f"#profileURL={quote(profile, safe='')}&view=left-heavy"
    )
    return FlamePanel(profile=profile, viewer=viewer, size_bytes=trace.flame.size_bytes)
