"""Addresses of questions: what would a step gain if one row of a table were faster?"""

from __future__ import annotations

from urllib.parse import urlencode

from django.urls import reverse

from dashboard.models import Trace
from profiler.analysis.questions import NAME_CHARS, Subject

FIELDS = {"change": "if_change", "subject": "if_subject", "name": "if_name", "times": "if_times"}
"""Fields of the form; the address of a page is shared by all its parts."""

SHOWN = "if 2×"
ABOUT = "What a step would gain if this were twice as fast"
TOO_LONG = "its name is too long to ask about"


def asked_at(trace: Trace) -> str:
    """Where questions about `trace` are answered; empty where none can be asked."""
    return "" if trace.replay_id is None else reverse("trace-what-if", args=[trace.pk])


def question_address(place: str, subject: Subject, name: str) -> str:
    """The question under `place`; empty where there is no place or the name is too long for one."""
    if not place or len(name) > NAME_CHARS:
        return ""
    asked = {"subject": subject, "name": name, "change": "faster", "times": "2"}
    return f"{place}?{urlencode({FIELDS[key]: value for key, value in asked.items()})}"
