"""The part of a long trace that is replayed, as a trace of its own."""

from __future__ import annotations

import numpy as np

from profiler.analysis.replay.window import Window
from profiler.trace.batch import NONE, Bool, Int32, Sparse
from profiler.trace.clock import Int64
from profiler.trace.link import Structure
from profiler.trace.model import DeviceWork, Events, Trace
from profiler.trace.nest import Nesting


def cut(trace: Trace, structure: Structure, window: Window) -> tuple[Trace, Structure]:
    """Events that touch the window and the device work launched in it, with their structure.

    Work launched before the window and not done when it begins stays, without its launch.
    """
    events, device = trace.events, trace.device
    keep = np.asarray((events.end >= window.begin_ns) & (events.ts < window.end_ns))
    issued = np.where(structure.launch >= 0, events.ts[np.maximum(structure.launch, 0)], device.ts)
    keep[device.rows[(issued < window.end_ns) & (device.end > window.begin_ns)]] = True
    number = np.cumsum(keep) - 1
    works = keep[device.rows]
    made = Trace(
        events=_events(events, keep, number),
        device=DeviceWork(
            rows=number[device.rows[works]],
            kind=device.kind[works],
            name=device.name[works],
            device=device.device[works],
            stream=device.stream[works],
            ts=device.ts[works],
            dur=device.dur[works],
        ),
        flows=trace.flows,
        instants=trace.instants,
        strings=trace.strings,
        tracks=trace.tracks,
        header=trace.header,
        quality=trace.quality,
        total_events=trace.total_events,
        categories=trace.categories,
        sha256=trace.sha256,
        device_kind=trace.device_kind,
    )
    return made, _structure(structure, keep, number, works)


def _events(events: Events, keep: Bool, number: Int64) -> Events:
    sparse = {}
    for column, values in events.sparse.items():
        stay = keep[values.rows]
        sparse[column] = Sparse(number[values.rows[stay]].astype(np.int32), values.values[stay])
    return Events(
        kind=events.kind[keep],
        name=events.name[keep],
        category=events.category[keep],
        track=events.track[keep],
        ts=events.ts[keep],
        dur=events.dur[keep],
        correlation=events.correlation[keep],
        external_id=events.external_id[keep],
        sparse=sparse,
    )


def _structure(structure: Structure, keep: Bool, number: Int64, works: Bool) -> Structure:
    host, ops = (_nesting(n, keep, number) for n in (structure.host, structure.ops))
    size = int(keep.sum())

    def rows(column: Int64) -> Int64:
        known = column >= 0
        stays = known & keep[np.maximum(column, 0)]
        return np.where(stays, number[np.maximum(column, 0)], NONE)[works]

    return Structure(
        host=host,
        ops=ops,
        position=_positions(host, size),
        op_position=_positions(ops, size),
        launch=rows(structure.launch),
        op=rows(structure.op),
        rule=structure.rule[works],
    )


def _nesting(nesting: Nesting, keep: Bool, number: Int64) -> Nesting:
    """What contains an event that touches the window touches it too, so parents stay."""
    stays = keep[nesting.rows]
    place = (np.cumsum(stays) - 1).astype(nesting.parent.dtype)
    parent = nesting.parent[stays]
    return Nesting(
        rows=number[nesting.rows[stays]].astype(nesting.rows.dtype),
        parent=np.where(parent >= 0, place[np.maximum(parent, 0)], NONE).astype(parent.dtype),
        self_ns=nesting.self_ns[stays],
        crossings=nesting.crossings,
    )


def _positions(nesting: Nesting, size: int) -> Int32:
    out = np.full(size, NONE, np.int32)
    out[nesting.rows] = np.arange(len(nesting.rows))
    return out
