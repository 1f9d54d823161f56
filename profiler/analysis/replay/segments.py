"""Host threads cut into segments: stretches in which one frame is the innermost open one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.replay.window import Window
from profiler.trace.batch import NONE, Bool
from profiler.trace.clock import Int64
from profiler.trace.link import Structure
from profiler.trace.model import Trace
from profiler.trace.nest import depths


@dataclass(slots=True)
class Segments:
    """Segments by (track, start); they cover each thread without gap or overlap.

    `owner` is the position in `Structure.host` of the innermost open frame,
    -1 outside of all: on the thread of the steps that is the program itself.
    """

    track: Int64
    ts: Int64
    dur: Int64
    owner: Int64


def segments(trace: Trace, structure: Structure, window: Window, marks: Bool) -> Segments:
    """The segments of every thread inside the window.

    `marks` (per position of `host`) are frames whose start must be a segment
    boundary even if they take no time on a coarse clock.
    """
    host = structure.host
    ts = np.clip(trace.events.ts[host.rows], window.begin_ns, window.end_ns)
    end = np.clip(trace.events.end[host.rows], window.begin_ns, window.end_ns)
    kept = np.flatnonzero(end > ts)
    points = np.flatnonzero(marks & (end == ts))
    track = trace.events.track[host.rows].astype(np.int64)
    depth = depths(host.parent)
    time = np.concatenate([ts[kept], end[kept], ts[points]])
    at = np.concatenate([kept, kept, points])
    opens = np.concatenate([np.ones(len(kept)), np.zeros(len(kept)), np.ones(len(points))])
    owner = np.concatenate([kept, host.parent[kept], host.parent[points]])
    rank = np.where(opens == 1, at, -depth[at])
    order = np.lexsort((rank, opens, time, track[at]))
    return _between(track[at][order], time[order], owner[order], window)


def _between(track: Int64, time: Int64, owner: Int64, window: Window) -> Segments:
    """Segments between boundaries; the stepping thread is filled up to the window's ends."""
    place = np.concatenate([[-1], np.zeros(len(track), np.int64), [1]])
    track = np.concatenate([[window.track], track, [window.track]])
    time = np.concatenate([[window.begin_ns], time, [window.end_ns]])
    owner = np.concatenate([[NONE], owner, [NONE]])
    order = np.lexsort((np.arange(len(track)), place, track))
    track, time, owner = track[order], time[order], owner[order]
    dur = time[1:] - time[:-1]
    keep = np.flatnonzero((track[1:] == track[:-1]) & (dur > 0))
    return Segments(track[keep], time[keep], dur[keep], owner[keep])
