"""What could be won, ranked: the findings of a trace as sentences with a price."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from dashboard.models import NoteKind, Trace
from dashboard.panels.bounds import canonical_names, operator_address
from dashboard.queries.notes import NoteView, notes_of_operators, query_of
from dashboard.queries.tuning_next import finding_query
from dashboard.services.notes import NoteTarget
from profiler.analysis.bounds import Pricing
from profiler.analysis.replay.recording import NOTICED
from profiler.analysis.report import FindingRow, Report

SHOWN = 8
_OF_IDLE = {"host_wait", "input_wait", "sync_point", "launch_bound", "graph_break", "imbalance"}
"""Kinds whose time is seen best where the device waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingLine:
    """One finding; `gain_ns` is None where nothing could be priced, `width` is of the best.

    `operator` is where its subject has a page, `flame` where the flame graph
    shows it, `rows` where the operator table does; all empty for other
    subjects. `note_query` says what a note on it would be about. `tune` is where
    an iteration begins that acts on it; empty for uploads, which no run can be held against.
    """

    title: str
    subject: str
    gain_ns: int | None
    share: float | None
    width: float
    confidence: str
    calls: int | None
    modules: tuple[str, ...]
    advice: str
    operator: str
    flame: str
    rows: str
    note_query: str
    tune: str
    notes: tuple[NoteView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """Which step was priced: as timed without a profiler, else as recorded.

    `timed_ns`, `record_ns` (what recording one operator cost) and `cold_share` (of the code between
    records) are None where nothing was taken out: the step is then the recorded one.
    """

    step_ns: int
    recorded_ns: int
    timed_ns: int | None
    record_ns: float | None
    cold_share: float | None

    @property
    def unexplained(self) -> bool:
        """Whether the step that was priced is still noticeably longer than the timed one."""
        return bool(self.timed_ns) and self.step_ns > NOTICED * (self.timed_ns or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingsPanel:
    """The ranked findings; `more` of them are left to the report."""

    lines: tuple[FindingLine, ...]
    more: int
    joint_ns: int | None
    """What the first three bring together per step, where several were priced."""
    basis: Basis | None = None

    @property
    def winnable_ns(self) -> int | None:
        """What the first findings bring together, or the only one that has a price."""
        return self.joint_ns or (self.best.gain_ns if self.best else None)

    @property
    def winnable_share(self) -> float | None:
        """The same as a share of the step that was priced."""
        if self.basis is None or not self.basis.step_ns or self.winnable_ns is None:
            return None
        return self.winnable_ns / self.basis.step_ns

    @property
    def best(self) -> FindingLine | None:
        """The largest item that has a price."""
        return next((line for line in self.lines if line.gain_ns), None)


def findings_panel(report: Report, trace: Trace) -> FindingsPanel:
    """The first findings as the engine ranked them, with what is known of their subjects."""
    shown = report.findings[:SHOWN]
    most = max((row.recoverable_ns_per_step or 0 for row in shown), default=0)
    names = canonical_names(report)
    platform = trace.run.platform.slug if trace.run else ""
    subjects = [names.get(row.subject, row.subject) for row in shown]
    notes = notes_of_operators(subjects, platform)
    priced = sum(bool(row.recoverable_ns_per_step) for row in shown)
    joint = report.pricing.joint_top_ns if report.pricing and priced > 1 else None
    return FindingsPanel(
        lines=tuple(
            _line(row, most, Subject(row, report, trace, names), notes.get(subject, ()))
            for row, subject in zip(shown, subjects, strict=True)
        ),
        more=len(report.findings) - len(shown),
        joint_ns=joint,
        basis=_basis(report.pricing) if report.pricing else None,
    )


def _basis(pricing: Pricing) -> Basis:
    return Basis(
        step_ns=pricing.step_ns,
        recorded_ns=pricing.recorded_step_ns or pricing.step_ns,
        timed_ns=pricing.timed_step_ns,
        record_ns=pricing.record_ns,
        cold_share=pricing.cold_share,
    )


@dataclass(frozen=True, slots=True)
class Subject:
    """Where the subject of a finding is seen."""

    row: FindingRow
    report: Report
    trace: Trace
    names: dict[str, str]

    @property
    def is_operator(self) -> bool:
        return self.row.subject in self.names

    @property
    def flame(self) -> str:
        """The flame graph with the subject found in it."""
        on_device = bool(self.report.timeline)
        view = "idle" if self.row.kind in _OF_IDLE else "device"
        query = {"flame": view if on_device else "host", "find": self.row.subject}
        return f"{reverse('trace-graph', args=[self.trace.pk])}?{urlencode(query)}"

    @property
    def target(self) -> NoteTarget:
        """What a note on the finding is about."""
        subject = self.names.get(self.row.subject, self.row.subject)
        return NoteTarget(kind=NoteKind.FINDING, finding=self.row.kind, operator=subject[:500])


def _line(row: FindingRow, most: int, subject: Subject, notes: tuple[NoteView, ...]) -> FindingLine:
    gain = row.recoverable_ns_per_step
    calls = row.evidence.get("calls")
    modules = row.evidence.get("modules")
    known = subject.is_operator
    return FindingLine(
        title=row.title,
        subject=row.subject,
        gain_ns=gain,
        share=row.share if gain else None,
        width=(gain or 0) / most if most else 0.0,
        confidence=str(row.evidence.get("confidence", "")),
        calls=calls if isinstance(calls, int) else None,
        modules=tuple(str(name) for name in modules) if isinstance(modules, list) else (),
        advice=row.advice,
        operator=operator_address(subject.names[row.subject]) if known else "",
        flame=subject.flame if row.subject and subject.trace.graph_id else "",
        rows=f"?{urlencode({'op': row.subject})}#operators" if known else "",
        note_query=query_of(subject.target),
        tune=_tune(subject.trace, row),
        # What was noted on another finding about the same operator is on the operator's page.
        notes=tuple(note for note in notes if note.row.finding in {"", row.kind}),
    )


def _tune(trace: Trace, row: FindingRow) -> str:
    if trace.run_id is None:
        return ""
    return f"{reverse('tuning-start')}?{finding_query(trace, row)}"
