"""Python and dispatch on runs whose operators run on the host itself."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np

from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.types import Candidate
from profiler.analysis.replay.change import Change, combined, host
from profiler.trace.batch import NONE
from profiler.trace.clock import Int64
from profiler.trace.kinds import Kind
from profiler.trace.nest import nearest
from profiler.units import count, duration

REPEATED = 8
"""Calls of one operator with one shape inside one module call that are a loop over data."""

REPEATED_OUTSIDE = 32
"""The same per step, outside of modules."""

SMALL_NS = 50_000
"""A call longer than this is work, not dispatch: that it repeats (the layers of a model, the
parameters of an optimiser) makes it no loop over data."""

BYTES_PER_NS = 8.0
"""Traffic of one core, to tell moving data from dispatch in small calls."""

OUTSIDE = "the program outside of modules"


@dataclass(frozen=True, slots=True)
class _Place:
    """Calls of one kind of module (positions of `host`; -1 stands for outside of all)."""

    name: str
    modules: tuple[int, ...]
    looped: bool


class _Calls:
    """Root operators of the stepping thread by the module they are called in."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.roots = _root_operators(scene)
        self.by_module: dict[int, list[int]] = defaultdict(list)
        for at in self.roots.tolist():
            self.by_module[int(scene.module_of[at])].append(at)
        self.thinking = _thinking(scene)
        owner = scene.graph.segments.owner[self.thinking]
        inside = scene.module_of[np.maximum(owner, 0)] if len(scene.module_of) else owner
        self.thinking_module = np.where(owner >= 0, inside, NONE)
        gaps = scene.graph.segment_ns[self.thinking]
        self.between_ns = float(np.percentile(gaps, 25)) if len(gaps) else 0.0
        self.shapes = scene.trace.events.dense("shapes")[scene.structure.host.rows].tolist()
        self.dur_ns = scene.trace.events.dur[scene.structure.host.rows]

    def key(self, at: int) -> tuple[str, int]:
        """Operator and shapes of one call."""
        return self.scene.names[at], self.shapes[at]

    def looped(self, module: int) -> bool:
        """Whether one call of this module repeats the same small operator many times."""
        calls = self.by_module.get(module, ())
        counts = Counter(self.key(at) for at in calls if self.dur_ns[at] <= SMALL_NS)
        most = counts.most_common(1)[0][1] if counts else 0
        if module >= 0:
            return most >= REPEATED
        marked = bool((self.scene.kinds == Kind.MODULE).any())
        return marked and most >= REPEATED_OUTSIDE * self.scene.steps

    def places(self) -> list[_Place]:
        """Modules by folded path; loops over the same operators together, whatever the path."""
        groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
        loops: dict[tuple[str, ...], bool] = {}
        for module in sorted({*self.by_module, *self.thinking_module.tolist()}):
            name = self.scene.module_name(module) if module >= 0 else OUTSIDE
            looped = self.looped(module)
            names = sorted({self.scene.names[at] for at in self.by_module.get(module, ())})
            key = ("loop", *names) if looped and module >= 0 else (name, str(looped))
            groups[key].append(module)
            loops[key] = looped
        return [_Place(self._named(m), tuple(m), loops[key]) for key, m in groups.items()]

    def _named(self, modules: list[int]) -> str:
        paths = {self.scene.module_name(m) if m >= 0 else OUTSIDE: None for m in modules}
        return " and ".join(list(paths)[:3])


def find(scene: Scene) -> list[Candidate]:
    """Per module: loops of small operators, and Python time above the usual between two calls."""
    if scene.on_device or scene.trace.device_kind != "cpu":
        return []
    calls = _Calls(scene)
    made = [_candidate(calls, place) for place in calls.places()]
    return [one for one in made if one is not None]


def _root_operators(scene: Scene) -> Int64:
    """Operators without an operator around them, on the thread of the steps."""
    is_op = scene.kinds == Kind.HOST_OP
    above = nearest(scene.structure.host.parent, np.asarray(is_op))
    track = scene.trace.events.track[scene.structure.host.rows]
    own = is_op & (above < 0) & (track == scene.graph.window.track)
    return scene.in_window(np.flatnonzero(own))


