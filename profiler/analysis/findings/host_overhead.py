"""Python and dispatch on runs whose operators run on the host itself."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np

from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.types import Candidate
from profiler.analysis.replay.change import Change, combined, host
from profiler.trace.clock import Int64
from profiler.trace.kinds import Kind
from profiler.trace.nest import nearest
from profiler.units import count, duration

REPEATED = 8
"""Calls of one operator inside one module call that are a loop over data."""

OUTSIDE = "outside of modules"


@dataclass(frozen=True, slots=True)
class _Usual:
    """Calibrated costs: dispatch of one call per operator name, and Python between two calls."""

    dispatch_ns: dict[str, float]
    between_ns: float


def find(scene: Scene) -> list[Candidate]:
    """Per module: loops of small operators, and Python time above the usual between two calls."""
    if scene.on_device or scene.trace.device_kind != "cpu":
        return []
    roots = _root_operators(scene)
    usual = _usual(scene, roots)
    calls: dict[int, list[int]] = defaultdict(list)
    for at in roots.tolist():
        calls[int(scene.module_of[at])].append(at)
    by_module: dict[str, list[int]] = defaultdict(list)
    for module in {*calls, *_thinking_modules(scene)}:
        by_module[scene.module_name(module) if module >= 0 else OUTSIDE].append(module)
    made = [_candidate(scene, name, mods, calls, usual) for name, mods in by_module.items()]
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


def _module_of_segments(scene: Scene, segments: Int64) -> Int64:
    owner = scene.graph.segments.owner[segments]
    return np.where(owner >= 0, scene.module_of[np.maximum(owner, 0)], -1)


def _thinking_modules(scene: Scene) -> set[int]:
    return set(_module_of_segments(scene, _thinking(scene)).tolist())


def _usual(scene: Scene, roots: Int64) -> _Usual:
    events = scene.trace.events
    dur = events.dur[scene.structure.host.rows[roots]]
    least: dict[str, float] = {}
    for at, ns in zip(roots.tolist(), dur.tolist(), strict=True):
        name = scene.names[at]
        least[name] = min(least.get(name, ns), ns)
    gaps = scene.graph.segment_ns[_thinking(scene)]
    gaps = gaps[gaps > 0]
    return _Usual(least, float(np.percentile(gaps, 25)) if len(gaps) else 0.0)


def _candidate(
    scene: Scene, name: str, modules: list[int], calls: dict[int, list[int]], usual: _Usual
) -> Candidate | None:
    thinking = _thinking(scene)
    mine = thinking[np.isin(_module_of_segments(scene, thinking), modules)]
    loops = [m for m in modules if m >= 0 and _looped(scene, calls.get(m, []))]
    operators = [at for m in modules for at in calls.get(m, [])]
    python = scene.host_ns(mine)
    wanted = usual.between_ns * 2 * max(1, len(operators))
    changes = [_loop(scene, calls[m], usual) for m in loops]
    looped = sum(len(calls[m]) - len({scene.names[at] for at in calls[m]}) for m in loops)
    wanted -= usual.between_ns * 2 * looped
    if python > wanted:
        factor = max(0.0, wanted / python)
        new = (scene.graph.segment_ns[mine] * factor).astype(np.int64)
        changes.append(host(name, mine, new))
    if not changes:
        return None
    title = (
        f"{name} loops over {count(round(looped / scene.steps))} small operator calls a step"
        if loops
        else f"Python in {name} takes {duration(scene.per_step(python))} a step"
    )
    return Candidate(
        kind="host_overhead",
        subject=name,
        title=title,
        advice="Do it in one operator on the whole tensor, or compile this region."
        if loops
        else "Move this work out of the step, or compile the region.",
        change=combined(name, changes),
        evidence={
            "python_ns": scene.per_step(python),
            "calls_per_step": round(len(operators) / scene.steps),
            "operators": [n for n, _ in Counter(scene.names[a] for a in operators).most_common(4)],
        },
        modules=(name,) if name != OUTSIDE else (),
        calls=len(operators),
    )


def _looped(scene: Scene, operators: list[int]) -> bool:
    counts = Counter(scene.names[at] for at in operators)
    return bool(counts) and counts.most_common(1)[0][1] >= REPEATED


def _loop(scene: Scene, operators: list[int], usual: _Usual) -> Change:
    """Each operator once over all data: of repeated calls one dispatch and all data time stay."""
    parts = []
    events, rows = scene.trace.events, scene.structure.host.rows
    by_name: dict[str, list[int]] = defaultdict(list)
    for at in operators:
        by_name[scene.names[at]].append(at)
    for name, members in by_name.items():
        if len(members) < 2:
            continue
        total = float(events.dur[rows[np.array(members)]].sum())
        spared = usual.dispatch_ns[name] * (len(members) - 1)
        frames = scene.inside(scene.frames(np.array(members)))
        parts.append(scene.scaled(name, frames, max(0.0, 1 - spared / total) if total else 1.0))
    return combined("", parts)
