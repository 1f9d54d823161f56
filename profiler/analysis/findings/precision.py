"""Matrix products in a wider type than the workload asks for."""

from __future__ import annotations

import numpy as np

from profiler.analysis.findings.roofline_gap import REACHABLE
from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.types import Candidate
from profiler.analysis.roofline.calls import WIDTHS
from profiler.analysis.roofline.cost import Cost
from profiler.analysis.roofline.table import RooflineRow

_NARROW = ("bfloat16", "float16")


def find(scene: Scene) -> list[Candidate]:
    """One candidate per operator and inputs in a wider type, on a device with faster narrow units.

    Allowed is the type of the workload where it is known, else the type that
    most of the matrix arithmetic of the trace runs in.
    """
    allowed = scene.dtype or _usual(scene)
    if scene.peaks is None or allowed not in _NARROW:
        return []
    out = []
    for row in scene.roof.rows:
        wide, narrow = scene.peaks.rate(row.cost.dtype), scene.peaks.rate(allowed)
        wider = WIDTHS.get(row.cost.dtype, 0) > WIDTHS[allowed] and row.cost.dtype.startswith("fl")
        if row.cost.unit == "matrix" and wider and wide and narrow and narrow > wide:
            out.append(_candidate(scene, row, allowed, wide / narrow))
    return out


def _usual(scene: Scene) -> str:
    flops: dict[str, int] = {}
    for row in scene.roof.rows:
        if row.cost.unit == "matrix":
            flops[row.cost.dtype] = flops.get(row.cost.dtype, 0) + row.cost.flops * row.calls
    return max(flops, key=lambda name: flops[name], default="")


def _candidate(scene: Scene, row: RooflineRow, allowed: str, ratio: float) -> Candidate:
    number = scene.roof.signatures.index(row.signature)
    ops = scene.in_window(scene.ops[np.flatnonzero(scene.roof.signature == number)])
    each = row.total_ns / row.calls
    narrow = Cost(
        flops=row.cost.flops,
        size_bytes=row.cost.size_bytes * WIDTHS[allowed] // WIDTHS[row.cost.dtype],
        unit="matrix",
        dtype=allowed,
    )
    bound = scene.peaks.bound_ns(narrow) if scene.peaks is not None else None
    new = max(each * ratio, (bound or 0.0) / REACHABLE)
    frames = scene.inside(scene.frames(ops))
    return Candidate(
        kind="precision",
        subject=row.signature.name,
        title=f"{row.signature.name} runs in {row.cost.dtype} where {allowed} is allowed",
        advice=f"Run it in {allowed}, or switch on the device's fast mode for {row.cost.dtype}; "
        "check the numerics afterwards.",
        change=scene.scaled(row.signature.name, frames, min(1.0, new / each)),
        evidence={
            "shapes": " ".join(row.signature.shapes.split()),
            "type": row.cost.dtype,
            "allowed": allowed,
            "peak_ratio": ratio,
            "call_ns": round(each),
        },
        modules=scene.modules(ops),
        calls=len(ops),
        guessed=scene.dtype is None,
    )
