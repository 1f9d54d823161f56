"""Filters of the pages of tunings. Load with `{% load tuning %}`."""

from __future__ import annotations

from django import template

from profiler import units

register = template.Library()


@register.filter
def times(ratio: float | None) -> str:
    """A ratio as a factor: `1.25 ×`."""
    return units.MISSING if ratio is None else f"{units.significant(ratio)}\u00a0×"


@register.filter
def spaced(name: str) -> str:
    """`roofline_gap` as people read it: `roofline gap`."""
    return name.replace("_", " ")
