"""Columns of one block of events: what decoding hands to the rest of the engine."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from profiler.trace.clock import Int64

Int32 = npt.NDArray[np.int32]
Bool = npt.NDArray[np.bool_]

NONE = -1
"""Code of an absent string, value of an absent number."""


@dataclass(frozen=True, slots=True)
class Sparse:
    """A column that few events have: `rows` ascending, `values` aligned with them."""

    rows: Int32
    values: Int64


@dataclass(slots=True)
class Complete:
    """Complete events (`ph` X): one entry per event, times in nanoseconds."""

    name: Int32
    category: Int32
    track: Int32
    ts: Int64
    dur: Int64
    correlation: Int64
    external_id: Int64
    sparse: dict[str, Sparse]


@dataclass(slots=True)
class Flows:
    """Ends of flow arrows; `begin` is true for starts."""

    category: Int32
    id: Int64
    track: Int32
    ts: Int64
    begin: Bool


def no_flows() -> Flows:
    """Columns of no arrow at all."""
    codes, times = np.empty(0, np.int32), np.empty(0, np.int64)
    return Flows(category=codes, id=times, track=codes, ts=times, begin=np.empty(0, np.bool_))


@dataclass(slots=True)
class Instants:
    """Memory records: signed `bytes` at `address`, totals `allocated` and `reserved` after it."""

    ts: Int64
    track: Int32
    bytes: Int64
    allocated: Int64
    reserved: Int64
    device_type: Int64
    device_index: Int64
    address: Int64


@dataclass(slots=True)
class Batch:
    """One decoded block.

    String and track codes index the decoder's own tables; `strings` and
    `tracks` are the entries new since its previous batch. `tail` is the text
    behind the event array if it ended in this block. `edges` are the begin
    and end events (`ph` B and E) as (track, ts, name or NONE).
    """

    complete: Complete
    flows: Flows
    instants: Instants
    edges: list[tuple[int, int, int]]
    labels: list[tuple[int, str, str]]
    strings: list[str]
    tracks: list[tuple[str, str]]
    events: int
    repaired: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    tail: bytes | None = None
