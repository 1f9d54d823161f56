"""Operators that only one of two recordings has, all of them, with the time they take."""

from __future__ import annotations

from dashboard.panels.table import Column, Table
from profiler.analysis.changes import OperatorChange, measured_ns
from profiler.analysis.diff import Diff
from profiler.units import duration


def unmatched(found: Diff) -> tuple[OperatorChange, ...]:
    """The rows whose operator the other side has not at all."""
    return tuple(row for row in found.rows if row.how in {"vanished", "appeared"})


def unmatched_table(found: Diff) -> Table[OperatorChange]:
    """The largest first; their sums are the unmatched time of each side."""
    base, cand = found.baseline.unmatched_ns, found.candidate.unmatched_ns

    def time(row: OperatorChange) -> int:
        return measured_ns(row.baseline or row.candidate, found.measure)

    return Table(
        name="unmatched",
        noun="unmatched operators",
        about=f"All that one side alone has: {duration(base)} of the baseline's step and "
        f"{duration(cand)} of the candidate's.",
        rows=sorted(unmatched(found), key=time, reverse=True),
        columns=(
            Column(key="operator", title="Operator", kind="mono", value=lambda row: row.operator),
            Column(
                key="side",
                title="Only in the",
                kind="text",
                value=lambda row: "baseline" if row.baseline else "candidate",
                always=True,
            ),
            Column(key="time", title="Time", value=time),
            Column(
                key="calls",
                title="Calls",
                kind="count",
                value=lambda row: (row.baseline or row.candidate).calls,  # type: ignore[union-attr]
            ),
            Column(key="module", title="Module", kind="mono", value=lambda row: row.module),
            Column(
                key="shapes", title="Shapes", kind="mono", value=lambda row: row.shapes, chars=40
            ),
        ),
        search="operator",
    )
