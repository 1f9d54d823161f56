"""Neighbouring memory-bound operators on the same elements: one pass could do them all."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.types import Candidate
from profiler.analysis.replay.change import Change, combined
from profiler.analysis.roofline.calls import Tensor, parse_call
from profiler.analysis.roofline.registry import is_elementwise
from profiler.trace.clock import Int64
from profiler.units import size

FEWEST = 3
"""Operators that make a chain worth fusing."""

LEAST_ELEMENTS = 1 << 12


def find(scene: Scene) -> list[Candidate]:
    """One candidate per sequence of names and sizes; the same chain in all layers together."""
    signature = scene.roof.signature
    tensors = [_output(s.name, s.shapes, s.dtypes) for s in scene.roof.signatures]
    groups: dict[tuple[str, ...], list[list[int]]] = defaultdict(list)
    for chain in _chains(scene, tensors):
        made = [scene.roof.signatures[int(signature[at])] for at in chain]
        groups[(*(m.name for m in made), made[0].shapes)].append(chain)
    return [_candidate(scene, key[:-1], chains, tensors) for key, chains in groups.items()]


def _output(name: str, shapes: str, dtypes: str) -> Tensor | None:
    """The largest tensor of an element-wise call: the size of what it produces."""
    if not shapes:
        return None
    try:
        found = parse_call(name, shapes, dtypes).tensors()
    except ValueError:
        return None
    return max(found, key=lambda t: t.elements, default=None)


def _chains(scene: Scene, tensors: list[Tensor | None]) -> list[list[int]]:
    """Runs of positions of `Structure.ops`: neighbours, one module, equal element counts."""
    signature, ops = scene.roof.signature, scene.ops
    counted = np.flatnonzero(signature >= 0)
    inside = np.isin(ops[counted], scene.in_window(ops[counted]))
    counted = counted[inside]
    module = scene.module_of[ops[counted]].tolist()
    track = scene.trace.events.track[scene.structure.ops.rows[counted]].tolist()
    out: list[list[int]] = []
    current: list[int] = []
    previous: tuple[int, int, int] | None = None
    for at, mod, thread in zip(counted.tolist(), module, track, strict=True):
        number = int(signature[at])
        made = tensors[number]
        light = is_elementwise(scene.roof.signatures[number].name) and made is not None
        key = (mod, thread, made.elements) if light and made is not None else None
        if key is None or key != previous:
            out.append(current)
            current = []
        if key is not None and key[2] >= LEAST_ELEMENTS:
            current.append(at)
        previous = key
    out.append(current)
    return [chain for chain in out if len(chain) >= FEWEST]


def _candidate(
    scene: Scene, names: tuple[str, ...], chains: list[list[int]], tensors: list[Tensor | None]
) -> Candidate:
    traffic = [_traffic(scene, chain, tensors) for chain in chains]
    moved = sum(total for total, _ in traffic)
    saved = moved - sum(outer for _, outer in traffic)
    heads = scene.ops[np.array([chain[0] for chain in chains])]
    short = " → ".join(name.removeprefix("aten::") for name in names)
    return Candidate(
        kind="fusable_chain",
        subject=short,
        title=f"{len(names)} neighbouring operators each read and write the same elements: {short}",
        advice="Fuse them in one kernel or compile this region; the bytes between them need not "
        "leave the chip.",
        change=_fused(scene, np.array(chains), 1 - saved / moved if moved else 1.0),
        evidence={
            "operators": list(names),
            "bytes_saved_per_step": scene.per_step(saved),
            "saved": size(scene.per_step(saved)),
            "bytes_per_step": scene.per_step(moved),
        },
        modules=scene.modules(heads),
        calls=len(chains),
    )


def _traffic(scene: Scene, chain: list[int], tensors: list[Tensor | None]) -> tuple[int, int]:
    """Bytes the chain moves now, and those of its outer inputs and output alone."""
    numbers = [int(scene.roof.signature[at]) for at in chain]
    total = sum(scene.roof.costs[number].size_bytes for number in numbers)
    between = 0
    for number in numbers[:-1]:
        made = tensors[number]
        between += 2 * made.size_bytes if made is not None else 0
    return total, max(total - between, total // (2 * len(chain)))


def _fused(scene: Scene, chains: Int64, factor: float) -> Change:
    """The first operator of each chain does all the work at the lower traffic; the rest are gone.

    `chains` is one row per chain.
    """
    first = scene.inside(scene.frames(scene.ops[chains[:, 0]]))
    rest = scene.inside(scene.frames(scene.ops[chains[:, 1:].reshape(-1)]))
    ns = scene.roof.time_ns[chains]
    own = int(ns[:, 0].sum())
    share = float(ns.sum()) * factor / own if own else 1.0
    return combined("", [scene.scaled("", first, share), scene.without("", rest)])
