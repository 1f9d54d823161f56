"""Other host threads: what started their work and who waited for its end (autograd threads)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from profiler.analysis.replay.segments import Segments
from profiler.trace.batch import Bool
from profiler.trace.clock import Int64
from profiler.trace.kinds import Kind
from profiler.trace.link import Structure
from profiler.trace.model import Trace

CLOCK_NS = 5_000
"""Two threads' times may disagree by this much around a hand-over."""


@dataclass(frozen=True, slots=True)
class Burst:
    """Work of another thread inside one segment of the stepping thread.

    `segment` is that segment; the burst runs from `begin_ns` to `end_ns` on
    `track`. `joined`: the stepping thread went on only after its end.
    """

    track: int
    segment: int
    begin_ns: int
    end_ns: int
    joined: bool
    recorded: bool


def bursts(trace: Trace, structure: Structure, parts: Segments, stepping: int) -> list[Burst]:
    """Bursts of the other threads, one per thread and segment of the stepping thread.

    A burst that ends inside a segment in which the stepping thread did
    nothing else of note (the burst fills at least half of it) was waited for.
    """
    own = np.flatnonzero(parts.track == stepping)
    if not len(own):
        return []
    is_call = trace.events.kind[structure.host.rows] == Kind.RUNTIME
    out = []
    for track in np.unique(parts.track).tolist():
        if track != stepping:
            mine = np.flatnonzero((parts.track == track) & (parts.owner >= 0))
            out += _of_thread(parts, own, mine, is_call)
    running = _autograd_threads(trace, structure)
    return [replace(burst, recorded=burst.track in running) for burst in out]


def _of_thread(parts: Segments, own: Int64, mine: Int64, is_call: Bool) -> list[Burst]:
    if not len(mine):
        return []
    ts, ends = parts.ts[mine], parts.ts[mine] + parts.dur[mine]
    home = np.searchsorted(parts.ts[own], ts, side="right") - 1
    inside = home >= 0
    out = []
    track = int(parts.track[mine[0]])
    for place in np.unique(home[inside]).tolist():
        segment = int(own[place])
        members = np.flatnonzero(home == place)
        until = int(parts.ts[segment] + parts.dur[segment])
        begin, last = int(ts[members[0]]), int(ends[members].max())
        whole = ends[members] <= until
        end = int(ends[members][whole].max()) if whole.any() else begin
        busy = int((ends[members] - ts[members]).sum())
        owner = int(parts.owner[segment])
        joined = last <= until + CLOCK_NS and 2 * busy >= int(parts.dur[segment])
        joined = joined and not (owner >= 0 and bool(is_call[owner]))
        out.append(Burst(track, segment, begin, end, joined, recorded=False))
    return out


def _autograd_threads(trace: Trace, structure: Structure) -> set[int]:
    """Threads that run autograd nodes: being started and waited for is how they work."""
    rows = structure.host.rows
    backward = trace.matching("backward_node")[trace.events.name[rows]]
    return set(trace.events.track[rows[backward]].tolist())
