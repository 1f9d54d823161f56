"""From columns as written to the one event model: kinds, devices, streams, repaired times."""

from __future__ import annotations

from collections import Counter

import numpy as np

from profiler.trace.batch import NONE, Bool, Complete, Int32, Sparse
from profiler.trace.clock import NO_TIME
from profiler.trace.codes import distinct
from profiler.trace.kinds import DEVICE_KINDS, Kind
from profiler.trace.model import DeviceWork, Events, Kinds, Quality, Trace, Track
from profiler.trace.raw import RawTrace
from profiler.trace.secrets import clean_names, findings
from profiler.trace.vendors import rules

DAY_NS = 86_400 * 10**9
YEAR_NS = 365 * DAY_NS


def normalise(raw: RawTrace) -> Trace:
    """The event model of a raw trace. Changes nothing it does not count in `quality`."""
    quality = Quality(raw.repaired, +raw.dropped, Counter(), list(raw.warnings))
    if not raw.header.readable:
        quality.warnings.append("the keys around the events are damaged; some are unknown")
    quality.warnings += findings(raw.header.values)
    if names := clean_names(raw.strings):
        quality.warnings.append(f"credentials or home folders removed from {names:,} names")
    complete = _with_edges(raw, quality)
    categories = _categories(complete, raw.strings)
    complete = _without_timeless(complete, quality)
    _clip(complete, quality)
    tracks = _tracks(raw)
    kinds = _kinds(complete, raw.strings, tracks)
    events = Events(
        kind=kinds,
        name=complete.name,
        category=complete.category,
        track=complete.track,
        ts=complete.ts,
        dur=complete.dur,
        correlation=complete.correlation,
        external_id=complete.external_id,
        sparse=complete.sparse,
    )
    trace = Trace(
        events=events,
        device=device_work(events, raw.strings, tracks),
        flows=raw.flows,
        instants=raw.instants,
        strings=raw.strings,
        tracks=tracks,
        header=raw.header,
        quality=quality,
        total_events=raw.events,
        categories=categories,
        sha256=raw.sha256,
        device_kind="cpu",
    )
    trace.device_kind = _device_kind(trace)
    return trace


def device_work(events: Events, strings: list[str], tracks: list[Track]) -> DeviceWork:
    """Device rows by start; device and stream from arguments, else from the track."""
    rows = np.flatnonzero(np.isin(events.kind, np.array(DEVICE_KINDS, np.int8)))
    rows = rows[np.lexsort((rows, events.dur[rows], events.ts[rows]))]
    table = {text: code for code, text in enumerate(strings)}
    pids = _codes([t.pid for t in tracks], strings, table)
    tids = _codes([t.tid.removeprefix("stream ") for t in tracks], strings, table)
    track = events.track[rows]
    device = _lookup(events.sparse["device"], rows, len(events))
    stream = _lookup(events.sparse["stream"], rows, len(events))
    return DeviceWork(
        rows=rows,
        kind=events.kind[rows],
        name=events.name[rows],
        device=np.where(device == NONE, pids[track], device).astype(np.int32),
        stream=np.where(stream == NONE, tids[track], stream).astype(np.int32),
        ts=events.ts[rows],
        dur=events.dur[rows],
    )


def _lookup(column: Sparse, rows: np.ndarray[tuple[int], np.dtype[np.int64]], n: int) -> Int32:
    dense = np.full(n, NONE, np.int32)
    dense[column.rows] = column.values
    return dense[rows]


def _codes(texts: list[str], strings: list[str], table: dict[str, int]) -> Int32:
    for text in texts:
        if text not in table:
            table[text] = len(strings)
            strings.append(text)
    return np.array([table[t] for t in texts] or [NONE], np.int32)


def _categories(complete: Complete, strings: list[str]) -> dict[str, int]:
    """Complete events by category as written; events without one count as `None`."""
    codes, counts = np.unique(complete.category, return_counts=True)
    named = ((strings[c] if c != NONE else "None", n) for c, n in zip(codes, counts, strict=True))
    return {name: int(n) for name, n in sorted(named, key=lambda item: (-item[1], item[0]))}


def _with_edges(raw: RawTrace, quality: Quality) -> Complete:
    """Begin and end events (`ph` B and E) paired into complete ones, per track."""
    if not raw.edges:
        return raw.complete
    stacks: dict[int, list[tuple[int, int]]] = {}
    made: list[tuple[int, int, int, int]] = []
    timed = [edge for edge in raw.edges if edge[1] != NO_TIME]
    quality.dropped["no usable time"] += len(raw.edges) - len(timed)
    for track, ts, name in sorted(timed, key=lambda e: (e[0], e[1])):
        if name != NONE:
            stacks.setdefault(track, []).append((ts, name))
        elif stacks.get(track):
            start, opened = stacks[track].pop()
            made.append((track, start, ts - start, opened))
        else:
            quality.dropped["end without begin"] += 1
    quality.dropped["begin without end"] += sum(map(len, stacks.values()))
    quality.dropped = +quality.dropped
    return _appended(raw.complete, made)


