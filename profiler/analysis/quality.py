"""How trustworthy the data is: repairs, losses, links, and conservation of device time."""

from __future__ import annotations

from collections import Counter

import numpy as np

from profiler import units
from profiler.analysis.launches import before_window, graph_work
from profiler.analysis.report import QualityReport
from profiler.trace.batch import Bool
from profiler.trace.clock import Int64
from profiler.trace.codes import distinct, ordered
from profiler.trace.kinds import Kind
from profiler.trace.link import Structure
from profiler.trace.model import Trace
from profiler.trace.vendors import rules

_MOST_PLACES = 1 << 22


def quality_report(trace: Trace, structure: Structure) -> QualityReport:
    """Counts by kind, warnings in words, and attributed + unattributed = all device time."""
    quality, device = trace.quality, trace.device
    repaired = quality.repaired.copy()
    if structure.ops.crossings:
        repaired["operator outlives the one around it"] += structure.ops.crossings
    attributed = int(device.dur[structure.op >= 0].sum())
    paired, unpaired = quality.flow_pairs or flow_pairs(trace)
    return QualityReport(
        repaired=repaired.total(),
        dropped=quality.dropped.total(),
        clipped=quality.clipped.total(),
        unlinked_kernels=int((structure.rule == 0).sum()),
        attributed_device_ns=attributed,
        unattributed_device_ns=int(device.dur.sum()) - attributed,
        warnings=_warnings(trace, structure, repaired),
        repaired_by=_sorted(repaired),
        dropped_by=_sorted(quality.dropped),
        clipped_by=_sorted(quality.clipped),
        flows_paired=paired,
        flows_unpaired=unpaired,
    )


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return {kind: counts[kind] for kind in sorted(counts) if counts[kind]}


def flow_pairs(trace: Trace) -> tuple[int, int]:
    """Flow ids (category, id) with both ends, and with one end only."""
    flows = trace.flows
    if not len(flows.ts):
        return 0, 0
    both = one = 0
    for category in distinct(flows.category):
        mine = flows.category == category
        paired, ends = _paired(flows.id[mine], flows.begin[mine])
        both += paired
        one += ends - 2 * paired
    return both, one


def _paired(ids: Int64, begin: Bool) -> tuple[int, int]:
    """Ids with both ends, and the number of distinct (id, end) pairs."""
    low, high = int(ids.min()), int(ids.max())
    if high - low < _MOST_PLACES:
        starts, ends = np.zeros((2, high - low + 1), np.bool_)
        starts[ids[begin] - low] = True
        ends[ids[~begin] - low] = True
        return int((starts & ends).sum()), int(starts.sum() + ends.sum())
    begins, finishes = ordered(ids[begin]), ordered(ids[~begin])
    paired = len(np.intersect1d(begins, finishes, assume_unique=True))
    return paired, len(begins) + len(finishes)


def _warnings(trace: Trace, structure: Structure, repaired: Counter[str]) -> list[str]:
    out = list(trace.quality.warnings)
    for what, counts in (
        ("repaired", repaired),
        ("dropped", trace.quality.dropped),
        ("clipped", trace.quality.clipped),
    ):
        out += [f"{what}: {units.count(n)} x {kind}" for kind, n in _sorted(counts).items()]
    out += _device_warnings(trace, structure)
    return out


def _device_warnings(trace: Trace, structure: Structure) -> list[str]:
    out = []
    device = trace.device
    if not len(device.rows):
        launches = _launch_calls(trace)
        if launches:
            out.append(f"kernels missing: {units.count(launches)} launches but no device event")
        return out
    before = before_window(trace, structure)
    if before.any():
        part, total = int(device.dur[before].sum()), int(device.dur.sum())
        out.append(
            f"{units.share(part / max(total, 1))} of device time ({units.duration(part)}, "
            f"{units.count(int(before.sum()))} events) was launched before the recording began"
        )
    graph = int(device.dur[graph_work(trace, structure)].sum())
    if graph:
        share = units.share(graph / max(int(device.dur.sum()), 1))
        out.append(
            f"{share} of device time ({units.duration(graph)}) runs inside graph launches, "
            "where the operators are not recorded"
        )
    out += _overlap_warnings(trace)
    return out


def _launch_calls(trace: Trace) -> int:
    is_launch = rules().is_launch
    named = np.fromiter((is_launch(s) for s in trace.strings), np.bool_, len(trace.strings))
    runtime = trace.events.kind == Kind.RUNTIME
    return int((runtime & named[trace.events.name]).sum())


def _overlap_warnings(trace: Trace) -> list[str]:
    """One event that is most of the busy time and lies over others of its stream is suspicious."""
    device = trace.device
    if len(device.rows) < 3:
        return []
    longest = int(np.argmax(device.dur))
    dur = int(device.dur[longest])
    stream = (device.device == device.device[longest]) & (device.stream == device.stream[longest])
    begin, end = int(device.ts[longest]), int(device.end[longest])
    inside = stream & (device.ts > begin) & (device.ts < end)
    others = int(device.dur.sum()) - dur
    if inside.any() and dur > others:
        name = units.middle(trace.strings[int(device.name[longest])])
        return [
            f"suspicious duration: {name} lasts {units.duration(dur)}, more than all other device "
            f"work together, over {units.count(int(inside.sum()))} later events of its stream"
        ]
    return []
