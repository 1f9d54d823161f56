"""How device work was launched: links, delays, queue depth, graph launches, blocking calls."""

from __future__ import annotations

import numpy as np

from profiler.analysis.report import Launches, Percentiles
from profiler.trace.batch import NONE, Bool
from profiler.trace.clock import Int64
from profiler.trace.kinds import Kind
from profiler.trace.link import Rule, Structure
from profiler.trace.model import Trace
from profiler.trace.vendors import rules


def launch_report(trace: Trace, structure: Structure) -> Launches:
    """The `launches` part of the report; see `Launches` for definitions."""
    device, events = trace.device, trace.events
    linked = np.asarray(structure.launch >= 0)
    calls, per_call = np.unique(structure.launch[linked], return_counts=True)
    works = np.zeros(len(events), np.int32)
    works[calls] = per_call
    graph = graph_work(trace, structure)
    single = linked & ~graph & (works[structure.launch] == 1)
    delay = device.ts[single] - events.end[structure.launch[single]]
    before = before_window(trace, structure)
    blocking = np.flatnonzero(_calls(trace, "blocking"))
    depth = queue_depths(trace, structure)
    return Launches(
        linked=int((structure.rule != Rule.NONE).sum()),
        unlinked=int((structure.rule == Rule.NONE).sum()),
        by_rule={
            rule.name.lower(): int((structure.rule == rule).sum())
            for rule in Rule
            if rule != Rule.NONE and (structure.rule == rule).any()
        },
        delay_ns=percentiles(np.maximum(delay, 0)),
        calls=int(_calls(trace, "launch").sum()),
        calls_with_work=len(calls),
        graph_calls=len(np.unique(structure.launch[graph])),
        graph_events=int(graph.sum()),
        graph_device_ns=int(device.dur[graph].sum()),
        before_window=int(before.sum()),
        before_window_ns=int(device.dur[before].sum()),
        short_kernels=int((device.dur[single] < events.dur[structure.launch[single]]).sum()),
        queue_depth=percentiles(depth),
        queue_depth_max=int(depth.max()) if len(depth) else None,
        blocking_calls=len(blocking),
        blocking_ns=int(events.dur[blocking].sum()),
    )


def percentiles(values: Int64) -> Percentiles | None:
    """50th, 90th and 99th percentile (nearest rank), None without values."""
    if not len(values):
        return None
    ordered = np.sort(values)
    ranks = [min(len(ordered) - 1, max(0, -(-len(ordered) * p // 100) - 1)) for p in (50, 90, 99)]
    p50, p90, p99 = (int(ordered[rank]) for rank in ranks)
    return Percentiles(p50=p50, p90=p90, p99=p99)


def _calls(trace: Trace, what: str) -> Bool:
    known = rules()
    test = {"launch": known.is_launch, "graph": known.is_graph, "blocking": known.is_blocking}[what]
    named = np.fromiter((test(s) for s in trace.strings), np.bool_, len(trace.strings))
    return np.asarray((trace.events.kind == Kind.RUNTIME) & named[trace.events.name])


def graph_work(trace: Trace, structure: Structure) -> Bool:
    """Device work started by a graph launch: which operator it stands for is not recorded."""
    graph = np.zeros(len(structure.launch), np.bool_)
    linked = structure.launch >= 0
    graph[linked] = _calls(trace, "graph")[structure.launch[linked]]
    return graph


def before_window(trace: Trace, structure: Structure) -> Bool:
    """Unlinked device work whose launch id is older than every recorded host call's."""
    events, device = trace.events, trace.device
    ids = events.correlation[device.rows]
    loose = np.asarray(structure.launch == NONE) & (ids >= 0)
    recorded = events.correlation[(events.kind == Kind.RUNTIME) & (events.correlation > 0)]
    if not len(recorded):
        return np.zeros(len(ids), np.bool_)
    return np.asarray(loose & (ids < recorded.min()))


def queue_depths(trace: Trace, structure: Structure) -> Int64:
    """Work launched and not yet started on the same stream, seen at each launch (itself counted).

    Counted at the start of every linked launching call: launches so far minus
    starts so far, per device and stream.
    """
    device = trace.device
    linked = np.flatnonzero(structure.launch >= 0)
    stream = device.device[linked].astype(np.int64) * (len(trace.strings) + 1)
    stream += device.stream[linked]
    launched = trace.events.ts[structure.launch[linked]]
    depths = []
    for key in np.unique(stream).tolist():
        mine = stream == key
        begun = np.sort(device.ts[linked[mine]])
        issued = np.sort(launched[mine])
        started = np.searchsorted(begun, issued, side="right")
        depths.append(np.arange(1, len(issued) + 1) - np.minimum(started, np.arange(len(issued))))
    return np.concatenate(depths) if depths else np.empty(0, np.int64)
