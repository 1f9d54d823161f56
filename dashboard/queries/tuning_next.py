"""What to try next: the findings of today's trace, without those that were tried already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from dashboard.models import ComparedWorkload, Iteration, IterationState, Trace, TraceState, Tuning
from dashboard.queries.reports import read_report
from dashboard.queries.tuning_calibration import Calibration
from dashboard.services.tuning_iterations import finding_key
from profiler.analysis.report import FindingRow
from profiler.errors import UserError

SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class NextFinding:
    """One finding nobody acted on yet; `factor` is what its kind tends to bring of what is said.

    `query` names it in the address of a new iteration.
    """

    row: FindingRow
    confidence: str
    factor: float | None
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedFinding:
    """A finding that is still there, with the iterations that acted on it."""

    row: FindingRow
    iterations: tuple[Iteration, ...]
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NextList:
    """What today's trace leaves to try; `reason` says why there is no trace to read."""

    trace: Trace | None
    lines: tuple[NextFinding, ...] = ()
    tried: tuple[TriedFinding, ...] = ()
    more: int = 0
    reason: str = ""


def next_of(tuning: Tuning, iterations: Sequence[Iteration], known: Calibration) -> NextList:
    """Findings of the newest trace of what is kept, ranked as the engine ranked them."""
    trace = todays_trace(tuning, iterations)
    if trace is None or trace.report is None:
        return NextList(
            trace=None,
            reason="No trace of this workload was read yet: a run with a profiled pass records one",
        )
    try:
        findings = read_report(trace.report.sha256).findings
    except UserError as error:
        return NextList(trace=trace, reason=error.line())
    acted: dict[tuple[str, str], list[Iteration]] = {}
    for row in iterations:
        acted.setdefault((row.finding_kind, row.finding_subject), []).append(row)
    fresh = [row for row in findings if _key(row) not in acted]
    return NextList(
        trace=trace,
        lines=tuple(
            NextFinding(
                row=row,
                confidence=str(row.evidence.get("confidence", "")),
                factor=known.factor(row.kind),
                query=finding_query(trace, row),
            )
            for row in fresh[:SHOWN]
        ),
        tried=tuple(
            TriedFinding(
                row=row,
                iterations=tuple(acted[_key(row)]),
                query=finding_query(trace, row),
            )
            for row in findings
            if _key(row) in acted
        ),
        more=max(0, len(fresh) - SHOWN),
    )


def _key(row: FindingRow) -> tuple[str, str]:
    return finding_key(row.kind, row.subject)


def finding_query(trace: Trace, row: FindingRow) -> str:
    """The finding as it stands in an address: trace, kind and subject."""
    return urlencode({"trace": trace.pk, "kind": row.kind, "subject": row.subject})


def find_finding(trace: Trace, kind: str, subject: str) -> FindingRow | None:
    """The finding of a trace by kind and subject; None when its report says nothing of it."""
    if trace.report is None:
        return None
    found = read_report(trace.report.sha256).findings
    return next((row for row in found if (row.kind, row.subject) == (kind, subject)), None)


def todays_trace(tuning: Tuning, iterations: Sequence[Iteration]) -> Trace | None:
    """The profiled launch of the last kept candidate, else the newest trace of a run."""
    kept = [row for row in iterations if row.state == IterationState.KEPT]
    kept.sort(key=lambda row: (row.decided_at or row.created_at, row.number))
    if kept and kept[-1].comparison_id is not None:
        found = (
            ComparedWorkload.objects.filter(
                comparison=kept[-1].comparison_id,
                workload=tuning.workload_id,
                candidate_trace__state=TraceState.READY,
            )
            .select_related("candidate_trace__report")
            .first()
        )
        if found is not None:
            return found.candidate_trace
    traces = Trace.objects.filter(
        state=TraceState.READY,
        run__workload=tuning.workload_id,
        run__platform=tuning.platform_id,
    )
    return traces.select_related("report").order_by("-run_id", "rank").first()
