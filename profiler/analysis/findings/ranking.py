"""Prices candidates by replay, ranks them, and prices the best ones together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profiler.analysis.findings.parts import Parts
from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.types import Candidate, Confidence, Finding, FindingsResult, Path
from profiler.analysis.replay.change import Change, combined
from profiler.analysis.replay.graph import EdgeKind, Graph
from profiler.analysis.replay.schedule import critical_edges, spans_ns
from profiler.trace.intervals import union_ns

FOLD_SHARE = 0.01
"""Gains below this share of the step are folded."""

NOISE_FACTOR = 3

UNEXPLAINED_NS = 50_000
"""A wait this long that no recorded edge explains makes the path a guess."""

LIKELY = 0.1
"""Up to this share of the path may be inferred for medium confidence."""

SYMPTOMS = frozenset(("host_wait", "launch_bound", "exposed_copy"))
"""Kinds that describe what is seen; others that explain the same time say why."""

SYMPTOM_WEIGHT = 0.85

_TOP = 3


def measured_path(graph: Graph) -> Path:
    """The inferred share of the critical path's edges, and whether it runs through a graph."""
    path = critical_edges(graph)
    if not len(path):
        return Path(0.0, opaque=False)
    edges = graph.edges
    waits = np.isin(edges.kind[path], (EdgeKind.LAUNCH, EdgeKind.STREAM))
    unexplained = waits & (edges.lag[path] > UNEXPLAINED_NS)
    nodes = edges.target[path]
    on_device = nodes[nodes >= graph.hosts] - graph.hosts
    return Path(
        float((edges.inferred[path] | unexplained).mean()),
        opaque=bool(graph.opaque[on_device].any()),
    )


def confidence_of(path: Path, *, guessed: bool) -> Confidence:
    """high: every edge recorded; medium: up to a tenth inferred; low: more, or opaque graphs."""
    if path.opaque or path.inferred > LIKELY:
        return "low"
    return "medium" if path.inferred > 0 or guessed else "high"


def rank(scene: Scene, found: Sequence[Candidate], noise: float = 0.0) -> FindingsResult:
    """Findings by gain; `noise` is the workload's noise floor as a share of the step."""
    graph = scene.graph
    path = measured_path(graph)
    changes = [c.change if c.change is not None else Change("") for c in found]
    measured, *spans = spans_ns(graph, [Change("unchanged"), *changes])
    made = [
        priced(scene, candidate, measured - span, path)
        for candidate, span in zip(found, spans, strict=True)
    ]
    made = [f for f in made if f.recoverable_ns_per_step is None or f.recoverable_ns_per_step > 0]
    made.sort(key=_place)
    limit = max(FOLD_SHARE, NOISE_FACTOR * noise)
    shown = [f for f in made if f.recoverable_ns_per_step is None or f.share >= limit]
    joint = spans_ns(graph, [_joint(shown[:_TOP]), _joint(shown)])
    return FindingsResult(
        findings=tuple(shown),
        folded=tuple(f for f in made if f not in shown),
        steps=scene.steps,
        step_ns=scene.step_ns,
        joint_top_ns=scene.per_step(measured - joint[0]),
        joint_all_ns=scene.per_step(measured - joint[1]),
        exact=measured == graph.span_ns,
        path=path,
        inferred_edges=graph.inferred,
        dropped_edges=graph.dropped,
        window=graph.window.name,
        fold_share=limit,
        recording=scene.recording,
    )


def _place(finding: Finding) -> tuple[float, str, str]:
    """By gain; of two that win about the same, the one that names the cause comes first."""
    gain = finding.recoverable_ns_per_step
    weight = SYMPTOM_WEIGHT if finding.kind in SYMPTOMS else 1.0
    return (-gain * weight if gain is not None else 1.0, finding.kind, finding.subject)


def _joint(findings: Sequence[Finding]) -> Change:
    return combined("joint", [f.change for f in findings if f.change is not None])


def priced(parts: Parts, candidate: Candidate, gain_ns: int, path: Path) -> Finding:
    """A candidate whose change makes the replayed steps `gain_ns` shorter, all of them together."""
    gain = parts.per_step(gain_ns) if candidate.change is not None else None
    sure = confidence_of(path, guessed=candidate.guessed)
    low = None
    if sure == "low" and gain is not None and candidate.change is not None:
        low = min(gain, parts.per_step(exclusive_ns(parts.graph, candidate.change)))
    return Finding(
        kind=candidate.kind,
        title=candidate.title,
        subject=candidate.subject,
        recoverable_ns_per_step=gain,
        share=gain / parts.step_ns if gain and parts.step_ns else 0.0,
        evidence=candidate.evidence,
        advice=candidate.advice,
        confidence=sure,
        modules=candidate.modules,
        calls=candidate.calls,
        low_ns_per_step=low,
        change=candidate.change,
    )


def exclusive_ns(graph: Graph, change: Change) -> int:
    """Device time the change removes while nothing else ran: the least it can bring."""
    if not len(change.nodes):
        return 0
    start = graph.start[graph.hosts :]
    end = start + graph.length[graph.hosts :]
    at = change.nodes - graph.hosts
    shorter = end.copy()
    shorter[at] = start[at] + np.minimum(change.node_ns, graph.length[change.nodes])
    return union_ns(start, end) - union_ns(start, shorter)
