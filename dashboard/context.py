"""What every page knows: the links on top, the version and what the reader may do."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse

from profiler import __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link of the navigation; `current` is "page" on it, "true" on a page below it."""

    title: str
    url: str
    keys: str
    current: str


_TOP: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("Overview", "overview", ("overview", "model-"), "g o"),
    ("Runs", "run-list", ("run-", "template-", "group-", "trace-"), "g r"),
    (
        "Compare",
        "comparison-list",
        ("comparison-", "repository-", "change-", "bisect-"),
        "g c",
    ),
    ("Tuning", "tuning-list", ("tuning-", "iteration-"), "g u"),
    (
        "Status",
        "status",
        (
            "status",
            "platform-",
            "automation",
            "schedule",
            "announcement",
            "subscription",
            "endpoint",
            "retention",
        ),
        "g s",
    ),
)
"""Title, view name, what the view names below it start with, keys."""


def site(request: HttpRequest) -> dict[str, object]:
    """Template context shared by all pages; reads no row, so that error pages can use it."""
    match = request.resolver_match
    name = match.url_name if match and match.url_name else ""
    return {"top_links": _links(name), "version": __version__}


def _links(name: str) -> tuple[Link, ...]:
    return tuple(
        Link(title=title, url=reverse(view), keys=keys, current=_current(name, view, below))
        for title, view, below, keys in _TOP
    )


def _current(name: str, view: str, below: tuple[str, ...]) -> str:
    if name == view:
        return "page"
    return "true" if name.startswith(below) else ""
