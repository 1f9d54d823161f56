"""Copies, casts and concatenations that only move data that was there already."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from math import log

import numpy as np

from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.types import Candidate
from profiler.analysis.replay.change import Change, combined, host
from profiler.analysis.roofline.calls import (
    WIDTHS,
    OperatorCall,
    Tensor,
    dtype_name,
    parse_call,
)
from profiler.trace.clock import Int64
from profiler.trace.kinds import Kind
from profiler.trace.nest import nearest
from profiler.units import duration

_COPYING = re.compile(r"^aten::(to|_to_copy|contiguous|clone|repeat|repeat_interleave|cat)$")
_FLOATS = ("float64", "float32", "bfloat16", "float16")
PYTHON_NS = 2_000
"""Python between two calls that frees nothing large."""

_ADVICE = {
    "cast": "Keep the tensor in one type, or cast the weight once outside of the step.",
    "layout": "Produce the layout that is needed, or let the next operator take the strides.",
    "repeat": "Broadcast or expand instead; attention kernels take fewer key heads than query "
    "heads as they are.",
    "growing cat": "Allocate the cache once and write the new part in place.",
}


def find(scene: Scene) -> list[Candidate]:
    """One candidate per sort of copy, operator and module."""
    groups: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    positions = _outermost(scene)
    growing = _growing(scene, positions)
    for at in positions.tolist():
        sort = "growing cat" if at in growing else _sort(scene, at)
        if sort is not None:
            module = int(scene.module_of[at])
            path = scene.module_name(module) if module >= 0 else ""
            groups[sort, scene.names[at], path].append(at)
    made = [_candidate(scene, key, np.array(members)) for key, members in groups.items()]
    return [one for one in made if one is not None]


def _outermost(scene: Scene) -> Int64:
    copying = scene.named(_COPYING)
    above = nearest(scene.structure.host.parent, copying) if len(copying) else copying
    return scene.in_window(np.flatnonzero(copying & (above < 0)))


def call_at(scene: Scene, position: int) -> OperatorCall | None:
    """The recorded call of an operator at a position of `Structure.host`."""
    row = int(scene.structure.host.rows[position])
    shapes, dtypes = (scene.trace.events.sparse[c] for c in ("shapes", "dtypes"))
    texts = []
    for column in (shapes, dtypes):
        place = int(np.searchsorted(column.rows, row))
        known = place < len(column.rows) and int(column.rows[place]) == row
        texts.append(scene.trace.strings[int(column.values[place])] if known else "")
    if not texts[0]:
        return None
    try:
        return parse_call(scene.names[position], *texts)
    except ValueError:
        return None


def _sort(scene: Scene, position: int) -> str | None:
    """What a copying operator does, None where it copied nothing or moved between devices."""
    name = scene.names[position].removeprefix("aten::")
    if name == "cat":
        return None
    if name in ("to", "_to_copy"):
        inner = _inner_copy(scene, position)
        types = _copy_types(scene, inner) if inner is not None else None
        if types is None or types[0] == types[1]:
            return None
        return "cast" if all(t in _FLOATS for t in types) else None
    if name.startswith("repeat"):
        return "repeat"
    return "layout"


def _inner_copy(scene: Scene, position: int) -> int | None:
    end = position + 1
    parent = scene.structure.host.parent
    while end < len(parent) and parent[end] >= position:
        if scene.names[end] == "aten::copy_":
            return end
        end += 1
    return None


def _copy_types(scene: Scene, position: int) -> tuple[str, str] | None:
    """Types of target and source of `copy_`."""
    call = call_at(scene, position)
    if call is None:
        return None
    target, source = call.tensor(0), call.tensor(1)
    if target is None or source is None:
        return None
    return dtype_name(target.dtype) or "", dtype_name(source.dtype) or ""


def _growing(scene: Scene, positions: Int64) -> set[int]:
    """Concatenations whose first operand grows from call to call by what is appended."""
    lines: dict[tuple[int, tuple[int, ...]], list[tuple[int, Tensor]]] = defaultdict(list)
    for at in positions.tolist():
        if scene.names[at] != "aten::cat":
            continue
        call = call_at(scene, at)
        parts = call.tensors() if call is not None else ()
        if len(parts) == 2 and len(parts[0].shape) == len(parts[1].shape):
            lines[len(parts[0].shape), parts[1].shape].append((at, parts[0]))
    out: set[int] = set()
    for (_, added), calls in lines.items():
        shapes = sorted({tensor.shape for _, tensor in calls})
        steps = [
            tuple(b - a for a, b in zip(one, two, strict=True)) for one, two in pairwise(shapes)
        ]
        grown = [step for step in steps if _appends(step, added)]
        if steps and len(grown) * 2 >= len(steps):
            out |= {at for at, tensor in calls if tensor.elements > 4 * _elements(added)}
    return out


def _appends(step: tuple[int, ...], added: tuple[int, ...]) -> bool:
    moved = [dim for dim, change in enumerate(step) if change]
    return len(moved) == 1 and step[moved[0]] > 0 and step[moved[0]] % added[moved[0]] == 0


def _elements(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape, dtype=np.int64))


def _candidate(scene: Scene, key: tuple[str, str, str], members: Int64) -> Candidate | None:
    sort, name, module = key
    frames = scene.inside(scene.frames(members))
    works = scene.works_of(frames)
    if scene.on_device and (
        not len(works) or bool((scene.work_kind[works] == Kind.COPY).all() and _moves(scene, works))
    ):
        return None
    ns = (
        int(scene.work_ns[works].sum())
        if scene.on_device
        else scene.host_ns(scene.segments_of(frames))
    )
    where = f" in {module}" if module else ""
    return Candidate(
        kind="redundant_copy",
        subject=name if sort != "growing cat" else f"{name} (growing)",
        title=f"{_TITLES[sort]}{where}: {duration(scene.per_step(ns))} a step",
        advice=_ADVICE[sort],
        change=_change(scene, sort, members),
        evidence={"sort": sort, "time_ns": scene.per_step(ns), "calls_per_step": len(members)},
        modules=scene.modules(members),
        calls=len(members),
    )


_TITLES = {
    "cast": "Tensors are cast to another type and back",
    "layout": "Tensors are copied into another layout",
    "repeat": "Tensors are repeated in memory",
    "growing cat": "The cache is copied as a whole to append to it",
}


def _moves(scene: Scene, works: Int64) -> bool:
    """Whether these are copies between host and device."""
    return all(re.search(r"HtoD|DtoH|H2D|D2H|Host", name) for name in scene.work_names(works))


def _products(scene: Scene, members: Int64) -> list[Change]:
    """Matrix products beside the casts then run in the narrow type, as fast as its others here."""
    inner = [at for m in members[:8].tolist() if (at := _inner_copy(scene, m)) is not None]
    types = [name for at in inner for name in _copy_types(scene, at) or ()]
    narrow = min(types, key=lambda name: WIDTHS[name], default="")
    matrix = [row for row in scene.roof.rows if row.cost.unit == "matrix" and row.total_ns]
    others = [row for row in matrix if row.cost.dtype == narrow]
    modules = np.unique(scene.module_of[members])
    out = []
    for row in matrix:
        if not others or WIDTHS[row.cost.dtype] <= WIDTHS[narrow]:
            continue
        number = scene.roof.signatures.index(row.signature)
        ops = scene.in_window(scene.ops[np.flatnonzero(scene.roof.signature == number)])
        beside = ops[np.isin(scene.module_of[ops], modules[modules >= 0])]
        like = min(others, key=lambda other: abs(log(other.cost.flops / row.cost.flops)))
        per_flop = like.total_ns / like.calls / like.cost.flops
        factor = per_flop * row.cost.flops * row.calls / row.total_ns
        if len(beside):
            out.append(scene.scaled("", scene.inside(scene.frames(beside)), factor))
    return out


def _change(scene: Scene, sort: str, members: Int64) -> Change:
    """Gone, but of a growing concatenation the part that is new stays to be written."""
    frames = scene.inside(scene.frames(members))
    if sort == "cast":
        beside = [*_products(scene, members), *_python_after(scene, members)]
        return combined(sort, [scene.without(sort, frames), *beside])
    if sort != "growing cat":
        return combined(sort, [scene.without(sort, frames), *_python_after(scene, members)])
    shares = []
    for at in members.tolist():
        call = call_at(scene, at)
        parts = call.tensors() if call is not None else ()
        total = sum(t.size_bytes for t in parts)
        shares.append(parts[-1].size_bytes / total if total else 1.0)
    smaller = scene.scaled(sort, frames, float(np.mean(shares)))
    return combined(sort, [smaller, *_python_after(scene, members)])


def _python_after(scene: Scene, members: Int64) -> list[Change]:
    """On a processor: the freeing of what was copied, in the Python that follows, goes as well."""
    if scene.on_device:
        return []
    after = scene.python_after(members)
    return [host("", after, np.minimum(scene.graph.segment_ns[after], PYTHON_NS))]
