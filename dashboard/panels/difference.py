"""The operators of two profiled launches side by side: time, change, calls, share, certainty."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

from django.urls import reverse

from dashboard.panels.table import Column, Table
from profiler.analysis.changes import OperatorChange, OperatorSide
from profiler.analysis.diff import Diff
from profiler.units import change

Traces = tuple[int | None, int | None]
"""Numbers of the baseline's and of the candidate's trace."""

NAME_LIMIT = 200


def operator_table(found: Diff, traces: Traces = (None, None)) -> Table[OperatorChange]:
    """Rows in the order of the comparison: the largest change of an ordinary step first.

    Times lead to the operator in the trace of their side, where `traces` says its number.
    """
    device = found.measure == "device"

    def time(side: OperatorSide | None) -> int | None:
        return None if side is None else side.device_ns if device else side.host_ns

    def share(row: OperatorChange) -> float | None:
        taken = time(row.candidate)
        whole = found.candidate.total_ns
        return None if taken is None or not whole else taken / whole

    return Table(
        name="operators",
        noun="operators",
        about=f"{found.measure.capitalize()} time per step of both recordings, the largest "
        "change of an ordinary step (the median of the steps) first; the other times are "
        "means. Sure means beyond the noise of the steps, after "
        f"correction for {found.tested} tests.",
        rows=found.rows,
        columns=_columns(time, share, traces),
        search="operator",
    )


def _columns(
    time: Callable[[OperatorSide | None], int | None],
    share: Callable[[OperatorChange], float | None],
    traces: Traces,
) -> tuple[Column[OperatorChange], ...]:
    return (
        Column(key="operator", title="Operator", kind="mono", value=lambda row: row.operator),
        Column(key="usual", title="Ordinary step", value=lambda row: row.usual_change_ns),
        Column(key="change", title="Change", value=lambda row: row.change_ns),
        Column(
            key="relative", title="Relative", kind="text", value=lambda row: _relative(row, time)
        ),
        Column(
            key="baseline",
            title="Baseline",
            value=lambda row: time(row.baseline),
            link=lambda row: _in_trace(traces[0], row.baseline),
        ),
        Column(
            key="candidate",
            title="Candidate",
            value=lambda row: time(row.candidate),
            link=lambda row: _in_trace(traces[1], row.candidate),
        ),
        Column(key="share", title="Share", kind="share", value=share),
        Column(
            key="baseline_calls",
            title="Calls before",
            kind="count",
            value=lambda row: row.baseline.calls if row.baseline else None,
        ),
        Column(
            key="candidate_calls",
            title="Calls after",
            kind="count",
            value=lambda row: row.candidate.calls if row.candidate else None,
        ),
        Column(key="how", title="What became of it", kind="text", value=_fate, always=True),
        Column(
            key="sure",
            title="Sure",
            kind="text",
            value=lambda row: "yes" if row.significant else "",
            always=True,
        ),
        Column(key="module", title="Module", kind="mono", value=lambda row: row.module),
        Column(key="shapes", title="Shapes", kind="mono", value=lambda row: row.shapes, chars=40),
    )


def _in_trace(trace_id: int | None, side: OperatorSide | None) -> str:
    """The operator in the table of its trace; empty without one."""
    if trace_id is None or side is None or not side.names:
        return ""
    query = urlencode({"op": side.names[0][:NAME_LIMIT]})
    return f"{reverse('trace-operators', args=[trace_id])}?{query}"


def _relative(row: OperatorChange, time: Callable[[OperatorSide | None], int | None]) -> str:
    """The change of its own time; none from nothing."""
    before, after = time(row.baseline), time(row.candidate)
    return change(after / before - 1) if before and after is not None else ""


def _fate(row: OperatorChange) -> str:
    if row.baseline is None:
        return "new"
    if row.candidate is None:
        return "vanished"
    return str(row.how)
