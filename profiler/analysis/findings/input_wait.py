"""Steps that start late because their data was not there."""

from __future__ import annotations

import numpy as np

from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.types import Candidate
from profiler.analysis.replay.change import host
from profiler.units import duration


def find(scene: Scene) -> list[Candidate]:
    """Host time inside the data loader on the thread that runs the steps."""
    frames = scene.ruled("loader")
    if not frames.any():
        return []
    mine = scene.segments_of(scene.inside(frames))
    mine = mine[scene.graph.segments.track[mine] == scene.graph.window.track]
    total = scene.per_step(scene.host_ns(mine))
    calls = len(scene.in_window(np.flatnonzero(frames)))
    if not total:
        return []
    return [
        Candidate(
            kind="input_wait",
            subject="data loader",
            title=f"The step waits {duration(total)} for its input",
            advice="Use more loader workers, pinned memory and prefetching, or do less per sample.",
            change=host("input", mine, np.zeros(len(mine), np.int64)),
            evidence={"loader_ns": total},
            calls=calls,
        )
    ]
