"""Memory of each device over the trace, from the allocator's records."""

from __future__ import annotations

import itertools

import numpy as np

from profiler.analysis.memory_owners import held_at, memory_owners, memory_shares
from profiler.analysis.report import MemoryCurve, MemoryPoint
from profiler.trace.batch import Instants
from profiler.trace.clock import NO_TIME, Int64
from profiler.trace.link import Structure
from profiler.trace.model import Trace

POINTS = 2000
_DEVICE_TYPES = {0: "cpu", 1: "cuda", 6: "hip", 12: "xpu", 13: "mps", 14: "meta", 15: "hpu"}


def memory_curves(trace: Trace, structure: Structure) -> list[MemoryCurve]:
    """One curve per device with records: allocated and reserved bytes after each change.

    Where totals are not recorded (torch before 1.12), allocated is the running
    sum of the changes from the start of the recording. At most 2,000 points:
    of each stretch its highest one, so that peaks stay.
    """
    instants = trace.instants
    known = np.asarray(instants.ts != NO_TIME)
    pair = instants.device_type * 1024 + instants.device_index + 1
    curves = []
    for key in np.unique(pair[known]).tolist():
        rows = np.flatnonzero(known & (pair == key))
        rows = rows[np.argsort(instants.ts[rows], kind="stable")]
        device = _device(key // 1024, key % 1024 - 1)
        curves.append(_curve((trace, structure), instants, rows, device))
    return curves


def _device(kind: int, index: int) -> str:
    name = _DEVICE_TYPES.get(kind, f"type{kind}")
    return name if index < 0 else f"{name}:{index}"


def _curve(
    found: tuple[Trace, Structure], instants: Instants, rows: Int64, device: str
) -> MemoryCurve:
    trace, structure = found
    allocated = instants.allocated[rows]
    if (allocated < 0).all():
        allocated = np.cumsum(instants.bytes[rows])
    reserved = instants.reserved[rows]
    has_reserved = bool((reserved > 0).any())
    at = instants.ts[rows] - trace.start_ns
    peak = int(np.argmax(allocated))
    points = [
        MemoryPoint(
            at_ns=int(at[n]),
            allocated_bytes=int(allocated[n]),
            reserved_bytes=int(reserved[n]) if has_reserved else None,
        )
        for n in _thinned(allocated)
    ]
    held = held_at(trace, structure, rows, peak)
    shares = memory_shares(held, int(allocated[peak])) if held is not None else []
    return MemoryCurve(
        device=device,
        records=len(rows),
        peak_allocated_bytes=int(allocated[peak]),
        peak_reserved_bytes=int(reserved.max()) if has_reserved else None,
        peak_at_ns=int(at[peak]),
        points=points,
        shares=shares,
        owners=memory_owners(held) if held is not None and shares else [],
    )


def _thinned(values: Int64) -> list[int]:
    """Positions of at most `POINTS` values, the highest of each stretch, and the last."""
    if len(values) <= POINTS:
        return list(range(len(values)))
    edges = np.linspace(0, len(values), POINTS, dtype=np.int64).tolist()
    kept = [
        low + int(np.argmax(values[low:high]))
        for low, high in itertools.pairwise(edges)
        if high > low
    ]
    return sorted({*kept, len(values) - 1})
