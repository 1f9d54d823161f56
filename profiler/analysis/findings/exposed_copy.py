"""Copies between host and device, or on the device, that nothing hides."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.sync_point import LARGE_COPY_NS
from profiler.analysis.findings.types import Candidate
from profiler.analysis.replay.change import combined, unblocked
from profiler.trace.clock import Int64
from profiler.trace.intervals import covered_ns, merged
from profiler.trace.kinds import Kind
from profiler.units import duration


def find(scene: Scene) -> list[Candidate]:
    """One candidate per kind of copy: overlapped on a stream of its own, without waiting for it."""
    copies = np.flatnonzero((scene.work_kind == Kind.COPY) & (scene.work_ns >= LARGE_COPY_NS))
    groups: dict[str, list[int]] = defaultdict(list)
    for work, name in zip(copies.tolist(), scene.work_names(copies), strict=True):
        groups[name].append(work)
    return [_candidate(scene, name, np.array(works)) for name, works in groups.items()]


def _candidate(scene: Scene, name: str, works: Int64) -> Candidate:
    device = scene.trace.device
    at = scene.graph.works[works]
    busy = scene.graph.works[
        (scene.work_kind == Kind.KERNEL) | (scene.work_kind == Kind.COMMUNICATION)
    ]
    spans = merged(device.ts[busy], device.end[busy])
    covered = covered_ns(device.ts[at], device.end[at], *spans)
    exposed = scene.per_step(int((device.dur[at] - covered).sum()))
    launch = scene.structure.launch[at]
    waits = unblocked(scene.graph, name, launch[launch >= 0])
    sizes = scene.trace.events.dense("bytes")[device.rows[at]]
    known = sizes[sizes >= 0]
    return Candidate(
        kind="exposed_copy",
        subject=name,
        title=f"{name} takes {duration(exposed)} a step with the device doing nothing else",
        advice="Pin the host memory and copy asynchronously on a stream of its own, batch the "
        "copies, or keep the data where it is.",
        change=combined(name, [scene.with_work_ns(name, works, covered), waits]),
        evidence={
            "exposed_ns": exposed,
            "bytes_per_step": scene.per_step(int(known.sum())) if len(known) else None,
        },
        modules=scene.modules(scene.source[works]),
        calls=len(works),
    )
