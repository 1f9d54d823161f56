"""Operators that ran on the CPU in the middle of device work."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np

from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.types import Candidate
from profiler.analysis.replay.change import Change, combined, gone, host, unblocked
from profiler.trace.batch import Bool
from profiler.trace.clock import Int64
from profiler.trace.kinds import Kind
from profiler.trace.nest import nearest
from profiler.units import duration

_TO_HOST = re.compile(r"DtoH|D2H|Device ?-> ?(Host|Pageable|Pinned)|CopyDeviceToHost", re.I)
_TO_DEVICE = re.compile(r"HtoD|H2D|(Host|Pageable|Pinned) ?-> ?Device|CopyHostToDevice", re.I)


def find(scene: Scene) -> list[Candidate]:
    """Frames that copy to the host, launch no kernel of their own and copy back."""
    if not scene.on_device:
        return []
    groups: dict[str, list[int]] = defaultdict(list)
    for at in _innermost(scene).tolist():
        groups[scene.names[at]].append(at)
    return [_candidate(scene, name, np.array(members)) for name, members in groups.items()]


def _innermost(scene: Scene) -> Int64:
    copies = np.flatnonzero(scene.work_kind == Kind.COPY)
    names = scene.work_names(copies)
    to_host = copies[[_TO_HOST.search(n) is not None for n in names]] if names else copies
    to_device = copies[[_TO_DEVICE.search(n) is not None for n in names]] if names else copies
    kernels = np.flatnonzero(scene.work_kind == Kind.KERNEL)
    both = _over(scene, to_host) & _over(scene, to_device) & ~_over(scene, kernels)
    both &= scene.kinds == Kind.HOST_OP
    inner = np.zeros(len(both), np.bool_)
    above = nearest(scene.structure.host.parent, both) if len(both) else np.empty(0, np.int64)
    inner[above[both & (above >= 0)]] = True
    return scene.in_window(np.flatnonzero(both & ~inner))


def _over(scene: Scene, works: Int64) -> Bool:
    """Frames that have one of these works somewhere inside them."""
    out = np.zeros(len(scene.structure.host.rows), np.bool_)
    at = scene.source[works]
    while len(at):
        at = np.unique(at[at >= 0])
        at = at[~out[at]]
        out[at] = True
        at = scene.structure.host.parent[at].astype(np.int64)
    return out


def _candidate(scene: Scene, name: str, members: Int64) -> Candidate:
    frames = scene.inside(scene.frames(members))
    host_ns = scene.per_step(int(scene.trace.events.dur[scene.structure.host.rows[members]].sum()))
    return Candidate(
        kind="cpu_fallback",
        subject=name,
        title=f"{name} runs on the CPU between copies to the host and back: "
        f"{duration(host_ns)} a step",
        advice="Write this operator for the device, or replace it by ones the device has.",
        change=_change(scene, frames, len(members)),
        evidence={"host_ns": host_ns, "copies": len(scene.works_of(frames))},
        modules=scene.modules(members),
        calls=len(members),
    )


def _change(scene: Scene, frames: Bool, calls: int) -> Change:
    """One kernel per call at the device's bandwidth over the bytes copied; a launch each."""
    works, mine = scene.works_of(frames), scene.segments_of(frames)
    sizes = scene.trace.events.dense("bytes")[scene.trace.device.rows[scene.graph.works[works]]]
    new = np.zeros(len(works), np.int64)
    if scene.peaks is not None and scene.peaks.bandwidth:
        new = (np.maximum(sizes, 0) / scene.peaks.bandwidth * 1e9).astype(np.int64)
    left = min(1.0, calls * scene.launch_ns / max(1, scene.host_ns(mine)))
    rows = scene.structure.host.rows[frames].astype(np.int64)
    return combined(
        "",
        [
            gone(scene.graph, "", scene.graph.works[works[new == 0]]),
            scene.with_work_ns("", works[new > 0], new[new > 0]),
            host("", mine, (scene.graph.segment_ns[mine] * left).astype(np.int64)),
            unblocked(scene.graph, "", rows),
        ],
    )
