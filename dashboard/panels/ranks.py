"""Panel: the ranks of one job side by side, with the one the others wait for."""

from __future__ import annotations

from django.urls import reverse

from dashboard.panels.table import Column, Table
from dashboard.queries.trace_sets import RanksView, RankView
from profiler import units


def ranks_table(view: RanksView) -> Table[RankView]:
    """One row per rank; what a rank without device work or collectives has is not known."""
    columns: tuple[Column[RankView], ...] = (
        Column(
            key="rank",
            title="Rank",
            value=lambda row: row.number,
            kind="count",
            link=lambda row: reverse("trace-detail", args=[row.trace.pk]),
        ),
        Column(key="note", title="Note", value=_note, kind="text", always=True),
        Column(key="busy_share", title="Busy", value=lambda row: row.busy_share, kind="share"),
        Column(key="busy", title="Busy time", value=lambda row: row.busy_ns),
        Column(key="comm", title="Communication", value=lambda row: row.comm_ns),
        Column(key="exposed", title="Exposed communication", value=lambda row: row.exposed_comm_ns),
        Column(
            key="waited",
            title="Waited for others",
            value=lambda row: row.compared.waited_ns if row.compared else None,
        ),
        Column(
            key="late",
            title="Made others wait",
            value=lambda row: row.compared.late_ns if row.compared else None,
        ),
        Column(key="slowest", title="Slowest collective", value=_slowest, kind="text"),
        Column(
            key="shift",
            title="Clock shift",
            value=lambda row: row.compared.clock_shift_ns if row.compared else None,
        ),
        Column(key="span", title="Span", value=lambda row: row.span_ns),
        Column(key="file", title="File", value=lambda row: row.trace.name, kind="mono"),
    )
    about = (
        "Waiting is the part of each collective before its last rank arrived; the rank that "
        "arrived last made the others wait, on average by as much. Clock shifts are against the "
        "first rank, from the ends of collectives, and are taken out before times are compared. "
        "A rank without a device is busy while its host computes or communicates in a step."
    )
    return Table(
        name="ranks",
        noun="ranks",
        about=about,
        rows=view.rows,
        columns=columns,
        sort="rank",
        size=64,
    )


def _note(row: RankView) -> str:
    if row.problem:
        return row.problem
    if row.trace.state != "ready":
        return row.trace.reason or str(row.trace.get_state_display()).lower()
    if row.kernels_missing:
        return "kernels missing"
    return "straggler" if row.straggles else ""


def _slowest(row: RankView) -> str | None:
    if row.slowest is None:
        return None
    name = row.slowest.name.replace("_", " ")
    return f"{name}, {units.duration(row.slowest.total_ns)}"
