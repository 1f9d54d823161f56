"""Host calls that wait for the device and so let it run dry."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from profiler.analysis.findings.causes import ALLOCATION
from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.types import Candidate
from profiler.analysis.replay.change import unblocked
from profiler.trace.clock import Int64
from profiler.trace.kinds import Kind
from profiler.units import duration

LARGE_COPY_NS = 10_000
"""A blocking copy this long is a copy to avoid, not a value to wait for."""


def find(scene: Scene) -> list[Candidate]:
    """One candidate per place and call; how a step is ended for measuring does not count."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row in waiting_rows(scene).tolist():
        name = scene.trace.strings[int(scene.trace.events.name[row])]
        if not ALLOCATION.search(name) and not _ends_step(scene, row, name):
            groups[_place(scene, row), name].append(row)
    return [
        _candidate(scene, place, call, np.array(rows)) for (place, call), rows in groups.items()
    ]


def waiting_rows(scene: Scene) -> Int64:
    """Rows of blocking calls that waited, without those whose own long copy they waited for."""
    graph = scene.graph
    nodes = np.flatnonzero(graph.blocking >= 0)
    rows = graph.blocking[nodes]
    launch = scene.structure.launch[graph.works]
    large = (scene.work_kind == Kind.COPY) & (scene.work_ns >= LARGE_COPY_NS)
    return np.setdiff1d(rows, launch[large])


def _ends_step(scene: Scene, row: int, call: str) -> bool:
    """A device synchronisation after the last launch of a step is how the step is measured."""
    if "Device" not in call and "Ctx" not in call:
        return False
    events, bounds = scene.trace.events, scene.graph.window.bounds
    at = int(events.ts[row])
    until = next((b for a, b in bounds if a <= at < b), scene.graph.window.end_ns)
    launches = scene.structure.launch[scene.graph.works]
    later = events.ts[launches[launches >= 0]]
    return not bool(((later > at) & (later < until)).any())


def _place(scene: Scene, row: int) -> str:
    """The outermost operator around the call, else its mark or module, else the call."""
    at = int(scene.structure.host.parent[scene.structure.position[row]])
    inner = at
    while at >= 0 and scene.kinds[at] == Kind.HOST_OP:
        inner, at = at, int(scene.structure.host.parent[at])
    if inner < 0 or scene.names[inner].startswith("ProfilerStep"):
        return scene.trace.strings[int(scene.trace.events.name[row])]
    if scene.kinds[inner] == Kind.MODULE:
        return scene.module_name(inner)
    return scene.names[inner]


def _candidate(scene: Scene, place: str, call: str, rows: Int64) -> Candidate:
    waited = scene.per_step(int(scene.trace.events.dur[rows].sum()))
    per_step = len(rows) / scene.steps
    return Candidate(
        kind="sync_point",
        subject=place,
        title=f"{place} makes the host wait for the device {per_step:.3g} times a step",
        advice="Keep the value on the device, read it asynchronously, or look at it every n steps.",
        change=unblocked(scene.graph, place, rows),
        evidence={"call": call, "waited_ns": waited, "waited": duration(waited)},
        modules=scene.modules(np.asarray(scene.structure.position[rows], np.int64)),
        calls=len(rows),
    )
