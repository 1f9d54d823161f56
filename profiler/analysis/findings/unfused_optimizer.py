"""An optimiser that launches its arithmetic parameter by parameter."""

from __future__ import annotations

import re

import numpy as np

from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.types import Candidate
from profiler.analysis.replay.change import Change, combined, gone, host
from profiler.trace.batch import Bool
from profiler.trace.clock import Int64
from profiler.units import count, duration

FEWEST = 40
"""Launches (operators on a CPU) of one optimiser step that are too many for a fused one."""

FUSED_PASSES = 7
"""Reads and writes per parameter of a fused Adam: four read, three written."""

_FUSED = re.compile(r"^aten::(_foreach_|_fused_)")


def find(scene: Scene) -> list[Candidate]:
    """One candidate for the optimiser phase of all steps."""
    frames = scene.ruled("optimizer")
    calls = scene.in_window(np.flatnonzero(frames))
    if not len(calls):
        return []
    inside = scene.inside(scene.frames(calls))
    works = scene.works_of(inside)
    pieces = len(works) if scene.on_device else int((inside & scene.frames(scene.ops)).sum())
    if pieces < FEWEST * len(calls) or (inside & scene.named(_FUSED)).any():
        return []
    factor = _traffic_factor(scene, inside)
    ns = (
        int(scene.work_ns[works].sum())
        if scene.on_device
        else scene.host_ns(scene.segments_of(inside))
    )
    each = count(round(pieces / len(calls)))
    return [
        Candidate(
            kind="unfused_optimizer",
            subject=scene.names[int(calls[0])],
            title=f"The optimiser makes {each} passes over the parameters one by one: "
            f"{duration(scene.per_step(ns))} a step",
            advice="Use the foreach or fused form of the optimiser.",
            change=_fused(scene, inside, calls, factor),
            evidence={"pieces_per_step": pieces // len(calls), "traffic_left": factor},
            calls=pieces,
        )
    ]


def _traffic_factor(scene: Scene, inside: Bool) -> float:
    """Bytes of one fused pass over what the separate operators move; 1 where unknown."""
    at = np.flatnonzero((scene.roof.signature >= 0) & inside[scene.ops])
    if not len(at):
        return 1.0
    moved: dict[str, int] = {}
    own: dict[str, int] = {}
    for number in scene.roof.signature[at].tolist():
        name, cost = scene.roof.signatures[number].name, scene.roof.costs[number]
        moved[name] = moved.get(name, 0) + cost.size_bytes
        own[name] = own.get(name, 0) + max(cost.flops, 1) * 4
    parameters = float(np.median(list(own.values())))
    return min(1.0, FUSED_PASSES * parameters / max(1, sum(moved.values())))


def _fused(scene: Scene, inside: Bool, calls: Int64, factor: float) -> Change:
    """Per optimiser step one piece of work with all the time, and one launch."""
    mine = scene.segments_of(inside)
    if not scene.on_device:
        return host("", mine, (scene.graph.segment_ns[mine] * factor).astype(np.int64))
    kept, kept_ns = [], []
    for call in calls.tolist():
        own = scene.works_of(scene.inside(scene.frames(np.array([call]))))
        if len(own):
            kept.append(int(own[0]))
            kept_ns.append(int(scene.work_ns[own].sum() * factor))
    rest = np.setdiff1d(scene.works_of(inside), np.array(kept))
    total = max(1, scene.host_ns(mine))
    left = min(1.0, 2 * scene.launch_ns * len(calls) / total)
    return combined(
        "",
        [
            gone(scene.graph, "", scene.graph.works[rest]),
            scene.with_work_ns("", np.array(kept), np.array(kept_ns)),
            host("", mine, (scene.graph.segment_ns[mine] * left).astype(np.int64)),
        ],
    )
