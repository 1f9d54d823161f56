"""Template filters and tags: numbers through `profiler.units`, foreign text made harmless.

Load with `{% load daybreak %}`. Nothing here marks foreign text as safe: markup
comes from templates and `format_html` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dashboard.panels.standing import times, tone_of
from profiler import units
from profiler.errors import printable

register = template.Library()

NAME_LIMIT = 200
Number = float | int | None

register.filter("duration", units.duration)
register.filter("size", units.size)
register.filter("count", units.count)
register.filter("share", units.share)
register.filter("change", units.change)
register.filter("rate", units.rate)
register.filter("quantity", units.quantity)
register.filter("times", times)
register.filter("tone", tone_of)

_CHIPS: dict[str, tuple[str, str]] = {
    "queued": ("", "wait"),
    "running": ("run", "run"),
    "succeeded": ("ok", "ok"),
    "failed": ("bad", "bad"),
    "timed_out": ("bad", "bad"),
    "lost": ("bad", "bad"),
    "expired": ("bad", "bad"),
    "cancelled": ("", "stop"),
    "pending": ("", "wait"),
    "ingesting": ("run", "run"),
    "ready": ("ok", "ok"),
    "rejected": ("bad", "bad"),
    "alive": ("ok", "ok"),
    "silent": ("bad", "bad"),
    "waiting": ("", "wait"),
    "fetching": ("run", "run"),
    "resolving": ("", "wait"),
    "measuring": ("run", "run"),
    "sent": ("ok", "ok"),
    "gave_up": ("bad", "bad"),
    "skipped": ("", "stop"),
    "ended": ("ok", "ok"),
    "faster": ("better", "ok"),
    "slower": ("worse", "bad"),
}
"""State -> colour class and icon of its chip."""


@register.filter
def foreign(text: object, limit: int = NAME_LIMIT) -> str:
    """Foreign text on one line, control and direction characters escaped, cut at 200."""
    return printable(str(text), limit)


@register.filter
def short(text: object, limit: int = 60) -> str:
    """A long foreign name cut in the middle; put the whole one in the title by `foreign`."""
    return units.middle(foreign(text, 2000), limit)


@register.filter
def exact(value: Number, unit: str = "") -> str:
    """The value with all its digits and its unit, for a title: `7,620,123 ns`."""
    if value is None:
        return units.MISSING
    shown = f"{int(value):,}" if float(value).is_integer() else f"{value:,}"
    suffix = "" if unit in {"count", "ratio"} else unit
    return f"{shown} {suffix}".rstrip()


@register.filter
def of_step(value: Number, steps: int) -> Number:
    """A sum over a trace as that of one of its steps."""
    return value if value is None or steps < 2 else value / steps


@register.filter
def seconds(value: Number) -> str:
    """A duration given in seconds."""
    return units.duration(None if value is None else value * 1e9)


@register.filter
def age(moment: datetime | None) -> str:
    """How long ago, in one unit: `12 s`, `3 min`, `5 h`, `9 d`; `0 s` for the future."""
    if moment is None:
        return units.MISSING
    passed = max(0, int((timezone.now() - moment).total_seconds()))
    for length, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if passed >= 2 * length:
            return f"{passed // length} {unit}"
    return f"{passed} s"


@register.simple_tag
def when(moment: datetime | None) -> SafeString | str:
    """`3 min ago` in a time element that carries the exact moment in UTC."""
    if moment is None:
        return units.MISSING
    exact_moment = f"{moment:%Y-%m-%d %H:%M:%S} UTC"
    return format_html(
        '<time datetime="{}" title="{}">{} ago</time>',
        moment.isoformat(),
        exact_moment,
        age(moment),
    )


@register.simple_tag
def at(moment: datetime | None) -> SafeString | str:
    """`2026-01-31 14:05 UTC` in a time element."""
    if moment is None:
        return units.MISSING
    return format_html(
        '<time datetime="{}">{}</time>', moment.isoformat(), f"{moment:%Y-%m-%d %H:%M} UTC"
    )


@register.inclusion_tag("dashboard/_chip.html")
def chip(state: str, text: str = "") -> dict[str, str]:
    """A state as a word with an icon; `text` replaces the word."""
    colour, icon = _CHIPS.get(state, ("", ""))
    words = text or state.replace("_", " ")
    return {"colour": colour, "icon": icon, "text": words[:1].upper() + words[1:]}


def _query(context: template.Context, **changes: object) -> str:
    """The address's parameters with changes; None takes one out. `?` alone for none."""
    query = context["request"].GET.copy()
    for name, value in changes.items():
        if value is None:
            query.pop(name, None)
        else:
            query[name] = str(value)
    return f"?{query.urlencode()}"


