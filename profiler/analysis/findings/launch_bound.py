"""Stretches of kernels shorter than the time the host needs to launch the next one."""

from __future__ import annotations

import numpy as np

from profiler.analysis.findings.causes import plain_segments
from profiler.analysis.findings.host_wait import long_interval_ns
from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.types import Candidate
from profiler.analysis.replay.change import host
from profiler.trace.batch import Bool
from profiler.units import count, duration

FEWEST = 20
"""Consecutive kernels that make a stretch."""

GRAPH_NODE_NS = 1_500
"""What a kernel of a captured graph costs the host and device to start."""


def find(scene: Scene) -> list[Candidate]:
    """All stretches together: one capture or fusion removes them."""
    if not scene.on_device:
        return []
    intervals, graph = scene.intervals, scene.graph
    work = np.maximum(intervals.work, 0)
    short = (intervals.work >= 0) & (scene.work_ns[work] < intervals.ns)
    short &= intervals.ns <= long_interval_ns(scene)
    chosen = _stretches(short)
    if not chosen.any() or scene.late[work][chosen].mean() < 0.5:
        return []
    plain = plain_segments(scene)
    mine = plain[intervals.segment[plain] >= 0]
    mine = mine[chosen[intervals.segment[mine]]]
    factor = GRAPH_NODE_NS / np.maximum(intervals.ns[intervals.segment[mine]], 1)
    new = (graph.segment_ns[mine] * np.minimum(factor, 1.0)).astype(np.int64)
    works = work[chosen]
    modules = scene.modules(scene.source[works])
    subject = modules[0] if modules else "the whole step"
    number = round(int(chosen.sum()) / scene.steps)
    each = float(np.median(intervals.ns[chosen]))
    return [
        Candidate(
            kind="launch_bound",
            subject=subject,
            title=f"{count(number)} short kernels a step start one launch at a time, "
            f"{duration(each)} apart",
            advice="Capture this stretch in a graph, compile it, or fuse the kernels.",
            change=host("launch_bound", mine, new),
            evidence={
                "kernels": number,
                "launch_interval_ns": round(each),
                "kernel_ns": round(float(np.median(scene.work_ns[works]))),
                "graph_node_ns": GRAPH_NODE_NS,
            },
            modules=modules,
            calls=int(chosen.sum()),
        )
    ]


def _stretches(short: Bool) -> Bool:
    """Members of runs of at least `FEWEST`."""
    edge = np.flatnonzero(np.diff(np.concatenate([[0], short.astype(np.int8), [0]])))
    out = np.zeros(len(short), np.bool_)
    for low, high in zip(edge[::2].tolist(), edge[1::2].tolist(), strict=True):
        if high - low >= FEWEST:
            out[low:high] = True
    return out
