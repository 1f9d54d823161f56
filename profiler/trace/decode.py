"""From the text of a block to columns. Runs in the ingesting process and in its helpers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar, cast

import msgspec
import numpy as np

from profiler.trace.arguments import Columns, chosen, column, decoded, numbers
from profiler.trace.batch import NONE, Batch, Flows, Instants, Int32
from profiler.trace.batch import Complete as CompleteColumns
from profiler.trace.clock import NO_TIME, Int64, NeedsExactTimes, to_ns
from profiler.trace.codes import distinct
from profiler.trace.intern import Strings, Tracks
from profiler.trace.salvage import Decoded, decode_block
from profiler.trace.schema import (
    BY_NAME,
    COLUMNS,
    GROUPS,
    LABEL,
    MEMORY,
    Begin,
    Complete,
    End,
    EventLike,
    FlowEnd,
    FlowStart,
    Instant,
    Metadata,
    Named,
    OldInstant,
    Scalar,
    group_of_category,
)

_DENSE = ("correlation", "external_id")
_METADATA = ("process_name", "thread_name")
_FRACTION = re.compile(rb'"(ts|dur)"\s*:\s*(-?[0-9]+\.[0-9]+)')
Raws = Sequence[msgspec.Raw]


Made = TypeVar("Made")
Label = tuple[int, str, str]


class Decoder:
    """Turns blocks into batches; string tables live as long as it does."""

    def __init__(self, name_chars: int) -> None:
        self._strings = Strings(name_chars)
        self._tracks = Tracks()
        self._groups: dict[int, int] = {NONE: 1}
        self._lossy = False

    def batch(self, text: memoryview) -> Batch:
        """The columns of one block, given as an array in brackets."""
        try:
            return self._batch(decode_block(text))
        except NeedsExactTimes:
            return self._exact_batch(text)

    def _exact_batch(self, text: memoryview) -> Batch:
        """The same with fractional times turned into text before decoding."""
        self._lossy = True
        try:
            return self._batch(decode_block(memoryview(_FRACTION.sub(rb'"\1":"\2"', bytes(text)))))
        finally:
            self._lossy = False

    def _batch(self, found: Decoded) -> Batch:
        events = found.events
        by_type: dict[type, list[EventLike]] = {kind: [] for kind in set(map(type, events))}
        take = {kind: mine.append for kind, mine in by_type.items()}
        for event in events:
            take[type(event)](event)
        complete = self._complete(_all(by_type, Complete), found)
        flows = self._flows(_all(by_type, FlowStart), _all(by_type, FlowEnd))
        instants = self._instants(
            [*_all(by_type, Instant), *_all(by_type, OldInstant)], found.repaired
        )
        labels = self._labels(_all(by_type, Metadata), found.repaired)
        # Begins and ends pair up in the order of the file.
        paired = Begin in by_type or End in by_type
        edges = self._edges([e for e in events if isinstance(e, Begin | End)] if paired else [])
        if self._strings.clipped:
            found.repaired["name cut to its limit"] += self._strings.clipped
            self._strings.clipped = 0
        return Batch(
            complete=complete,
            flows=flows,
            instants=instants,
            edges=edges,
            labels=labels,
            strings=self._strings.take(),
            tracks=self._tracks.take(),
            events=len(events),
            repaired=found.repaired,
            dropped=found.dropped,
            tail=found.tail,
        )

    def _times(self, values: Sequence[Scalar]) -> Int64:
        return to_ns(values, lossy=self._lossy)

    def _codes(self, values: Sequence[object]) -> Int32:
        return self._strings.codes(values, len(values))

    def _complete(self, events: list[Complete], found: Decoded) -> CompleteColumns:
        ts, dur = self._times([e.ts for e in events]), self._times([e.dur for e in events])
        timed = (ts != NO_TIME) & (dur != NO_TIME)
        usable = timed & (dur >= 0)
        if not usable.all():
            found.dropped["no usable time"] += int((~timed).sum())
            found.dropped["negative duration"] += int((timed & (dur < 0)).sum())
            events = cast("list[Complete]", chosen(events, usable))
            ts, dur = ts[usable], dur[usable]
        category = self._codes([e.cat for e in events])
        name = self._codes([e.name for e in events])
        columns = self._arguments([e.args for e in events], category, name, found.repaired)
        return CompleteColumns(
            name=name,
            category=category,
            track=self._tracks.codes([e.pid for e in events], [e.tid for e in events]),
            ts=ts,
            dur=dur,
            correlation=columns.dense("correlation"),
            external_id=columns.dense("external_id"),
            sparse={c: columns.sparse(c) for c in COLUMNS if c not in _DENSE},
        )

    def _arguments(
        self, raws: list[msgspec.Raw], category: Int32, name: Int32, repaired: Counter[str]
    ) -> Columns:
        out = Columns(len(raws), self._strings)
        groups = self._group_numbers(category, name)
        for number in distinct(groups):
            group = GROUPS[number]
            if group is not None:
                mask = np.asarray(groups == number)
                mine = cast("Raws", chosen(raws, mask))
                rows = np.flatnonzero(mask).astype(np.int32)
                out.add(group, rows, decoded(group, mine, repaired))
        return out

    def _group_numbers(self, category: Int32, name: Int32) -> Int32:
        """Number of the argument group of each event."""
        for code in distinct(category):
            if code not in self._groups:
                text = next(t for t, c in self._strings.items() if c == code and t is not None)
                self._groups[code] = group_of_category(str(text))
        table = np.zeros(max(self._groups) + 2, np.int32)
        for code, number in self._groups.items():
            table[code] = number
        groups = table[category]
        named = {self._strings[text]: n for text, n in BY_NAME.items() if text in self._strings}
        if named:
            # One look-up per event, however many names there are.
            other = np.zeros(max(int(name.max(initial=0)), *named) + 2, np.int32)
            other[list(named)] = list(named.values())
            groups = np.where(other[name] > 0, other[name], groups)
        return groups

    def _flows(self, starts: list[FlowStart], ends: list[FlowEnd]) -> Flows:
        events = [*starts, *ends]
        begin = np.zeros(len(events), np.bool_)
        begin[: len(starts)] = True
        return Flows(
            category=self._codes([e.cat for e in events]),
            id=numbers([e.id for e in events]),
            track=self._tracks.codes([e.pid for e in events], [e.tid for e in events]),
            ts=self._times([e.ts for e in events]),
            begin=begin,
        )

    def _instants(self, events: Sequence[Named], repaired: Counter[str]) -> Instants:
        kept = [e for e in events if e.name == "[memory]"]
        args = decoded(MEMORY, [e.args for e in kept], repaired)

        def values(name: str) -> Int64:
            return numbers(cast("Sequence[Scalar]", column(MEMORY, args, name)))

        return Instants(
            ts=self._times([e.ts for e in kept]),
            track=self._tracks.codes([e.pid for e in kept], [e.tid for e in kept]),
            bytes=values("bytes"),
            allocated=values("allocated"),
            reserved=values("reserved"),
            device_type=values("memory_device"),
            device_index=values("memory_index"),
            address=values("address"),
        )

    def _edges(self, events: list[Begin | End]) -> list[tuple[int, int, int]]:
        tracks = self._tracks.codes([e.pid for e in events], [e.tid for e in events]).tolist()
        times = self._times([e.ts for e in events]).tolist()
        names = [self._strings[e.name] if isinstance(e, Begin) else NONE for e in events]
        return list(zip(tracks, times, names, strict=True))

    def _labels(
        self, events: Sequence[Named], repaired: Counter[str]
    ) -> list[tuple[int, str, str]]:
        kept = [e for e in events if e.name in _METADATA]
        args = decoded(LABEL, [e.args for e in kept], repaired)
        tracks = self._tracks.codes([e.pid for e in kept], [e.tid for e in kept]).tolist()
        labels = column(LABEL, args, "label")
        found = zip(tracks, (e.name for e in kept), map(str, labels), strict=True)
        return list(dict.fromkeys(found))


def _all(by_type: dict[type, list[EventLike]], kind: type[Made]) -> list[Made]:
    return cast("list[Made]", by_type.get(kind, []))
