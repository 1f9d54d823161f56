"""From a trace to its findings: the one entry for ingest, pages and the command line."""

from __future__ import annotations

from dataclasses import dataclass

from profiler.analysis.bounds import Pricing
from profiler.analysis.findings.ranking import FOLD_SHARE, rank
from profiler.analysis.findings.registry import candidates
from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.types import Finding, FindingsResult, Past, PastOperator, Path
from profiler.analysis.known import Known
from profiler.analysis.replay.build import build
from profiler.analysis.replay.cut import cut
from profiler.analysis.replay.recording import without_recording
from profiler.analysis.replay.window import EVENT_LIMIT, window_of
from profiler.analysis.report import FindingRow, RankSet, Report
from profiler.analysis.roofline.peaks import Peaks, peaks_of
from profiler.analysis.roofline.summary import peaks_from
from profiler.analysis.roofline.table import roofline
from profiler.trace.link import Structure
from profiler.trace.model import Trace

NO_FINDINGS = FindingsResult(
    findings=(),
    folded=(),
    steps=0,
    step_ns=0,
    joint_top_ns=0,
    joint_all_ns=0,
    exact=True,
    path=Path(0.0, opaque=False),
    inferred_edges=0,
    dropped_edges=0,
    window="nothing recorded",
    fold_share=FOLD_SHARE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What is known beside the trace.

    `peaks` of the platform (else the catalogue's for the recorded device
    name); `past` medians of the best comparable run; `ranks` when several
    were analysed together; `dtype` the workload runs in; `noise` floor as a
    share of the step; `step_ns` of the same step timed without a profiler.
    """

    peaks: Peaks | None = None
    past: Past | None = None
    ranks: RankSet | None = None
    dtype: str | None = None
    noise: float = 0.0
    step_ns: float | None = None


def scene_of(
    trace: Trace, structure: Structure, report: Report | None = None, context: Context | None = None
) -> Scene | None:
    """The trace ready for findings and what-if questions; None where nothing can be said.

    That is a trace without events, or one of a device whose work was not recorded.
    """
    window = window_of(trace, structure)
    if window is None:
        return None
    if window.marked and len(trace.events) > EVENT_LIMIT:
        trace, structure = cut(trace, structure, window)
    graph = build(trace, structure, window)
    if graph is None or (trace.device_kind != "cpu" and not len(graph.works)):
        return None
    known = context or Context()
    bare = without_recording(trace, structure, graph, known.step_ns) if known.step_ns else None
    peaks = known.peaks or peaks_of(trace.header.device_names)
    return Scene(
        trace,
        structure,
        bare[0] if bare is not None else graph,
        roofline(trace, structure, peaks),
        report=report,
        peaks=peaks,
        past=known.past,
        ranks=known.ranks,
        dtype=known.dtype,
        recording=bare[1] if bare is not None else None,
    )


def context_of(known: Known) -> Context:
    """What a file of a workload's history says, as the engine takes it."""
    past = {
        (call.name, call.shapes, call.dtypes): PastOperator(
            median_ns=call.median_ns,
            noise_ns=call.noise_ns,
            run=known.past_run,
            commit=known.past_commit,
        )
        for call in known.past
    }
    return Context(
        peaks=peaks_from(known.peak) if known.peak is not None else None,
        past=past or None,
        dtype=known.dtype,
        noise=known.noise,
        step_ns=known.step_ns,
    )


def find(
    trace: Trace, structure: Structure, report: Report | None = None, context: Context | None = None
) -> FindingsResult:
    """All findings of a trace, priced and ranked."""
    scene = scene_of(trace, structure, report, context)
    if scene is None:
        return NO_FINDINGS
    return findings_of(scene, context.noise if context is not None else 0.0)


def findings_of(scene: Scene, noise: float = 0.0) -> FindingsResult:
    """The same for a scene that is there already."""
    return rank(scene, candidates(scene), noise)


def finding_rows(result: FindingsResult) -> list[FindingRow]:
    """The `findings` of the report: those worth showing, best first."""
    return [_row(finding) for finding in result.findings]


def pricing_of(result: FindingsResult) -> Pricing | None:
    """How the findings were priced; None where there was nothing to replay."""
    if not result.steps:
        return None
    recording = result.recording
    return Pricing(
        window=result.window,
        steps=result.steps,
        step_ns=result.step_ns,
        joint_top_ns=result.joint_top_ns,
        joint_all_ns=result.joint_all_ns,
        exact=result.exact,
        inferred_edges=result.inferred_edges,
        dropped_edges=result.dropped_edges,
        folded=len(result.folded),
        fold_share=result.fold_share,
        recorded_step_ns=recording.recorded_ns if recording else None,
        timed_step_ns=recording.timed_ns if recording else None,
        record_ns=recording.event_ns if recording else None,
        cold_share=recording.cold if recording else None,
    )


def _row(finding: Finding) -> FindingRow:
    evidence: dict[str, object] = dict(finding.evidence)
    evidence |= {"confidence": finding.confidence, "calls": finding.calls}
    evidence["modules"] = list(finding.modules)
    if finding.low_ns_per_step is not None:
        evidence["low_ns_per_step"] = finding.low_ns_per_step
    return FindingRow(
        kind=finding.kind,
        title=finding.title,
        subject=finding.subject,
        recoverable_ns_per_step=finding.recoverable_ns_per_step,
        share=finding.share,
        evidence=evidence,
        advice=finding.advice,
    )
