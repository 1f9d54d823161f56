"""Argument columns of the events of a block, decoded group by group."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, cast

import msgspec
import numpy as np

from profiler.trace.batch import NONE, Bool, Int32, Sparse
from profiler.trace.clock import Int64
from profiler.trace.intern import Strings
from profiler.trace.schema import CODE_COLUMNS, NO_VALUE, RAW_COLUMNS, TEXT_COLUMNS, Group, Scalar

if TYPE_CHECKING:
    from profiler.trace.schema import Arguments

_EMPTY = Sparse(np.empty(0, np.int32), np.empty(0, np.int64))


def decoded(group: Group, raws: Sequence[msgspec.Raw], repaired: Counter[str]) -> list[Arguments]:
    """The arguments of `raws` in the shape of `group`; unreadable ones are empty and counted."""
    text = b"[%b]" % b",".join(raws)
    try:
        return group.decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [_one(group, bytes(raw), repaired) for raw in raws]


def _one(group: Group, raw: bytes, repaired: Counter[str]) -> Arguments:
    try:
        values = json.loads(raw.decode("utf-8", errors="replace"), strict=False)
    except (ValueError, RecursionError):
        repaired["unreadable arguments"] += 1
        return group.shape()
    if not isinstance(values, dict):
        return group.shape()
    known: dict[str, object] = {}
    for spelling, value in values.items():
        field = group.spellings.get(spelling)
        if field is None:
            continue
        if field.rsplit("_", 1)[0] in RAW_COLUMNS:
            known[field] = msgspec.Raw(msgspec.json.encode(value))
        elif isinstance(value, int | float | str):
            known[field] = value
    return group.shape(**known)


def column(group: Group, args: Sequence[Arguments], name: str) -> Sequence[object]:
    """Values of one column; spellings merged, the first one present wins."""
    first, *others = (list(map(attrgetter(field), args)) for field in group.fields[name])
    if name in RAW_COLUMNS:
        first, others = _texts(first), [_texts(other) for other in others]
    absent = None if name in CODE_COLUMNS or name in TEXT_COLUMNS else NONE
    for other in others:
        if other.count(absent) < len(other):
            first = [b if a == absent else a for a, b in zip(first, other, strict=True)]
    return first


def _texts(values: Sequence[object]) -> list[object]:
    """JSON texts as bytes, None where there is none."""
    if values.count(NO_VALUE) == len(values):
        return [None] * len(values)
    raws = cast("Sequence[msgspec.Raw]", values)
    return [None if raw is NO_VALUE else bytes(raw) for raw in raws]


class Columns:
    """Collects the argument columns of all groups of one block."""

    def __init__(self, size: int, strings: Strings) -> None:
        self._size = size
        self._strings = strings
        self._parts: dict[str, list[tuple[Int32, Int64]]] = {}

    def add(self, group: Group, rows: Int32, args: Sequence[Arguments]) -> None:
        """Take in the arguments of the events at `rows` (ascending)."""
        for name in group.columns:
            values = column(group, args, name)
            absent = None if name in CODE_COLUMNS else NONE
            if values.count(absent) == len(values):
                continue
            if name in CODE_COLUMNS:
                found = self._strings.codes(values, len(values)).astype(np.int64)
            else:
                found = numbers(cast("Sequence[Scalar]", values))
            self._parts.setdefault(name, []).append((rows, found))

    def dense(self, name: str) -> Int64:
        """One column with `NONE` where absent."""
        out = np.full(self._size, NONE, np.int64)
        for rows, values in self._parts.get(name, ()):
            out[rows] = values
        return out

    def sparse(self, name: str) -> Sparse:
        """One column where present."""
        parts = self._parts.get(name, [])
        if not parts:
            return _EMPTY
        rows = np.concatenate([rows for rows, _ in parts])
        values = np.concatenate([values for _, values in parts])
        present = np.flatnonzero(values >= 0)
        present = present[np.argsort(rows[present], kind="stable")]
        return Sparse(rows[present], values[present])


def chosen(values: Sequence[object], mask: Bool) -> list[object]:
    """The values where `mask` holds."""
    return list(compress(values, mask.tolist()))


def numbers(values: Sequence[Scalar]) -> Int64:
    """Whole numbers as int64; ids that are no small number become a stable hash."""
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
