"""From the text of a block to columns. Runs in the ingesting process and in its helpers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import cast

import msgspec
import numpy as np

from profiler.trace.batch import NONE, Batch, Complete, Flows, Instants, Int32, Sparse
from profiler.trace.clock import NO_TIME, Int64, NeedsExactTimes, to_ns
from profiler.trace.salvage import Decoded, decode_block
from profiler.trace.schema import (
    ARGUMENT_FIELDS,
    RAW_ARGUMENTS,
    TEXT_ARGUMENTS,
    Event,
    Scalar,
)
from profiler.trace.vendors import rules

_DENSE = ("correlation", "external_id")
_INSTANT_ONLY = ("allocated", "reserved", "memory_device", "memory_index", "address")
_NUMBERS = tuple(
    column
    for column in rules().arguments
    if column not in (*TEXT_ARGUMENTS, *RAW_ARGUMENTS, *_DENSE, *_INSTANT_ONLY)
)
_METADATA = ("process_name", "thread_name")
_FRACTION = re.compile(rb'"(ts|dur)"\s*:\s*(-?[0-9]+\.[0-9]+)')


class Strings(dict[object, int]):
    """Text -> code, growing; `fresh` holds the entries added since `take`."""

    def __init__(self, name_chars: int) -> None:
        super().__init__({None: NONE})
        self.fresh: list[str] = []
        self._chars = name_chars
        self._count = 0
        self.clipped = 0

    def __missing__(self, key: object) -> int:
        text = key if isinstance(key, str) else _plain(key)
        if len(text) > self._chars:
            text = text[: self._chars - 1] + "…"
            self.clipped += 1
        code = self.get(text, NONE) if text is not key else NONE
        if code == NONE:
            code = self._count
            self._count += 1
            self.fresh.append(text)
            self[text] = code
        self[key] = code
        return code

    def take(self) -> list[str]:
        """The entries added since the last call, in code order."""
        fresh, self.fresh = self.fresh, []
        return fresh


class Tracks(dict[tuple[int | str, int | str], int]):
    """(pid, tid) -> code; numbers and their text are the same track."""

    def __init__(self) -> None:
        super().__init__()
        self.fresh: list[tuple[str, str]] = []
        self._count = 0

    def __missing__(self, key: tuple[int | str, int | str]) -> int:
        text = (str(key[0]), str(key[1]))
        code = self.get(text)
        if code is None:
            code = self._count
            self._count += 1
            self.fresh.append(text)
            self[text] = code
        self[key] = code
        return code

    def take(self) -> list[tuple[str, str]]:
        """The entries added since the last call, in code order."""
        fresh, self.fresh = self.fresh, []
        return fresh


def _plain(key: object) -> str:
    if isinstance(key, bytes):
        return key.decode("utf-8", errors="replace")
    return str(int(key)) if isinstance(key, float) and key.is_integer() else str(key)


class Decoder:
    """Turns blocks into batches; string tables live as long as it does."""

    def __init__(self, name_chars: int) -> None:
        self._strings = Strings(name_chars)
        self._tracks = Tracks()

    def batch(self, text: bytes) -> Batch:
        """The columns of one block."""
        try:
            return self._batch(decode_block(text))
        except NeedsExactTimes:
            quoted = _FRACTION.sub(rb'"\1":"\2"', text)
            return self._batch(decode_block(quoted))

    def _batch(self, decoded: Decoded) -> Batch:
        phases = _by_phase(decoded.events)
        complete = self._complete(phases.pop("X"), decoded.dropped)
        flows = self._flows(phases.pop("s"), phases.pop("f"))
        instants = self._instants(phases.pop("i"))
        labels = self._labels(phases.pop("M"))
        edges = self._edges([e for found in phases.values() for e in found])
        repaired = decoded.repaired
        if self._strings.clipped:
            repaired["name cut to its limit"] += self._strings.clipped
            self._strings.clipped = 0
        return Batch(
            complete=complete,
            flows=flows,
            instants=instants,
            edges=edges,
            labels=labels,
            strings=self._strings.take(),
            tracks=self._tracks.take(),
            events=len(decoded.events),
            repaired=repaired,
            dropped=decoded.dropped,
            tail=decoded.tail,
        )

    def _codes(self, values: Sequence[object]) -> Int32:
        return np.fromiter(map(self._strings.__getitem__, values), np.int32, len(values))

    def _track_codes(self, pids: Sequence[object], tids: Sequence[object]) -> Int32:
        pairs = cast("Iterable[tuple[int | str, int | str]]", zip(pids, tids, strict=True))
        return np.fromiter(map(self._tracks.__getitem__, pairs), np.int32, len(pids))

    def _complete(self, events: list[Event], dropped: Counter[str]) -> Complete:
        columns = _transposed(events, 9)
        ts, dur = to_ns(_scalars(columns[5])), to_ns(_scalars(columns[6]))
        timed = (ts != NO_TIME) & (dur != NO_TIME)
        usable = timed & (dur >= 0)
        if not usable.all():
            dropped["no usable time"] += int((~timed).sum())
            dropped["negative duration"] += int((timed & (dur < 0)).sum())
            events = [e for e, keep in zip(events, usable.tolist(), strict=True) if keep]
            columns = _transposed(events, 9)
            ts, dur = ts[usable], dur[usable]
        values = _Arguments(columns[8])
        sparse = {name: _sparse(values.numbers(name)) for name in _NUMBERS}
        sparse |= {name: self._sparse_codes(values.column(name)) for name in TEXT_ARGUMENTS}
        sparse |= {name: self._sparse_codes(values.raw(name)) for name in RAW_ARGUMENTS}
        return Complete(
            name=self._codes(columns[2]),
            category=self._codes(columns[1]),
            track=self._track_codes(columns[3], columns[4]),
            ts=ts,
            dur=dur,
            correlation=values.numbers("correlation"),
            external_id=values.numbers("external_id"),
            sparse=sparse,
        )

    def _sparse_codes(self, values: Sequence[object]) -> Sparse:
        return _sparse(self._codes(values)) if values.count(None) < len(values) else _EMPTY

    def _flows(self, begins: list[Event], ends: list[Event]) -> Flows:
        columns = _transposed(begins + ends, 9)
        begin = np.zeros(len(begins) + len(ends), np.bool_)
        begin[: len(begins)] = True
        return Flows(
            category=self._codes(columns[1]),
            id=_numbers(_scalars(columns[7])),
            track=self._track_codes(columns[3], columns[4]),
            ts=to_ns(_scalars(columns[5])),
            begin=begin,
        )

    def _instants(self, events: list[Event]) -> Instants:
        kept = [e for e in events if e.name == "[memory]"]
        values = _Arguments([e.args for e in kept])
        return Instants(
            ts=to_ns([e.ts for e in kept]),
            track=self._track_codes([e.pid for e in kept], [e.tid for e in kept]),
            bytes=values.numbers("bytes"),
            allocated=values.numbers("allocated"),
            reserved=values.numbers("reserved"),
            device_type=values.numbers("memory_device"),
            device_index=values.numbers("memory_index"),
        )

    def _edges(self, events: list[Event]) -> list[tuple[int, int, int]]:
        out = []
        for event in events:
            if event.ph in ("B", "E"):
                track = self._tracks[event.pid, event.tid]
                name = self._strings[event.name] if event.ph == "B" else NONE
                out.append((track, int(to_ns([event.ts])[0]), name))
        return out

    def _labels(self, events: list[Event]) -> list[tuple[int, str, str]]:
        position = ARGUMENT_FIELDS["label"][0]
        seen: dict[tuple[int, str, str], None] = {}
        for event in events:
            if event.name in _METADATA:
                label = msgspec.structs.astuple(event.args)[position]
                seen[self._tracks[event.pid, event.tid], event.name, str(label)] = None
        return list(seen)


_EMPTY = Sparse(np.empty(0, np.int32), np.empty(0, np.int64))


class _Arguments:
    """The argument columns of a list of events, spellings merged."""

    def __init__(self, args: Sequence[object]) -> None:
        width = sum(len(at) for at in ARGUMENT_FIELDS.values())
        self._columns = _transposed(args, width)

    def column(self, name: str) -> Sequence[Scalar]:
        """Values of one column: None (texts) or -1 (numbers) where no spelling is present."""
        absent = None if name in TEXT_ARGUMENTS else NONE
        return _scalars(self._merged(name, absent))

    def raw(self, name: str) -> Sequence[bytes | None]:
        """JSON texts of one column, None where no spelling is present."""
        columns = [[bytes(cast("msgspec.Raw", v)) or None for v in c] for c in self._parts(name)]
        return [next(filter(None, spelled), None) for spelled in zip(*columns, strict=True)]

    def numbers(self, name: str) -> Int64:
        """Values of one column as int64, `NONE` where absent."""
        return _numbers(self.column(name))

    def _parts(self, name: str) -> list[Sequence[object]]:
        return [self._columns[at] for at in ARGUMENT_FIELDS[name]]

    def _merged(self, name: str, absent: object) -> Sequence[object]:
        first, *others = self._parts(name)
        for other in others:
            if other.count(absent) < len(other):
                first = [b if a == absent else a for a, b in zip(first, other, strict=True)]
        return first


def _by_phase(events: list[Event]) -> dict[str, list[Event]]:
    phases: dict[str, list[Event]] = {phase: [] for phase in ("X", "s", "f", "i", "M")}
    for event in events:
        phases.setdefault("i" if event.ph == "I" else event.ph, []).append(event)
    return phases


def _scalars(values: Sequence[object]) -> Sequence[Scalar]:
    return cast("Sequence[Scalar]", values)


def _transposed(rows: Sequence[object], width: int) -> list[Sequence[object]]:
    if not rows:
        return [()] * width
    return list(zip(*map(msgspec.structs.astuple, cast("Sequence[Event]", rows)), strict=True))


def _numbers(values: Sequence[Scalar]) -> Int64:
    """Whole numbers as int64; ids that are no small number become a stable hash."""
    if values.count(NONE) == len(values):
        return np.full(len(values), NONE, np.int64)
    try:
        return np.array(values, dtype=np.int64)
    except (TypeError, ValueError, OverflowError):
        return np.fromiter(map(_number, values), np.int64, len(values))


def _number(value: Scalar) -> int:
    if value is None:
        return NONE
    if isinstance(value, float):
        value = int(value) if value.is_integer() else str(value)
    if isinstance(value, str):
        digits = value.removeprefix("-")
        value = int(value) if digits.isdecimal() and len(digits) < 40 else _hashed(value)
    return value if -(2**63) <= value < 2**63 else _hashed(str(value))


def _hashed(text: str) -> int:
    """A 62-bit id for text ids, the same in every process."""
    out = 0
    for byte in text.encode("utf-8", errors="replace"):
        out = (out * 1_099_511_628_211 + byte) & ((1 << 62) - 1)
    return out


def _sparse(values: Int32 | Int64) -> Sparse:
    rows = np.flatnonzero(values >= 0).astype(np.int32)
    return Sparse(rows, values[rows].astype(np.int64)) if len(rows) else _EMPTY
