"""Text inside charts: Plotly reads a subset of HTML in titles, legends and hover boxes."""

from __future__ import annotations

from profiler.errors import printable

LIMIT = 200


def plot_text(text: str) -> str:
    """Any text as Plotly shows it literally: `foo<4, float>` keeps its angle brackets."""
    shown = printable(text, LIMIT)
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
