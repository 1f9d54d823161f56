"""The device idles because the host computes between launches."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from profiler.analysis.findings.causes import between_regions, plain_segments
from profiler.analysis.findings.parts import Numbers
from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.types import Candidate
from profiler.analysis.replay.change import host
from profiler.trace.batch import NONE
from profiler.trace.clock import Int64
from profiler.trace.kinds import Kind
from profiler.trace.nest import nearest
from profiler.units import duration

LONG_NS = 25_000
"""Host time between two launches above the usual by this much is computing, not dispatching."""

TIMES_USUAL = 3

OWN_SHARE = 0.25
"""Part of all such time from which a place is a finding of its own."""

PROGRAM = "the program between operators"


def long_interval_ns(scene: Scene) -> int:
    """From here on the time between two launches is more than dispatch."""
    usual = _usual_ns(scene)
    return max(TIMES_USUAL * usual, usual + LONG_NS)


def _usual_ns(scene: Scene) -> int:
    """Median of the intervals no longer than a dispatch can take."""
    ns = scene.intervals.ns
    ns = ns[(ns > 0) & (ns < 100_000)]
    return max(int(np.median(ns)), scene.launch_ns) if len(ns) else scene.launch_ns


def find(scene: Scene) -> list[Candidate]:
    """One candidate per place (innermost module or operator) in which the host spent the time."""
    if not scene.on_device:
        return []
    intervals, graph = scene.intervals, scene.graph
    limit = long_interval_ns(scene)
    plain = plain_segments(scene)
    plain = plain[(intervals.segment[plain] >= 0) & ~between_regions(scene)[plain]]
    own = np.zeros(len(intervals.ns), np.int64)
    np.add.at(own, intervals.segment[plain], graph.segment_ns[plain])
    ends_late = (intervals.work >= 0) & scene.late[np.maximum(intervals.work, 0)]
    slow = ends_late & (own > limit)
    mine = plain[slow[intervals.segment[plain]]]
    usual = _usual_ns(scene)
    return [
        _candidate(scene, place, chosen, usual / own[intervals.segment[chosen]])
        for place, chosen in _gathered(scene, _by_place(scene, mine)).items()
    ]


def _by_place(scene: Scene, segments: Int64) -> dict[str, Int64]:
    """Segments by the place in which the host spent them, in words."""
    owner = scene.graph.segments.owner[segments]
    frames = np.where(owner >= 0, _outer_frames(scene)[np.maximum(owner, 0)], NONE)
    known = (frames >= 0) & (scene.kinds[np.maximum(frames, 0)] != Kind.RUNTIME)
    rows = scene.structure.host.rows[np.maximum(frames, 0)]
    names = np.where(known, scene.trace.events.name[rows], NONE)
    by_name = np.argsort(names, kind="stable")
    found, first = np.unique(names[by_name], return_index=True)
    groups: dict[str, list[Int64]] = defaultdict(list)
    for name, at in zip(found.tolist(), np.split(by_name, first)[1:], strict=True):
        place = PROGRAM if name == NONE else scene.module_name(int(frames[at[0]]))
        groups[place].append(segments[at])
    return {place: np.concatenate(parts) for place, parts in groups.items()}


def _gathered(scene: Scene, made: dict[str, Int64]) -> dict[str, Int64]:
    """Places with a quarter of the time each; the others together are spread over the step."""
    total = sum(scene.host_ns(members) for members in made.values())
    own = {p: m for p, m in made.items() if scene.host_ns(m) >= OWN_SHARE * total}
    rest = [m for p, m in made.items() if p not in own]
    if len(rest) == 1:
        return made
    return own | ({"many places": np.concatenate(rest)} if rest else {})


def _outer_frames(scene: Scene) -> Int64:
    """Per position of `Structure.host` its module, else the outermost frame inside the step."""
    parent = scene.structure.host.parent
    marks = scene.ruled("step")
    top = ~marks & ((parent < 0) | marks[np.maximum(parent, 0)])
    outer = np.where(top, np.arange(len(parent)), nearest(parent, top))
    return np.where(scene.module_of >= 0, scene.module_of, outer)


def _candidate(scene: Scene, place: str, members: Int64, factor: Numbers) -> Candidate:
    ns = scene.graph.segment_ns[members]
    total = scene.per_step(int(ns.sum()))
    new = (ns * np.minimum(factor, 1.0)).astype(np.int64)
    owners = scene.graph.segments.owner[members]
    return Candidate(
        kind="host_wait",
        subject=place,
        title=f"The device waits while the host computes in {place}: {duration(total)} a step",
        advice="Capture the step in a graph, move this work off the path or to another thread, "
        "or make fewer Python calls.",
        change=host(place, members, new),
        evidence={
            "host_ns": total,
            "usual_launch_interval_ns": _usual_ns(scene),
            "stretches": len(np.unique(scene.intervals.segment[members])),
        },
        modules=scene.modules(owners),
        calls=len(members),
    )
