"""The columns of a whole trace, joined from its batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from profiler.errors import TraceError
from profiler.trace.batch import NONE, Batch, Complete, Flows, Instants, Int32, Sparse
from profiler.trace.clock import Int64
from profiler.trace.header import Header
from profiler.trace.limits import Limits
from profiler.trace.schema import CODE_COLUMNS

Text = TypeVar("Text", str, tuple[str, str])
Number = TypeVar("Number", bound=np.generic)


@dataclass(slots=True)
class RawTrace:
    """All events of one file as written. Codes index `strings` and `tracks` (pid, tid)."""

    complete: Complete
    flows: Flows
    instants: Instants
    edges: list[tuple[int, int, int]]
    labels: list[tuple[int, str, str]]
    strings: list[str]
    tracks: list[tuple[str, str]]
    events: int
    header: Header
    sha256: str = ""
    repaired: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)


class Joiner:
    """Collects batches of several decoders and maps their codes onto one table.

    Batches may arrive in any order of blocks; `finish` puts them in file
    order, so the result does not depend on how many decoders worked.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._batches: dict[int, tuple[int, Batch]] = {}
        self._maps: dict[int, list[str]] = {}
        self._tracks: dict[int, list[tuple[str, str]]] = {}
        self._string_bytes = 0
        self._events = 0
        self.ended_at: int | None = None

    def add(self, block: int, decoder: int, batch: Batch) -> None:
        """Take in the batch of one block; raises `TraceError` over the limits."""
        self._maps.setdefault(decoder, []).extend(batch.strings)
        self._tracks.setdefault(decoder, []).extend(batch.tracks)
        self._string_bytes += sum(map(len, batch.strings))
        self._events += batch.events
        if self._string_bytes > self._limits.string_bytes:
            raise TraceError("the trace has too many different names", "record fewer steps")
        if self._events > self._limits.events:
            raise TraceError(
                f"the trace has more than {self._limits.events:,} events", "record fewer steps"
            )
        batch.strings, batch.tracks = [], []
        self._batches[block] = (decoder, batch)
        if batch.tail is not None and (self.ended_at is None or block < self.ended_at):
            self.ended_at = block

    def missing(self, blocks: int) -> set[int]:
        """Numbers below `blocks` whose batch has not come, up to the end of the event array."""
        last = blocks if self.ended_at is None else min(blocks, self.ended_at + 1)
        return set(range(last)) - self._batches.keys()

    def finish(self) -> tuple[RawTrace, bytes]:
        """The joined columns (without header) and the text behind the event array."""
        order = sorted(b for b in self._batches if self.ended_at is None or b <= self.ended_at)
        table: dict[str, int] = {}
        tracks: dict[tuple[str, str], int] = {}
        string_maps = {d: _codes(texts, table) for d, texts in self._maps.items()}
        track_maps = {d: _codes(found, tracks) for d, found in self._tracks.items()}
        parts = []
        for block in order:
            decoder, batch = self._batches.pop(block)
            parts.append(_translated(batch, string_maps[decoder], track_maps[decoder]))
        tail = parts[-1].tail if parts else None
        raw = _joined(parts, list(table), list(tracks))
        return raw, tail or b""


def _codes(texts: Sequence[Text], table: dict[Text, int]) -> Int32:
    codes: list[int] = [table.setdefault(text, len(table)) for text in texts]
    return np.array([*codes, NONE], dtype=np.int32)


def _translated(batch: Batch, strings: Int32, tracks: Int32) -> Batch:
    """Codes of one decoder in the joint tables; NONE stays NONE (it is the last entry)."""
    done = batch.complete
    done.name, done.category = strings[done.name], strings[done.category]
    done.track = tracks[done.track]
    for column in CODE_COLUMNS & done.sparse.keys():
        old = done.sparse[column]
        done.sparse[column] = Sparse(old.rows, strings[old.values].astype(np.int64))
    batch.flows.category = strings[batch.flows.category]
    batch.flows.track = tracks[batch.flows.track]
    batch.instants.track = tracks[batch.instants.track]
    batch.edges = [(int(tracks[t]), ts, int(strings[name])) for t, ts, name in batch.edges]
    batch.labels = [(int(tracks[t]), name, label) for t, name, label in batch.labels]
    return batch


def _cat(arrays: list[npt.NDArray[Number]]) -> npt.NDArray[Number]:
    return np.concatenate(arrays) if len(arrays) != 1 else arrays[0]


def _joined(parts: list[Batch], strings: list[str], tracks: list[tuple[str, str]]) -> RawTrace:
    whole = [p.complete for p in parts]
    offsets = np.cumsum([0, *(len(c.ts) for c in whole)]).tolist()
    columns = tuple(whole[0].sparse)
    flows, instants = [p.flows for p in parts], [p.instants for p in parts]
    return RawTrace(
        complete=Complete(
            sparse={name: _sparse(whole, offsets, name) for name in columns},
            name=_codes_of(whole, "name"),
            category=_codes_of(whole, "category"),
            track=_codes_of(whole, "track"),
            ts=_numbers_of(whole, "ts"),
            dur=_numbers_of(whole, "dur"),
            correlation=_numbers_of(whole, "correlation"),
            external_id=_numbers_of(whole, "external_id"),
        ),
        flows=Flows(
            category=_codes_of(flows, "category"),
            track=_codes_of(flows, "track"),
            id=_numbers_of(flows, "id"),
            ts=_numbers_of(flows, "ts"),
            begin=_cat([f.begin for f in flows]),
        ),
        instants=Instants(
            track=_codes_of(instants, "track"),
            ts=_numbers_of(instants, "ts"),
            bytes=_numbers_of(instants, "bytes"),
            allocated=_numbers_of(instants, "allocated"),
            reserved=_numbers_of(instants, "reserved"),
            device_type=_numbers_of(instants, "device_type"),
            device_index=_numbers_of(instants, "device_index"),
            address=_numbers_of(instants, "address"),
        ),
        edges=[edge for p in parts for edge in p.edges],
        labels=list(dict.fromkeys(label for p in parts for label in p.labels)),
        strings=strings,
        tracks=tracks,
        events=sum(p.events for p in parts),
        header=Header(),
        repaired=sum((p.repaired for p in parts), Counter()),
        dropped=sum((p.dropped for p in parts), Counter()),
    )


def _codes_of(parts: Sequence[object], column: str) -> Int32:
    """One column joined; that of the parts is let go, which halves the peak."""
    joined: Int32 = _cat([getattr(part, column) for part in parts])
    for part in parts:
        setattr(part, column, None)
    return joined


def _numbers_of(parts: Sequence[object], column: str) -> Int64:
    """The same for a column of int64."""
    joined: Int64 = _cat([getattr(part, column) for part in parts])
    for part in parts:
        setattr(part, column, None)
    return joined


def _sparse(parts: list[Complete], offsets: list[int], column: str) -> Sparse:
    rows = [p.sparse[column].rows + np.int32(at) for p, at in zip(parts, offsets, strict=False)]
    return Sparse(_cat(rows), _cat([p.sparse[column].values for p in parts]))
