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
    flows, instants = [p.flows for p in parts], [p.instants for p in parts]
    offsets = np.cumsum([0, *(len(c.ts) for c in whole)])
    return RawTrace(
        complete=Complete(
            name=_cat([c.name for c in whole]),
            category=_cat([c.category for c in whole]),
            track=_cat([c.track for c in whole]),
            ts=_cat([c.ts for c in whole]),
            dur=_cat([c.dur for c in whole]),
            correlation=_cat([c.correlation for c in whole]),
            external_id=_cat([c.external_id for c in whole]),
            sparse={name: _sparse(whole, offsets.tolist(), name) for name in whole[0].sparse},
        ),
        flows=Flows(
            category=_cat([f.category for f in flows]),
            id=_cat([f.id for f in flows]),
            track=_cat([f.track for f in flows]),
            ts=_cat([f.ts for f in flows]),
            begin=_cat([f.begin for f in flows]),
        ),
        instants=Instants(
            ts=_cat([i.ts for i in instants]),
            track=_cat([i.track for i in instants]),
            bytes=_cat([i.bytes for i in instants]),
            allocated=_cat([i.allocated for i in instants]),
            reserved=_cat([i.reserved for i in instants]),
            device_type=_cat([i.device_type for i in instants]),
            device_index=_cat([i.device_index for i in instants]),
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


def _sparse(parts: list[Complete], offsets: list[int], column: str) -> Sparse:
    rows = [p.sparse[column].rows + np.int32(at) for p, at in zip(parts, offsets, strict=False)]
    return Sparse(_cat(rows), _cat([p.sparse[column].values for p in parts]))