def _appended(complete: Complete, made: list[tuple[int, int, int, int]]) -> Complete:
    if not made:
        return complete
    track, ts, dur, name = (np.array(column, np.int64) for column in zip(*made, strict=True))
    absent = np.full(len(made), NONE)
    return Complete(
        name=np.concatenate([complete.name, name.astype(np.int32)]),
        category=np.concatenate([complete.category, absent.astype(np.int32)]),
        track=np.concatenate([complete.track, track.astype(np.int32)]),
        ts=np.concatenate([complete.ts, ts]),
        dur=np.concatenate([complete.dur, dur]),
        correlation=np.concatenate([complete.correlation, absent]),
        external_id=np.concatenate([complete.external_id, absent]),
        sparse=complete.sparse,
    )


def _without_timeless(complete: Complete, quality: Quality) -> Complete:
    """Drop records at time zero of traces that otherwise start days later (kineto#109)."""
    timeless = complete.ts <= 0
    if not timeless.any() or timeless.all() or complete.ts[~timeless].min() < DAY_NS:
        return complete
    quality.dropped["start time zero"] += int(timeless.sum())
    return _kept(complete, ~timeless)


def _kept(complete: Complete, keep: Bool) -> Complete:
    new_row = np.cumsum(keep) - 1
    sparse = {}
    for column, values in complete.sparse.items():
        stay = keep[values.rows]
        rows = new_row[values.rows[stay]].astype(np.int32)
        sparse[column] = Sparse(rows, values.values[stay])
    return Complete(
        name=complete.name[keep],
        category=complete.category[keep],
        track=complete.track[keep],
        ts=complete.ts[keep],
        dur=complete.dur[keep],
        correlation=complete.correlation[keep],
        external_id=complete.external_id[keep],
        sparse=sparse,
    )


def _clip(complete: Complete, quality: Quality) -> None:
    """Durations of years are counter overflows: clip them to the end of everything else."""
    endless = complete.dur > YEAR_NS
    if not endless.any():
        return
    sane = ~endless
    last = int((complete.ts[sane] + complete.dur[sane]).max()) if sane.any() else None
    starts = complete.ts[endless]
    complete.dur[endless] = 0 if last is None else np.maximum(last - starts, 0)
    quality.clipped["duration of years"] += int(endless.sum())


def _tracks(raw: RawTrace) -> list[Track]:
    processes: dict[str, str] = {}
    threads: dict[int, str] = {}
    for track, name, label in raw.labels:
        if name == "process_name":
            processes.setdefault(raw.tracks[track][0], label)
        else:
            threads.setdefault(track, label)
    return [
        Track(pid, tid, processes.get(pid, ""), threads.get(n, ""))
        for n, (pid, tid) in enumerate(raw.tracks)
    ]


def _kinds(complete: Complete, strings: list[str], tracks: list[Track]) -> Kinds:
    known = rules()
    by_category = [known.kinds.get(text, Kind.OTHER) for text in strings]
    by_process = [known.processes.get(t.process, known.processes.get(t.pid)) for t in tracks]
    kinds = np.array([*by_category, Kind.OTHER], np.int8)[complete.category]
    bare = complete.category == NONE
    if bare.any():
        table = np.array([k if k is not None else Kind.OTHER for k in by_process], np.int8)
        kinds[bare] = table[complete.track[bare]]
    _refine_device(kinds, complete, strings)
    _refine_host(kinds, complete, strings)
    return kinds


def _flags(strings: list[str], rule: str) -> Bool:
    search = rules().names[rule].search
    return np.fromiter((search(text) is not None for text in strings), np.bool_, len(strings))


def _refine_device(kinds: Kinds, complete: Complete, strings: list[str]) -> None:
    rows = np.flatnonzero(kinds == Kind.KERNEL)
    names = complete.name[rows]
    for rule, kind in (
        ("wait", Kind.WAIT),
        ("copy", Kind.COPY),
        ("fill", Kind.FILL),
        ("communication", Kind.COMMUNICATION),
    ):
        kinds[rows[_flags(strings, rule)[names]]] = kind
    said = complete.sparse["collective"].rows
    kinds[said[kinds[said] == Kind.KERNEL]] = Kind.COMMUNICATION


def _refine_host(kinds: Kinds, complete: Complete, strings: list[str]) -> None:
    rows = np.flatnonzero(kinds == Kind.ANNOTATION)
    kinds[rows[_flags(strings, "module")[complete.name[rows]]]] = Kind.MODULE


def _device_kind(trace: Trace) -> str:
    """The vendor with the most evidence: categories and processes, device names, call names."""
    processes = {track.process for track in trace.tracks}
    calls = {trace.strings[c] for c in distinct(trace.events.name[_runtime(trace)])}
    best, score = "cpu", 0
    for vendor in rules().vendors:
        points = 4 * len(vendor.categories & trace.categories.keys())
        points += 4 * len(vendor.processes & processes)
        if len(trace.device.rows) or calls:
            points += 2 * any(vendor.devices.search(name) for name in trace.header.device_names)
        points += min(3, sum(vendor.runtime.search(call) is not None for call in calls))
        if points > score:
            best, score = vendor.name, points
    if best == "cpu" and len(trace.device.rows):
        return "unknown"
    return best


def _runtime(trace: Trace) -> Bool:
    return np.asarray(trace.events.kind == Kind.RUNTIME)
