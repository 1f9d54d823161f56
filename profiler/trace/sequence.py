"""Backward operators and the forward operators whose autograd nodes they run."""

from __future__ import annotations

import numpy as np

from profiler.trace.batch import NONE, Int32
from profiler.trace.link import Structure
from profiler.trace.model import Trace


def forward_positions(trace: Trace, structure: Structure) -> Int32:
    """Per position of `Structure.host`: the position of its forward operator, else -1.

    Set for operators that carry a sequence number and either a forward
    thread or the name of an autograd node. The forward operator is the last
    one started with the same number: an operator is recorded with the number
    the next autograd node will get, so of several with one number the last
    made the node.
    """
    host, events = structure.host, trace.events
    out = np.full(len(host.rows), NONE, np.int32)
    numbers = events.dense("sequence")[host.rows]
    numbered = np.flatnonzero(numbers >= 0)
    if not len(numbered):
        return out
    threads = events.dense("forward_thread")[host.rows[numbered]]
    node = trace.matching("backward_node")[events.name[host.rows[numbered]]]
    backward = (threads > 0) | node
    forward = numbered[~backward]
    if not len(forward):
        return out
    order = np.lexsort((events.ts[host.rows[forward]], numbers[forward]))
    forward = forward[order]
    ids = numbers[forward]
    wanted = numbers[numbered[backward]]
    at = np.searchsorted(ids, wanted, side="right") - 1
    hit = (at >= 0) & (ids[np.maximum(at, 0)] == wanted)
    out[numbered[backward][hit]] = forward[at[hit]]
    return out
