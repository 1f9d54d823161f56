"""Device work of a window by stream: issue times, order, and which call issued it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.launches import graph_work
from profiler.analysis.replay.window import Window
from profiler.trace.batch import NONE, Bool
from profiler.trace.clock import Int64
from profiler.trace.kinds import Kind
from profiler.trace.link import Structure
from profiler.trace.model import Trace


@dataclass(slots=True)
class Works:
    """Device work of the window, one entry per piece, by start.

    `index` points into `Trace.device`; `stream` numbers (device, stream)
    pairs; `launch` is the row of the launching call if that is in the window,
    else -1; `issued` is when it was launched (the begin of the recording where unknown).
    """

    index: Int64
    stream: Int64
    device: Int64
    ts: Int64
    end: Int64
    launch: Int64
    issued: Int64
    opaque: Bool

    def __len__(self) -> int:
        return len(self.index)


def works_of(trace: Trace, structure: Structure, window: Window) -> Works:
    """Work launched inside the window, and earlier work that still runs in it."""
    device, events = trace.device, trace.events
    launched = structure.launch >= 0
    # Work without a recorded launch was launched before the recording began.
    unknown = np.minimum(device.ts, trace.start_ns)
    issued = np.where(launched, events.ts[np.maximum(structure.launch, 0)], unknown)
    inside = (issued >= window.begin_ns) & (issued < window.end_ns)
    carried = (issued < window.begin_ns) & (device.end > window.begin_ns)
    late = ~window.marked & (device.end > window.begin_ns)
    index = np.flatnonzero((inside | carried | late) & (device.kind != Kind.WAIT))
    pair = device.device[index].astype(np.int64) * (len(trace.strings) + 1) + device.stream[index]
    _, stream = np.unique(pair, return_inverse=True)
    launch = np.where((inside | late)[index], structure.launch[index], NONE)
    return Works(
        index=index,
        stream=np.asarray(stream, np.int64),
        device=device.device[index].astype(np.int64),
        ts=device.ts[index],
        end=device.end[index],
        launch=launch,
        issued=issued[index],
        opaque=graph_work(trace, structure)[index],
    )


@dataclass(slots=True)
class Lane:
    """Work of one stream by issue; `latest[i]` is that with the latest end of the first i + 1."""

    issued: list[int]
    latest: list[int]


def lanes_of(works: Works) -> list[Lane]:
    """One lane per stream."""
    out = []
    for stream in range(int(works.stream.max()) + 1 if len(works) else 0):
        mine = np.flatnonzero(works.stream == stream)
        mine = mine[np.lexsort((works.ts[mine], works.issued[mine]))]
        ends = works.end[mine]
        reach = np.maximum.accumulate(ends)
        at = np.where(ends == reach, np.arange(len(mine)), 0)
        latest = mine[np.maximum.accumulate(at)]
        out.append(Lane(works.issued[mine].tolist(), latest.tolist()))
    return out
