"""Operators that take longer than their inputs and the device's peaks explain."""

from __future__ import annotations

import numpy as np

from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.types import Candidate
from profiler.analysis.roofline.table import LAUNCH_FLOOR_NS, RooflineRow
from profiler.units import duration, share

FAR = 1.25
"""Measured over bound from which an operator is far from its roofline."""

REACHABLE = 0.9
"""Share of the bound that a good kernel reaches."""

_ROWS = 40


def find(scene: Scene) -> list[Candidate]:
    """One candidate per operator and inputs; without a peak one that says so."""
    if scene.peaks is None:
        return _without_peak(scene)
    out = []
    for row in scene.roof.rows[:_ROWS]:
        each = row.total_ns / row.calls
        floor = {"matrix": 2, "vector": 4}.get(row.cost.unit)
        if floor is None or row.bound_ns is None or each <= floor * LAUNCH_FLOOR_NS:
            continue
        if each > FAR * row.bound_ns:
            out.append(_candidate(scene, row, each))
    return out


def _candidate(scene: Scene, row: RooflineRow, each: float) -> Candidate:
    number = scene.roof.signatures.index(row.signature)
    ops = scene.in_window(scene.ops[np.flatnonzero(scene.roof.signature == number)])
    bound = row.bound_ns or 0.0
    new = max(bound / REACHABLE, LAUNCH_FLOOR_NS)
    frames = scene.inside(scene.frames(ops))
    peaks = scene.peaks
    return Candidate(
        kind="roofline_gap",
        subject=row.signature.name,
        title=f"{row.signature.name} reaches {share(bound / each)} of what the device can do",
        advice="Try another kernel, library, tile or layout; check shapes that miss the device's "
        "alignment (multiples of 8 or 16).",
        change=scene.scaled(row.signature.name, frames, new / each),
        evidence={
            "shapes": " ".join(row.signature.shapes.split()),
            "types": " ".join(row.signature.dtypes.split()),
            "call_ns": round(each),
            "bound_ns": round(bound),
            "bound": duration(bound),
            "limited_by": row.limit,
            "efficiency": bound / each,
            "flops": row.cost.flops,
            "bytes": row.cost.size_bytes,
            "peak_of": peaks.device if peaks is not None else "",
            "peak_origin": peaks.origin if peaks is not None else "",
        },
        modules=scene.modules(ops),
        calls=len(ops),
    )


def _without_peak(scene: Scene) -> list[Candidate]:
    heavy = [row for row in scene.roof.rows if row.cost.unit == "matrix"]
    if not heavy or heavy[0].total_ns < 0.05 * scene.graph.span_ns:
        return []
    reason = (
        "the peak of this device is not verified"
        if scene.unusable_peaks
        else ("no peak is known for this device")
    )
    row = heavy[0]
    return [
        Candidate(
            kind="roofline_gap",
            subject=row.signature.name,
            title=f"{row.signature.name} takes most of the matrix time; how far from its limit "
            "is not known",
            advice="Enter the device's peaks on its platform, or measure them.",
            change=None,
            evidence={"reason": reason, "flop_rate": row.flop_rate, "read_rate": row.read_rate},
            calls=row.calls,
        )
    ]
