"""Allocation from the device inside steps, and memory near its limit."""

from __future__ import annotations

import numpy as np

from profiler.analysis.findings.causes import ALLOCATION
from profiler.analysis.findings.scene import Scene, top_names
from profiler.analysis.findings.types import Candidate
from profiler.trace.kinds import Kind
from profiler.units import duration, share, size

HEADROOM = 0.05


def find(scene: Scene) -> list[Candidate]:
    """Calls that allocate or free device memory, and a peak close to the device's memory."""
    return [*_calls(scene), *_headroom(scene)]


def _calls(scene: Scene) -> list[Candidate]:
    frames = scene.named(ALLOCATION) & (scene.kinds == Kind.RUNTIME)
    calls = scene.in_window(np.flatnonzero(frames))
    if not len(calls):
        return []
    rows = scene.structure.host.rows[calls]
    total = scene.per_step(int(scene.trace.events.dur[rows].sum()))
    names = [scene.names[at] for at in calls.tolist()]
    parent = scene.structure.host.parent[calls]
    return [
        Candidate(
            kind="memory_pressure",
            subject=names[0],
            title=f"Device memory is allocated or freed inside the step: {duration(total)} a step",
            advice="Free what is not needed, lower the peak, or set the allocator to expandable "
            "segments; sizes that change each step defeat its cache.",
            change=scene.without("memory_pressure", scene.inside(scene.frames(calls))),
            evidence={
                "calls": top_names(names),
                "inside": top_names(scene.names[at] for at in parent.tolist() if at >= 0),
                "host_ns": total,
            },
            modules=scene.modules(calls),
            calls=len(calls),
        )
    ]


def _headroom(scene: Scene) -> list[Candidate]:
    limit = scene.peaks.memory_bytes if scene.peaks is not None else None
    curves = scene.report.memory if scene.report is not None else []
    used = [c.peak_reserved_bytes or c.peak_allocated_bytes for c in curves if c.device != "cpu"]
    if not limit or not used or max(used) < limit * (1 - HEADROOM):
        return []
    return [
        Candidate(
            kind="memory_pressure",
            subject="device memory",
            title=f"The peak leaves {share(max(0.0, 1 - max(used) / limit))} of the memory free",
            advice="See which operators own the peak on the memory panel.",
            change=None,
            evidence={"reason": "time lost to it is not recorded", "peak": size(max(used))},
        )
    ]
