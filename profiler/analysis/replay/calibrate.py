"""Lags of edges: what a launch, a gap and a return take on this machine, and the residuals."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profiler.analysis.replay.graph import EdgeKind, Edges
from profiler.trace.clock import Int64

_CAPS_NS = {EdgeKind.LAUNCH: 10_000, EdgeKind.STREAM: 5_000, EdgeKind.BLOCKING: 20_000}
"""Longer than this is waiting for something unknown, not the cost of the step itself."""

_USUAL_NS = {EdgeKind.LAUNCH: 4_000, EdgeKind.STREAM: 1_000, EdgeKind.BLOCKING: 2_000}
"""What these take on common accelerators, for traces in which none of a kind ever decided."""


def nominal_lags(kind: npt.NDArray[np.int8], source: Int64, target: Int64, room: Int64) -> Int64:
    """What each edge takes when it is the one that holds its target up; 0 for other kinds.

    `room` is the measured time from source to target. The lag of a kind is
    the 10th percentile of the room of edges that certainly decided: launches
    onto an idle stream, gaps before work that was launched long before,
    returns of calls that had to wait.
    """
    lag = np.zeros(len(room), np.int64)
    size = int(target.max()) + 1 if len(target) else 0
    least = np.full(size, np.iinfo(np.int64).max)
    stands = room >= 0
    np.minimum.at(least, target[stands], room[stands])
    deciding = stands & (room == least[target]) if size else stands
    for one, cap in _CAPS_NS.items():
        mine = (kind == one) & stands
        chosen = mine & deciding & (room <= cap)
        lag[mine] = int(np.percentile(room[chosen], 10)) if chosen.any() else _USUAL_NS[one]
    return lag


def calibrated(edges: Edges, start: Int64, length: Int64) -> Edges:
    """Edges whose lags reproduce `start`: the tightest edge of each node takes up its residual.

    The time between the end of what held a node up and its start (launch
    latency, a gap) belongs to the tightest of its edges; the others keep the
    lag they came with.
    """
    order = np.argsort(edges.target, kind="stable")
    edges = Edges(
        edges.source[order],
        edges.target[order],
        edges.lag[order],
        edges.from_end[order],
        edges.kind[order],
        edges.inferred[order],
    )
    if not len(edges):
        return edges
    value = start[edges.source] + np.where(edges.from_end, length[edges.source], 0) + edges.lag
    slack = start[edges.target] - value
    first = np.flatnonzero(np.concatenate([[True], edges.target[1:] != edges.target[:-1]]))
    least = np.minimum.reduceat(slack, first)
    group = np.cumsum(np.isin(np.arange(len(edges)), first)) - 1
    tight = np.flatnonzero(slack == least[group])
    chosen = tight[np.concatenate([[True], group[tight][1:] != group[tight][:-1]])]
    edges.lag[chosen] += slack[chosen]
    return edges
