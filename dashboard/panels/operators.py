"""Panel: the operators of a trace, sorted and filtered on the server."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.forms.traces import OperatorFilterForm
from dashboard.models import Trace
from dashboard.panels.asking import asked_at, question_address
from dashboard.panels.bounds import achieved, bounds_by_name, step_words
from dashboard.queries.notes import notes_of_operators
from dashboard.queries.operators import trends
from dashboard.queries.reports import read_report
from dashboard.queries.traces import (
    OPERATORS_SIZE,
    OperatorFilter,
    OperatorPage,
    OperatorRow,
    operator_page,
)
from profiler.analysis.bounds import BoundRow
from profiler.analysis.report import Report
from profiler.errors import UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorLine:
    """One operator as a line: what it takes, how near its roofline, how it did before, notes.

    `bound` is empty where the operator has no formula or the trace says too
    little; `why` then says which. `trend` is its self time over earlier runs.
    """

    row: OperatorRow
    achieved: str
    bound: str
    efficiency: float | None
    why: str
    trend: tuple[float, ...]
    notes: int
    question: str
    """Where it is answered what it would bring if this were faster; empty if nowhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorsPanel:
    """What the panel shows; the form carries the errors of a bad filter."""

    trace: Trace
    form: OperatorFilterForm
    wanted: OperatorFilter
    page: OperatorPage
    lines: tuple[OperatorLine, ...]
    steps: int
    about: str
    held: bool
    """Whether anything is held against a roofline."""
    asks: bool
    """Whether questions about this trace can be answered."""
    size: int = OPERATORS_SIZE

    @property
    def peaked(self) -> bool:
        """Whether a peak is known that any operator can be held against."""
        return any(line.efficiency is not None for line in self.lines)

    @property
    def trended(self) -> bool:
        """Whether any operator has earlier runs to compare with."""
        return any(len(line.trend) > 1 for line in self.lines)

    @property
    def noted(self) -> bool:
        """Whether anybody wrote about one of them."""
        return any(line.notes for line in self.lines)


def operators_panel(trace: Trace, form: OperatorFilterForm) -> OperatorsPanel:
    """The page of the operator table that the form asks for."""
    wanted = form.wanted()
    page = operator_page(trace, wanted)
    report = _report(trace)
    names = [row.canonical for row in page.rows]
    before = trends(trace, names)
    notes = notes_of_operators(names, trace.run.platform.slug if trace.run else "")
    counts = {name: len(found) for name, found in notes.items()}
    bounds = bounds_by_name(report) if report else {}
    reasons, place = _reasons(report), asked_at(trace)
    lines = tuple(
        _line(
            row,
            bounds.get(row.name),
            reasons.get(row.name, ""),
            trend=before.get(row.canonical, ()),
            notes=counts.get(row.canonical, 0),
            question=question_address(place, "operator", row.name),
        )
        for row in page.rows
    )
    return OperatorsPanel(
        trace=trace,
        form=form,
        wanted=wanted,
        page=page,
        lines=lines,
        steps=max(1, len(report.steps)) if report else 1,
        about=step_words(report) if report else "Calls and times are of the whole trace.",
        held=bool(bounds),
        asks=bool(place),
    )


def _report(trace: Trace) -> Report | None:
    """The report, if it is there: the table itself needs only rows."""
    try:
        return read_report(trace.report.sha256) if trace.report else None
    except UserError:
        return None


def _reasons(report: Report | None) -> dict[str, str]:
    if report is None or report.roofline is None:
        return {}
    return {row.name: row.reason for row in report.roofline.uncounted}


def _line(
    row: OperatorRow,
    bound: BoundRow | None,
    why: str,
    *,
    trend: tuple[float, ...],
    notes: int,
    question: str,
) -> OperatorLine:
    return OperatorLine(
        row=row,
        achieved=achieved(bound) if bound else "",
        bound=bound.bound if bound else "",
        efficiency=bound.efficiency if bound else None,
        why=why,
        trend=trend,
        notes=notes,
        question=question,
    )