@register.simple_tag(takes_context=True)
def query_without(context: template.Context, *names: str) -> str:
    """The parameters of the address without some of them: `?q=a`, or `?` alone."""
    return _query(context, **dict.fromkeys(names))


@register.simple_tag(takes_context=True)
def query_with(context: template.Context, name: str, value: object) -> str:
    """The parameters of the address with one of them changed, its name a variable."""
    return _query(context, **{name: value})


@register.inclusion_tag("dashboard/_sorted_th.html", takes_context=True)
def sorted_th(
    context: template.Context,
    key: str,
    title: str,
    current: str,
    kind: str = "",
    *,
    sort: str = "sort",
    page: str = "page",
) -> dict[str, object]:
    """A heading that sorts on the server: `current` is the sort in force, `-key` descending.

    `kind` is "num" for numbers, which sort descending first. The link keeps
    every other part of the address but the page; `sort` and `page` name the
    parameters where a page holds several tables.
    """
    first, second = (f"-{key}", key) if kind == "num" else (key, f"-{key}")
    direction = {key: "ascending", f"-{key}": "descending"}.get(current, "")
    return {
        "href": _query(context, **{sort: second if current == first else first, page: None}),
        "title": title,
        "kind": kind,
        "direction": direction,
    }


@register.inclusion_tag("dashboard/_pager.html", takes_context=True)
def pager(
    context: template.Context,
    page: int,
    pages: int,
    total: int,
    size: int,
    noun: str,
    *,
    parameter: str = "page",
) -> dict[str, object]:
    """`51–100 of 1,234 runs` with links to the neighbouring pages, the address kept."""

    def link(number: int | None, *, there: bool = True) -> str:
        return _query(context, **{parameter: number}) if there else ""

    return {
        "first": min(total, (page - 1) * size + 1),
        "last": min(total, page * size),
        "total": total,
        "noun": noun,
        "head": link(None, there=page > 1),
        "previous": link(page - 1, there=page > 1),
        "next": link(page + 1, there=page < pages),
        "final": link(pages, there=page < pages - 1),
        "many": pages > 1,
    }


@register.simple_tag
def share_bar(part: Number) -> SafeString | str:
    """A small bar for a share between 0 and 1; the number itself stands beside it."""
    if part is None:
        return ""
    width = f"{min(1.0, max(0.0, part)) * 100:.2f}"
    return format_html(
        '<svg class="share" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        '<rect width="{}" height="6"/></svg>',
        width,
    )


@register.simple_tag
def sparkline(values: Sequence[float], label: str) -> SafeString | str:
    """The run of values, oldest first, as a line without axes; `label` says what it shows."""
    if len(values) < 2:
        return ""
    points = _points(values)
    return format_html(
        '<svg class="spark" viewBox="0 0 72 20" preserveAspectRatio="none" role="img" '
        'aria-label="{}"><polyline points="{}"/><path class="last" d="M{}h0"/></svg>',
        label,
        " ".join(points),
        points[-1].replace(",", " "),
    )


def _points(values: Sequence[float]) -> list[str]:
    """Values spread over 72 x 20 with the highest on top; a flat series runs in the middle."""
    low, high = min(values), max(values)
    span = high - low
    step = 68 / (len(values) - 1)
    heights = [10.0 if span == 0 else 17 - 14 * (value - low) / span for value in values]
    return [f"{2 + step * place:.1f},{height:.1f}" for place, height in enumerate(heights)]
