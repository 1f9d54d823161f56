"""Compilation inside measured steps."""

from __future__ import annotations

import numpy as np

from profiler.analysis.findings.causes import COMPILATION
from profiler.analysis.findings.scene import Scene, top_names
from profiler.analysis.findings.types import Candidate
from profiler.trace.nest import nearest
from profiler.units import duration


def find(scene: Scene) -> list[Candidate]:
    """All compile events of the window together."""
    marks = scene.named(COMPILATION)
    if not marks.any():
        return []
    above = nearest(scene.structure.host.parent, marks)
    outer = scene.in_window(np.flatnonzero(marks & (above < 0)))
    frames = scene.inside(scene.frames(outer))
    total = scene.per_step(scene.host_ns(scene.segments_of(frames)))
    if not total:
        return []
    names = [scene.names[at] for at in outer.tolist()]
    return [
        Candidate(
            kind="recompilation",
            subject=names[0],
            title=f"Something is compiled inside the measured steps: {duration(total)} a step",
            advice="Find the guard that fails (TORCH_LOGS=recompiles), mark the size dynamic, or "
            "warm up with every shape.",
            change=scene.without("recompilation", frames),
            evidence={"compile_ns": total, "events": top_names(names)},
            modules=scene.modules(outer),
            calls=len(outer),
        )
    ]
