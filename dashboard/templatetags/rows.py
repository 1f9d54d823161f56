"""The cells of a row as HTML: a table has hundreds, and the template language is slow at them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from django import template
from django.utils.safestring import SafeString, mark_safe

from dashboard.panels import asking
from dashboard.panels.table import Cell
from dashboard.templatetags.daybreak import share_bar
from profiler.units import MISSING

register = template.Library()


@register.simple_tag
def table_cells(row: Sequence[Cell]) -> SafeString:
    """The first cell heads its row; every text of a cell is escaped here."""
    head, *others = row
    cells = [_head(head), *map(_cell, others)]
    # What is put together below is markup of ours around escaped text.
    return mark_safe("".join(cells))


def _head(cell: Cell) -> str:
    style = {"mono": ' class="mono"', "text": ""}.get(cell.kind, ' class="num"')
    return f'<th scope="row"{style} title="{escape(cell.title)}">{_linked(cell)}</th>'


def _cell(cell: Cell) -> str:
    if cell.kind == "ask":
        return f"<td>{asked(cell.href)}</td>"
    shown = escape(cell.shown)
    if cell.kind == "text":
        inside = f'<span class="chip worse">{shown}</span>' if shown == "straggler" else shown
        return f"<td>{inside}</td>"
    title = escape(cell.title)
    if cell.kind == "mono":
        return f'<td class="mono" title="{title}">{shown}</td>'
    inside = shown + share_bar(cell.part) if cell.kind == "share" else _linked(cell)
    return f'<td class="num" title="{title}">{inside}</td>'


@register.simple_tag
def asked(href: str) -> SafeString:
    """The link to a question; without an address it is said why there is none."""
    if not href:
        return mark_safe(f'<span title="{asking.TOO_LONG}">{MISSING}</span>')
    about, shown = asking.ABOUT, asking.SHOWN
    return mark_safe(f'<a href="{escape(href)}" data-asks title="{about}">{shown}</a>')


def _linked(cell: Cell) -> str:
    shown = escape(cell.shown) or MISSING
    return f'<a href="{escape(cell.href)}">{shown}</a>' if cell.href else shown
