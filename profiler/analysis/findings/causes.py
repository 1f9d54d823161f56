"""Which host time belongs to which cause, so that two kinds do not explain the same time."""

from __future__ import annotations

import re

import numpy as np

from profiler.analysis.findings.scene import Scene
from profiler.trace.batch import Bool
from profiler.trace.clock import Int64

ALLOCATION = re.compile(r"^(cuda|hip|cu|musa)(Malloc|Free|MemAlloc|MemFree|Mem_?Map|HostAlloc)")
COMPILATION = re.compile(
    r"\(dynamo_timed\)|compile_inner|call_user_compiler|compile_fx|backend_compile|"
    r"async_compile|triton.*compile|cuModuleLoad|hipModuleLoad"
)
REGION = re.compile(r"^Torch-Compiled Region: ")


def special(scene: Scene) -> Bool:
    """Frames of data loading, compilation and allocation, with everything in them."""
    marks = scene.ruled("loader") | scene.named(COMPILATION) | scene.named(ALLOCATION)
    return scene.inside(marks)


def plain_segments(scene: Scene) -> Int64:
    """Segments that are none of these, and not the wait of a blocking call."""
    chosen = np.ones(len(scene.graph.segment_ns), np.bool_)
    chosen[scene.segments_of(special(scene))] = False
    return np.flatnonzero(chosen)


def between_regions(scene: Scene) -> Bool:
    """Segments of a thread between two compiled regions of one step: time of a graph break."""
    parts, events = scene.graph.segments, scene.trace.events
    out = np.zeros(len(parts.ts), np.bool_)
    regions = np.flatnonzero(scene.named(REGION))
    rows = scene.structure.host.rows[scene.in_window(regions)]
    if len(rows) < 2:
        return out
    order = np.lexsort((events.ts[rows], events.track[rows]))
    rows = rows[order]
    starts = np.array([a for a, _ in scene.graph.window.bounds] or [scene.graph.window.begin_ns])
    step = np.searchsorted(starts, events.ts[rows], side="right")
    inner = scene.inside(scene.named(REGION))
    owned = np.zeros(len(parts.ts), np.bool_)
    known = parts.owner >= 0
    owned[known] = inner[parts.owner[known]]
    for at in range(len(rows) - 1):
        a, b = rows[at], rows[at + 1]
        if events.track[a] == events.track[b] and step[at] == step[at + 1]:
            here = (parts.track == events.track[a]) & (parts.ts >= events.end[a])
            out |= here & (parts.ts < events.ts[b]) & ~owned
    return out
