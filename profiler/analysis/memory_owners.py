"""What memory is held at a peak, what it is for, and who allocated it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from profiler.analysis.findings.scene import folded
from profiler.analysis.report import MemoryOwner, MemoryShare
from profiler.analysis.steps import phase_of_mark, repetitions, step_event_rows
from profiler.trace.batch import NONE, Bool, Int32
from profiler.trace.clock import Int64
from profiler.trace.kinds import Kind
from profiler.trace.link import Structure
from profiler.trace.model import Trace

OWNERS = 20
OUTSIDE = "outside of operators"
GROWING = ("aten::cat", "aten::index_copy_", "aten::slice_scatter")
"""Operators that write a cache of keys and values."""

_NEVER = np.iinfo(np.int64).max


@dataclass(slots=True)
class Held:
    """Allocations held at the peak: bytes, category, and names of module and operator."""

    bytes: list[int]
    category: list[str]
    module: list[str]
    operator: list[str]


def held_at(trace: Trace, structure: Structure, rows: Int64, peak: int) -> Held | None:
    """What is held after record `rows[peak]`; `rows` are one device's records by time.

    A free belongs to the allocation before it at the same address. None where
    addresses were not recorded.
    """
    instants = trace.instants
    address, size = instants.address[rows], instants.bytes[rows]
    if not len(rows) or (address == NONE).all():
        return None
    order = np.lexsort((np.arange(len(rows)), address))
    freed = np.full(len(rows), len(rows), np.int64)
    pairs = (address[order][1:] == address[order][:-1]) & (size[order][:-1] > 0)
    pairs &= size[order][1:] < 0
    freed[order[:-1][pairs]] = order[1:][pairs]
    at = np.arange(len(rows))
    live = np.flatnonzero((size > 0) & (at <= peak) & (freed > peak))
    ts = instants.ts[rows]
    until = np.append(ts, _NEVER)[freed[live]]
    frame = _frames_at(trace, structure, instants.track[rows[live]].astype(np.int64), ts[live])
    places = _Places(trace, structure, frame)
    return Held(
        bytes=size[live].tolist(),
        category=places.categories(ts[live], until),
        module=places.modules(),
        operator=places.operators(),
    )


def memory_shares(held: Held, peak_bytes: int) -> list[MemoryShare]:
    """Bytes by category, the largest first; what was there before the recording is the rest.

    Empty where more is held than the totals say: then frees are missing from the record.
    """
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for category, size in zip(held.category, held.bytes, strict=True):
        sums[category][0] += size
        sums[category][1] += 1
    before = peak_bytes - sum(held.bytes)
    if before < 0:
        return []
    if before:
        sums["before"] = [before, 0]
    shares = [MemoryShare(category=c, bytes=b, allocations=n) for c, (b, n) in sums.items()]
    return sorted(shares, key=lambda share: (-share.bytes, share.category))


def memory_owners(held: Held) -> list[MemoryOwner]:
    """Modules and operators with the most bytes held."""
    sums: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0])
    columns = zip(held.module, held.operator, held.category, held.bytes, strict=True)
    for module, operator, category, size in columns:
        sums[module, operator, category][0] += size
        sums[module, operator, category][1] += 1
    owners = [
        MemoryOwner(module=m, operator=o, category=c, bytes=b, allocations=n)
        for (m, o, c), (b, n) in sums.items()
    ]
    return sorted(owners, key=lambda one: (-one.bytes, one.module, one.operator))[:OWNERS]


def _frames_at(trace: Trace, structure: Structure, track: Int64, ts: Int64) -> Int64:
    """Position of the innermost host frame that is open on a thread at a time, -1 for none."""
    rows = structure.host.rows
    begin, end = trace.events.ts[rows], trace.events.end[rows]
    own = trace.events.track[rows]
    out = np.full(len(ts), NONE, np.int64)
    for code in np.unique(track).tolist():
        frames, mine = np.flatnonzero(own == code), np.flatnonzero(track == code)
        place = np.searchsorted(begin[frames], ts[mine], side="right") - 1
        out[mine] = (
            np.where(place >= 0, frames[np.maximum(place, 0)], NONE) if len(frames) else NONE
        )
    open_now = out >= 0
    while open_now.any():
        passed = open_now & (end[np.maximum(out, 0)] < ts)
        out[passed] = structure.host.parent[out[passed]]
        open_now = passed & (out >= 0)
    return out


def _first(parent: Int32, at: Int64, wanted: Bool) -> Int64:
    """The nearest wanted frame at or around each position, -1 for none."""
    found = at.astype(np.int64)
    left = np.flatnonzero(found >= 0)
    left = left[~wanted[found[left]]]
    while len(left):
        found[left] = parent[found[left]]
        left = left[found[left] >= 0]
        left = left[~wanted[found[left]]]
    return found


class _Places:
    """Phases, operators and modules around some frames; -1 is no frame."""

    def __init__(self, trace: Trace, structure: Structure, frame: Int64) -> None:
        rows, parent = structure.host.rows, structure.host.parent
        self._strings, self._codes = trace.strings, trace.events.name[rows]
        self._end = trace.events.end[rows]
        kinds = trace.events.kind[rows]
        is_op = np.asarray(kinds == Kind.HOST_OP)
        self._op = _first(parent, frame, is_op)
        self._root = _outermost(parent, self._op, is_op)
        self._module = _first(parent, frame, np.asarray(kinds == Kind.MODULE))
        self._words = _phase_words(trace)
        known = np.fromiter((word in _PHASES for word in self._words), np.bool_, len(self._words))
        self._mark = _first(parent, frame, known[self._codes])
        backward = np.fromiter((word == "backward" for word in self._words), np.bool_)
        self._trains = bool(backward[self._codes].any())
        marks = step_event_rows(trace)
        ts, end = trace.events.ts[marks].tolist(), trace.events.end[marks].tolist()
        bounds = list(zip(ts, end, strict=True))
        self._steps = bounds or [(a, b) for _, a, b in repetitions(trace, structure)]

    def categories(self, ts: Int64, until: Int64) -> list[str]:
        """What each allocation is for, from where it was made and how long it was held."""
        columns = zip(ts.tolist(), until.tolist(), strict=True)
        return [self._category(n, begun, end) for n, (begun, end) in enumerate(columns)]

    def _category(self, n: int, ts: int, until: int) -> str:
        root, mark = int(self._root[n]), int(self._mark[n])
        if root >= 0 and until <= int(self._end[root]):
            return "temporary"
        outlives = until > next((b for a, b in self._steps if a <= ts < b), _NEVER - 1)
        phase = self._words[int(self._codes[mark])] if mark >= 0 else ""
        if phase == "optimizer":
            return "optimiser" if outlives else "temporary"
        if phase == "backward":
            return "gradients"
        if not outlives or self._trains:
            return "activations"
        return "kv cache" if self._name(self._op[n]) in GROWING else "kept"

    def _name(self, at: np.int64) -> str:
        return self._strings[int(self._codes[at])] if at >= 0 else ""

    def modules(self) -> list[str]:
        """Path of the module around each frame, empty for none."""
        return [folded(self._name(at)) for at in self._module]

    def operators(self) -> list[str]:
        """The outermost operator around each frame."""
        return [self._name(at) or OUTSIDE for at in self._root]


def _outermost(parent: Int32, at: Int64, wanted: Bool) -> Int64:
    """The outermost wanted frame around wanted positions, -1 for none."""
    out = at.copy()
    around = np.append(parent, NONE).astype(np.int64)  # index -1 finds the NONE
    above = around[at]
    while (above >= 0).any():
        above = _first(parent, above, wanted)
        out = np.where(above >= 0, above, out)
        above = around[above]
    return out


def _phase_words(trace: Trace) -> list[str]:
    """Training phase by name, empty for none; autograd's nodes are backward."""
    node = trace.matching("backward_node").tolist()
    return [
        "backward" if is_node else phase_of_mark(name) or ""
        for name, is_node in zip(trace.strings, node, strict=True)
    ]


_PHASES = ("forward", "backward", "optimizer")
