"""What a call of each operator takes here: the measure for later runs of the same workload."""

from __future__ import annotations

import numpy as np

from profiler.analysis.bounds import TypicalCall
from profiler.analysis.findings.scene import Scene

KEPT = 300
"""Signatures with the most time; the rest is too short to regress by anything worth showing."""

_NORMAL = 1.4826
"""Median absolute deviation to standard deviation, for normally distributed times."""


def typical_calls(scene: Scene) -> list[TypicalCall]:
    """Median and spread per operator, shapes and types; calls that differ in scalars together."""
    timed = np.flatnonzero(scene.roof.timed >= 0)
    if not len(timed):
        return []
    number, keys = _by_inputs(scene)
    own = number[scene.roof.timed[timed]]
    ns = scene.roof.time_ns[timed]
    order = np.lexsort((ns, own))
    own, ns = own[order], ns[order]
    found, first = np.unique(own, return_index=True)
    stretches = np.split(ns, first[1:])
    total = [int(one.sum()) for one in stretches]
    made = [keys[number] for number in found.tolist()]
    chosen = sorted(range(len(found)), key=lambda at: (-total[at], made[at]))[:KEPT]
    return [_call(made[at], stretches[at]) for at in chosen if total[at]]


def _by_inputs(scene: Scene) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], list[Key]]:
    """Number of (name, shapes, types) per signature, and those."""
    numbers: dict[Key, int] = {}
    made = [
        numbers.setdefault((s.name, s.shapes, s.dtypes), len(numbers))
        for s in scene.roof.signatures
    ]
    return np.array(made, np.int64), list(numbers)


Key = tuple[str, str, str]


def _call(key: Key, ns: np.ndarray[tuple[int], np.dtype[np.int64]]) -> TypicalCall:
    """`ns` ascending."""
    name, shapes, dtypes = key
    median = float(np.median(ns))
    spread = float(np.median(np.abs(ns - median))) * _NORMAL
    return TypicalCall(
        name=name,
        shapes=shapes,
        dtypes=dtypes,
        calls=len(ns),
        median_ns=round(median),
        noise_ns=round(spread),
    )
