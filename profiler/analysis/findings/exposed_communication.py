"""Communication during which the device computes nothing."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from profiler.analysis.collectives import collective_kind
from profiler.analysis.findings.imbalance import own_rank
from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.types import Candidate
from profiler.trace.clock import Int64
from profiler.trace.intervals import covered_ns, merged, union_ns
from profiler.trace.kinds import Kind
from profiler.units import duration, share


def find(scene: Scene) -> list[Candidate]:
    """One candidate per collective: its exposed part hidden behind the compute that exists."""
    comm = np.flatnonzero(scene.work_kind == Kind.COMMUNICATION)
    if not len(comm):
        return []
    exposed = _moving(scene, comm, _exposed(scene, comm))
    compute = _free_compute_ns(scene)
    total = int(exposed.sum())
    hidden = min(1.0, compute / total) if total else 0.0
    groups: dict[str, list[int]] = defaultdict(list)
    for at, name in enumerate(_names(scene, comm)):
        groups[collective_kind(name)].append(at)
    out = []
    for kind, members in groups.items():
        chosen = np.array(members)
        if exposed[chosen].sum() > 0:
            out.append(_candidate(scene, kind, comm[chosen], exposed[chosen], hidden=hidden))
    return out


def _names(scene: Scene, works: Int64) -> list[str]:
    """The recorded collective, else the kernel's name."""
    said = scene.trace.events.dense("collective")[scene.trace.device.rows[scene.graph.works[works]]]
    strings = scene.trace.strings
    pairs = zip(said.tolist(), scene.work_names(works), strict=True)
    return [strings[code] if code >= 0 else name for code, name in pairs]


def _exposed(scene: Scene, works: Int64) -> Int64:
    device = scene.trace.device
    compute = scene.graph.works[scene.work_kind == Kind.KERNEL]
    spans = merged(device.ts[compute], device.end[compute])
    at = scene.graph.works[works]
    dur: Int64 = device.dur[at]
    return np.asarray(dur - covered_ns(device.ts[at], device.end[at], *spans), np.int64)


def _moving(scene: Scene, works: Int64, exposed: Int64) -> Int64:
    """The exposed part without waiting for slower ranks, which overlap cannot remove."""
    own = own_rank(scene)
    total = int(scene.work_ns[works].sum())
    if own is None or not total:
        return exposed
    return (exposed * max(0.0, 1 - own.waited_ns / total)).astype(np.int64)


def _free_compute_ns(scene: Scene) -> int:
    """Compute that no communication overlaps yet: what there is to hide behind."""
    device = scene.trace.device
    compute = scene.graph.works[scene.work_kind == Kind.KERNEL]
    comm = scene.graph.works[scene.work_kind == Kind.COMMUNICATION]
    spans = merged(device.ts[comm], device.end[comm])
    starts, ends = merged(device.ts[compute], device.end[compute])
    return union_ns(device.ts[compute], device.end[compute]) - int(
        covered_ns(starts, ends, *spans).sum()
    )


def _candidate(
    scene: Scene, kind: str, works: Int64, exposed: Int64, *, hidden: float
) -> Candidate:
    total = scene.per_step(int(exposed.sum()))
    new = scene.work_ns[works] - exposed * hidden
    return Candidate(
        kind="exposed_communication",
        subject=kind,
        title=f"{kind} runs {duration(total)} a step with nothing computed beside it",
        advice="Start it earlier and overlap it with compute, use fewer and larger calls, or check "
        "topology and bucket size.",
        change=scene.with_work_ns(kind, works, new),
        evidence={
            "exposed_ns": total,
            "total_ns": scene.per_step(int(scene.work_ns[works].sum())),
            "can_hide": share(hidden),
        },
        modules=scene.modules(scene.source[works]),
        calls=len(works),
    )
