"""Communication that runs on the host: what gloo's threads do, and what computes meanwhile.

A processor has no queue of its own for communication. torch's profiler records
each collective of gloo on the thread that runs it, and the operator that asked
for it on the thread that computes.
"""

from __future__ import annotations

import re

import numpy as np

from profiler.trace.batch import Bool
from profiler.trace.clock import Int64
from profiler.trace.intervals import merged
from profiler.trace.kinds import Kind
from profiler.trace.model import Trace

GLOO = re.compile(r"gloo:")
"""Names of collectives on the threads that run them."""

CALL = re.compile(r"_?c10d(?:_functional)?::")
"""Host operators that ask for communication; one that holds such a call may only wait."""

NO_COMPUTE = re.compile(r"(?:_?c10d(?:_functional)?|autograd|torch|fsdp)::|[^:]*$|[^:]*:[^:]")
"""Names of host operators that are no computation: bookkeeping, and marks without a namespace."""


def host_collectives(trace: Trace) -> Int64:
    """Rows of `Events` that are collectives of gloo, by start."""
    rows = np.flatnonzero(_named(trace, GLOO))
    return rows[np.argsort(trace.events.ts[rows], kind="stable")]


def host_compute(trace: Trace) -> tuple[Int64, Int64]:
    """Starts and ends (ns) of the stretches in which any thread of the host computes."""
    events = trace.events
    compute = (events.kind == Kind.HOST_OP) & ~_named(trace, NO_COMPUTE) & ~_holding_calls(trace)
    return merged(events.ts[compute], events.end[compute])


def _holding_calls(trace: Trace) -> Bool:
    """Events during which their own thread asks for communication."""
    events, calls = trace.events, _named(trace, CALL)
    holding = np.zeros(len(events), np.bool_)
    for track in np.unique(events.track[calls]).tolist():
        mine = np.flatnonzero(events.track == track)
        asked = np.sort(events.ts[calls & (events.track == track)])
        first = np.searchsorted(asked, events.ts[mine])
        holding[mine] = np.searchsorted(asked, events.end[mine]) > first
    return holding


def _named(trace: Trace, pattern: re.Pattern[str]) -> Bool:
    """Events whose name begins with `pattern`."""
    known = np.fromiter((pattern.match(s) is not None for s in trace.strings), np.bool_)
    return np.asarray(known[trace.events.name], np.bool_)
