"""The table of device work by name."""

from __future__ import annotations

import numpy as np

from profiler.analysis.report import KernelRow
from profiler.trace.kinds import DEVICE_CLASSES, Kind
from profiler.trace.model import Trace


def kernel_rows(trace: Trace) -> list[KernelRow]:
    """All names with count, sum, shortest and longest, by sum descending, then name."""
    device = trace.device
    if not len(device.rows):
        return []
    key = device.name.astype(np.int64) * 64 + device.kind
    keys, inverse, counts = np.unique(key, return_inverse=True, return_counts=True)
    total = np.zeros(len(keys), np.int64)
    np.add.at(total, inverse, device.dur)
    low = np.full(len(keys), np.iinfo(np.int64).max)
    high = np.zeros(len(keys), np.int64)
    np.minimum.at(low, inverse, device.dur)
    np.maximum.at(high, inverse, device.dur)
    rows = [
        KernelRow(
            name=trace.strings[k // 64],
            device_class=DEVICE_CLASSES[Kind(k % 64)],
            count=n,
            total_ns=t,
            min_ns=a,
            max_ns=b,
        )
        for k, n, t, a, b in zip(
            *(a.tolist() for a in (keys, counts, total, low, high)), strict=True
        )
    ]
    return sorted(rows, key=lambda row: (-row.total_ns, row.name, row.device_class))