def _thinking(scene: Scene) -> Int64:
    """Segments of the stepping thread outside of operators."""
    parts = scene.graph.segments
    known = parts.owner >= 0
    outside = ~known
    outside[known] = ~np.isin(scene.kinds[parts.owner[known]], (Kind.HOST_OP, Kind.RUNTIME))
    return np.flatnonzero(outside & (parts.track == scene.graph.window.track))


def _candidate(calls: _Calls, place: _Place) -> Candidate | None:
    scene = calls.scene
    mine = calls.thinking[np.isin(calls.thinking_module, place.modules)]
    operators = [at for m in place.modules for at in calls.by_module.get(m, ())]
    python = scene.host_ns(mine)
    spared = _spared(calls, place) if place.looped else 0
    changes = [_loop(calls, place)] if place.looped else []
    wanted = 2 * calls.between_ns * max(1, len(operators) - spared)
    if python > wanted:
        new = (scene.graph.segment_ns[mine] * (wanted / python)).astype(np.int64)
        changes.append(host(place.name, mine, new))
    if not changes:
        return None
    most = [n for n, _ in Counter(scene.names[at] for at in operators).most_common(4)]
    number = count(round(len(operators) / scene.steps))
    return Candidate(
        kind="host_overhead",
        subject=place.name,
        title=f"Loop of {number} small calls a step in {place.name}, most of {most[0]}"
        if place.looped
        else f"Python in {place.name} takes {duration(scene.per_step(python))} a step",
        advice="Do it in one operator on the whole tensor, or compile this region."
        if place.looped
        else "Move this work out of the step, or compile the region.",
        change=combined(place.name, changes),
        evidence={
            "python_ns": scene.per_step(python),
            "calls_per_step": round(len(operators) / scene.steps),
            "operators": most,
        },
        modules=tuple(place.name.split(" and ")) if place.name != OUTSIDE else (),
        calls=len(operators),
    )


def _groups(calls: _Calls, place: _Place) -> list[Int64]:
    """Repeated calls of one operator and shape: per module call, outside per step."""
    scene, out = calls.scene, []
    for module in place.modules:
        members: dict[tuple[str, int, int], list[int]] = defaultdict(list)
        for at in calls.by_module.get(module, ()):
            step = 0 if module >= 0 else scene.step_of(at)
            members[(*calls.key(at), step)].append(at)
        groups = [np.array(group, np.int64) for group in members.values() if len(group) > 1]
        out += [group for group in groups if np.median(calls.dur_ns[group]) <= SMALL_NS]
    return out


def _spared(calls: _Calls, place: _Place) -> int:
    """Calls that working on the whole tensor at once would not make."""
    return sum(len(group) - 1 for group in _groups(calls, place))


def _loop(calls: _Calls, place: _Place) -> Change:
    """Each operator once over all data: of its calls one dispatch and the data's traffic stay."""
    scene = calls.scene
    dur = calls.dur_ns
    left: dict[int, float] = {}
    for group in _groups(calls, place):
        total = float(dur[group].sum())
        traffic = scene.bytes_at(int(group[0])) * len(group) / BYTES_PER_NS
        new = min(total, float(dur[group].min()) + traffic)
        left |= dict.fromkeys(group.tolist(), new / total if total else 1.0)
    frames = np.array(sorted(left), np.int64)
    factor = np.ones(len(scene.structure.host.rows))
    factor[frames] = [left[at] for at in frames.tolist()]
    mine = scene.segments_of(scene.inside(scene.frames(frames)))
    owner = scene.graph.segments.owner[mine]
    chosen = scene.frames(frames)
    root = np.where(chosen[owner], owner, nearest(scene.structure.host.parent, chosen)[owner])
    return host("", mine, (scene.graph.segment_ns[mine] * factor[root]).astype(np.int64))
