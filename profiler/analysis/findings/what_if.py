"""The price of any change a reader thinks of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from profiler.analysis.collectives import collective_kind
from profiler.analysis.findings.ranking import confidence_of, exclusive_ns, measured_path
from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.types import Confidence
from profiler.analysis.operators import module_path
from profiler.analysis.replay.change import Change, combined, host
from profiler.analysis.replay.schedule import spans_ns
from profiler.errors import UserError
from profiler.trace.batch import Bool
from profiler.trace.kinds import Kind

Target = Literal["operator", "module", "kernel", "collective", "host_of_operator", "host_of_module"]
TARGETS: tuple[Target, ...] = (
    "operator",
    "module",
    "kernel",
    "collective",
    "host_of_operator",
    "host_of_module",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """`name` would take `factor` times as long: 0.5 twice as fast, 0 gone or hidden, 2 slower.

    operator, module: everything inside, device and host; kernel, collective:
    device work of that name; host_of_...: host time alone. A module path with
    `*` for layer numbers means all of them.
    """

    target: Target
    name: str
    factor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a change would bring per step; negative gains are losses."""

    gain_ns_per_step: int
    share: float
    step_ns: int
    confidence: Confidence
    low_ns_per_step: int | None
    calls: int


def what_if(scene: Scene, *requests: WhatIf) -> Price:
    """Price one change, or several made together.

    Raises `UserError` for a name that is not in the trace or a factor below zero.
    """
    chosen = [_change(scene, request) for request in requests]
    change = combined("what if", [one for one, _ in chosen])
    measured, span = spans_ns(scene.graph, [Change(""), change])
    gain = scene.per_step(measured - span)
    sure = confidence_of(measured_path(scene), guessed=False)
    low = min(gain, scene.per_step(exclusive_ns(scene, change))) if sure == "low" else None
    return Price(
        gain_ns_per_step=gain,
        share=gain / scene.step_ns if scene.step_ns else 0.0,
        step_ns=scene.step_ns - gain,
        confidence=sure,
        low_ns_per_step=low,
        calls=sum(count for _, count in chosen),
    )


def _change(scene: Scene, request: WhatIf) -> tuple[Change, int]:
    if not 0 <= request.factor <= 1000:
        raise UserError(
            f"factor {request.factor} is not between 0 and 1000", "0.5 is twice as fast"
        )
    if request.target in ("kernel", "collective"):
        return _device_change(scene, request)
    frames = _frames(scene, request)
    calls = scene.in_window(np.flatnonzero(frames))
    if not len(calls):
        raise UserError(
            f"there is no {request.target.rpartition('_')[2]} {request.name!r} in these steps",
            "take a name of the tables",
        )
    inside = scene.inside(scene.frames(calls))
    if request.target.startswith("host_of") or not scene.on_device:
        return _host_change(scene, inside, request.factor), len(calls)
    if request.factor == 0:
        return scene.without(request.name, inside), len(calls)
    both = [scene.scaled("", inside, request.factor), _host_change(scene, inside, request.factor)]
    return combined(request.name, both), len(calls)


def _host_change(scene: Scene, inside: Bool, factor: float) -> Change:
    mine = scene.segments_of(inside)
    return host("", mine, (scene.graph.segment_ns[mine] * factor).astype(np.int64))


def _frames(scene: Scene, request: WhatIf) -> Bool:
    if request.target in ("module", "host_of_module"):
        modules = np.flatnonzero(scene.kinds == Kind.MODULE)
        named = [
            at
            for at in modules.tolist()
            if request.name in (scene.module_name(at), module_path(scene.names[at]))
        ]
        return scene.frames(np.array(named, np.int64))
    is_op = scene.kinds == Kind.HOST_OP
    same = np.array([name == request.name for name in scene.names], np.bool_)
    return np.asarray(same & is_op)


def _device_change(scene: Scene, request: WhatIf) -> tuple[Change, int]:
    works = np.arange(len(scene.graph.works))
    names = scene.work_names(works)
    if request.target == "collective":
        comm = scene.work_kind == Kind.COMMUNICATION
        same = [request.name in (n, collective_kind(n)) for n in names]
        works = works[comm & np.array(same, np.bool_)]
    else:
        works = works[np.array([n == request.name for n in names], np.bool_)]
    if not len(works):
        raise UserError(
            f"there is no {request.target} {request.name!r} in these steps",
            "take a name of the tables",
        )
    return scene.with_work_ns("", works, scene.work_ns[works] * request.factor), len(works)
