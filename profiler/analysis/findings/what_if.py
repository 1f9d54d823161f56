"""The price of any change a reader thinks of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from profiler.analysis.collectives import collective_kind
from profiler.analysis.findings.ranking import confidence_of, exclusive_ns, measured_path
from profiler.analysis.findings.scene import Scene, folded
from profiler.analysis.findings.stored import Replayed, replayed
from profiler.analysis.findings.types import Confidence
from profiler.analysis.operators import module_path
from profiler.analysis.replay.change import Change, combined
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

    @property
    def loss_ns_per_step(self) -> int:
        """What a step would take longer, 0 for a gain."""
        return max(0, -self.gain_ns_per_step)


def what_if(scene: Scene, *requests: WhatIf) -> Price:
    """Price one change, or several made together.

    Raises `UserError` for a name that is not in the trace or a factor below zero.
    """
    return price(replayed(scene, measured_path(scene.graph)), *requests)


def price(kept: Replayed, *requests: WhatIf) -> Price:
    """The same from replayed steps, stored or not."""
    chosen = [_change(kept, request) for request in requests]
    change = combined("what if", [one for one, _ in chosen])
    (span,) = spans_ns(kept.graph, [change])
    gain = kept.per_step(kept.graph.span_ns - span)
    sure = confidence_of(kept.path, guessed=False)
    low = min(gain, kept.per_step(exclusive_ns(kept.graph, change))) if sure == "low" else None
    return Price(
        gain_ns_per_step=gain,
        share=gain / kept.step_ns if kept.step_ns else 0.0,
        step_ns=kept.step_ns - gain,
        confidence=sure,
        low_ns_per_step=low,
        calls=sum(count for _, count in chosen),
    )


def _change(kept: Replayed, request: WhatIf) -> tuple[Change, int]:
    if not 0 <= request.factor <= 1000:
        raise UserError(
            f"factor {request.factor} is not between 0 and 1000", "0.5 is twice as fast"
        )
    if request.target in ("kernel", "collective"):
        return _device_change(kept, request)
    frames = _frames(kept, request)
    calls = np.flatnonzero(frames & kept.named.counted)
    if not len(calls):
        raise _absent(request)
    inside = kept.inside(kept.frames(calls))
    if request.target.startswith("host_of") or not kept.on_device:
        return kept.with_host("", inside, request.factor), len(calls)
    if request.factor == 0:
        return kept.without(request.name, inside), len(calls)
    both = [kept.scaled("", inside, request.factor), kept.with_host("", inside, request.factor)]
    return combined(request.name, both), len(calls)


def _absent(request: WhatIf) -> UserError:
    what = request.target.rpartition("_")[2]
    return UserError(
        f"there is no {what} {request.name!r} in these steps", "take a name of the tables"
    )


def _frames(kept: Replayed, request: WhatIf) -> Bool:
    names = kept.named.names
    if request.target in ("module", "host_of_module"):
        codes = [
            code
            for code in kept.names_of(Kind.MODULE)
            if request.name in (folded(names[code]), module_path(names[code]))
        ]
        return kept.frames_named(codes, Kind.MODULE)
    return kept.frames_named(_codes(names, request.name), Kind.HOST_OP)


def _codes(names: list[str], name: str) -> list[int]:
    return [code for code, one in enumerate(names) if one == name]


def _device_change(kept: Replayed, request: WhatIf) -> tuple[Change, int]:
    names = kept.named.names
    if request.target == "collective":
        same = [c for c, n in enumerate(names) if request.name in (n, collective_kind(n))]
        works = kept.works_named(same)
        works = works[kept.work_kind[works] == Kind.COMMUNICATION]
    else:
        works = kept.works_named(_codes(names, request.name))
    if not len(works):
        raise _absent(request)
    return kept.with_work_ns("", works, kept.work_ns[works] * request.factor), len(works)
