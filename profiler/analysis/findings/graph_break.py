"""Compiled regions of one step with Python in between."""

from __future__ import annotations

import numpy as np

from profiler.analysis.findings.causes import REGION, between_regions
from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.types import Candidate
from profiler.analysis.replay.change import host
from profiler.trace.kinds import Kind
from profiler.units import duration

_WORKING = (Kind.HOST_OP, Kind.RUNTIME)


def find(scene: Scene) -> list[Candidate]:
    """The Python between compiled regions; operators between them stay."""
    between = between_regions(scene)
    owner = scene.graph.segments.owner
    working = np.zeros(len(owner), np.bool_)
    working[owner >= 0] = np.isin(scene.kinds[owner[owner >= 0]], _WORKING)
    mine = np.flatnonzero(between & ~working)
    total = scene.per_step(scene.host_ns(mine))
    if not total:
        return []
    regions = scene.in_window(np.flatnonzero(scene.named(REGION)))
    return [
        Candidate(
            kind="graph_break",
            subject=scene.names[int(regions[0])],
            title=f"Graph breaks leave {duration(total)} of Python between compiled regions a step",
            advice="Remove what breaks the graph (TORCH_LOGS=graph_breaks names the line), or "
            "compile with fullgraph to find it.",
            change=host("graph_break", mine, np.zeros(len(mine), np.int64)),
            evidence={"python_ns": total, "regions_per_step": len(regions) / scene.steps},
            modules=scene.modules(regions),
            calls=len(regions),
        )
    ]
