"""Device time inside graph launches, where the trace does not say which operator it belongs to."""

from __future__ import annotations

import numpy as np

from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.types import Candidate
from profiler.units import share

LEAST = 0.2
"""Share of device time from which it is worth saying."""


def find(scene: Scene) -> list[Candidate]:
    """One candidate without a gain: nothing can be claimed about what is not recorded."""
    opaque = scene.graph.opaque
    total = int(scene.work_ns.sum())
    hidden = int(scene.work_ns[opaque].sum())
    if not total or hidden <= LEAST * total:
        return []
    return [
        Candidate(
            kind="opaque_graph",
            subject="graph launches",
            title=f"{share(hidden / total)} of the device time is inside graph launches",
            advice="Record an eager run of the same commit, or trace graph nodes, to see which "
            "operators this time belongs to.",
            change=None,
            evidence={
                "reason": "kernels of a graph carry no operator",
                "kernels": int(np.count_nonzero(opaque)),
                "device_ns_per_step": scene.per_step(hidden),
            },
            calls=int(np.count_nonzero(opaque)),
        )
    ]
