"""Panel: the flame graphs of a trace, our own and the profile viewer in a frame of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

from django.conf import settings
from django.urls import reverse

from dashboard.assets import SPEEDSCOPE
from dashboard.forms.flame import VIEWS
from dashboard.models import Trace
from dashboard.panels.table import Column, Table
from dashboard.queries.reports import read_graph
from profiler.analysis.flame_document import CATEGORIES, FlameGraph, View
from profiler.analysis.report import QualityReport

TABLE_FRAMES = 1_000
"""Frames in the table and its CSV; the graph's data has all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlamePanel:
    """Where the profile lies and what the frame opens; both are ours, never foreign text."""

    profile: str
    viewer: str
    in_time: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One view that can be asked for."""

    kind: str
    title: str
    current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPanel:
    """Our own flame graph: `data` is empty in readings of before. `unattributed` is a share of
    device time, None without any."""

    data: str
    page: str
    choices: tuple[Choice, ...]
    unattributed: float | None
    unattributed_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameRow:
    """One frame with its stack, for readers without the picture."""

    name: str
    inside: str
    category: str
    calls: int
    self_ns: int
    total_ns: int
    share: float


def flame_panel(trace: Trace) -> FlamePanel | None:
    """The profile of a trace that was read; `None` before."""
    if trace.flame is None:
        return None
    profile = reverse("trace-flame", args=[trace.pk])
    # The viewer's own files carry hashes in their names and must stay beside its page, so the
    # page is opened under its plain name. Number and time of the reading make a new reading new.
    read_at = int(trace.ended_at.timestamp()) if trace.ended_at else 0
    opened = (
        f"{settings.STATIC_URL}{SPEEDSCOPE}?r={trace.pk}-{read_at}"
        f"#profileURL={quote(profile, safe='')}&view="
    )
    return FlamePanel(
        profile=profile,
        viewer=f"{opened}left-heavy",
        in_time=f"{opened}time-ordered",
        size_bytes=trace.flame.size_bytes,
    )


def graph_panel(trace: Trace, quality: QualityReport | None, wanted: str = "") -> GraphPanel:
    """The graph with the view asked for; the views that a trace lacks are said by the script."""
    whole = quality.attributed_device_ns + quality.unattributed_device_ns if quality else 0
    left = quality.unattributed_device_ns if quality else 0
    return GraphPanel(
        data=reverse("trace-graph-data", args=[trace.pk]) if trace.graph_id else "",
        page=reverse("trace-graph", args=[trace.pk]),
        choices=tuple(
            Choice(kind=kind, title=title, current=kind == (wanted or _first(whole)))
            for kind, title in VIEWS.items()
        ),
        unattributed=left / whole if whole else None,
        unattributed_ns=left,
    )


def _first(device_ns: int) -> str:
    return "device" if device_ns else "host"


def shown_view(graph: FlameGraph, wanted: str) -> View | None:
    """The view asked for, else the first the trace has; None where it lacks the one asked for."""
    if wanted:
        return graph.view(wanted)
    return graph.views[0] if graph.views else None


@lru_cache(maxsize=8)
def frame_rows(sha256: str, kind: str) -> tuple[FrameRow, ...]:
    """The frames with the most time of their own; raises `UserError` when the graph is gone."""
    graph = read_graph(sha256)
    view = graph.view(kind)
    if view is None:
        return ()
    total = view.totals()
    order = sorted(range(len(total)), key=lambda at: (-view.self_ns[at], -total[at], at))
    return tuple(
        FrameRow(
            name=graph.names[view.name[at]],
            inside=_inside(graph, view, at),
            category=CATEGORIES[view.category[at]],
            calls=view.calls[at],
            self_ns=view.self_ns[at],
            total_ns=total[at],
            share=view.self_ns[at] / view.total_ns,
        )
        for at in order[:TABLE_FRAMES]
    )


def _inside(graph: FlameGraph, view: View, at: int) -> str:
    """The stack above a frame, outermost first."""
    path = []
    while (at := view.parent[at]) >= 0:
        path.append(graph.names[view.name[at]])
    return " › ".join(reversed(path))


def frame_table(rows: tuple[FrameRow, ...], frames: int) -> Table[FrameRow]:
    """The frames as a table; `frames` is how many the view holds."""
    columns: tuple[Column[FrameRow], ...] = (
        Column(key="frame", title="Frame", value=lambda row: row.name, kind="mono"),
        Column(key="inside", title="Inside", value=lambda row: row.inside, kind="mono", chars=48),
        Column(key="kind", title="Kind", value=lambda row: row.category, kind="text"),
        Column(key="calls", title="Calls", value=lambda row: row.calls, kind="count"),
        Column(key="self", title="Self", value=lambda row: row.self_ns),
        Column(key="share", title="Share", value=lambda row: row.share, kind="share"),
        Column(key="total", title="Total", value=lambda row: row.total_ns),
    )
    about = "Calls with the same stack are one frame. Shares are self time of the whole view."
    if frames > len(rows):
        about += f" The {len(rows):,} with the most self time of {frames:,} frames."
    return Table(
        name="frames",
        noun="frames",
        about=about,
        rows=rows,
        columns=columns,
        sort="-self",
        search="frame",
    )
