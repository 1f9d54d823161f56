"""Operators slower per call than in the best comparable past run."""

from __future__ import annotations

import numpy as np

from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.types import Candidate
from profiler.units import change, duration

NOISES = 3
"""How many times the past noise a median must be off to count."""

LEAST = 1.03


def find(scene: Scene) -> list[Candidate]:
    """One candidate per signature that the past knows and that got slower beyond noise."""
    out = []
    known = scene.past or {}
    groups: dict[tuple[str, str, str], list[int]] = {}
    for number, made in enumerate(scene.roof.signatures if known else ()):
        groups.setdefault((made.name, made.shapes, made.dtypes), []).append(number)
    for (name, shapes, dtypes), numbers in groups.items():
        past = known.get((name, shapes, dtypes))
        if past is None or past.median_ns <= 0:
            continue
        key = np.isin(scene.roof.timed, numbers)
        each = scene.roof.time_ns[key]
        if not len(each):
            continue
        median = float(np.median(each))
        if median <= max(past.median_ns * LEAST, past.median_ns + NOISES * past.noise_ns):
            continue
        ops = scene.in_window(scene.ops[np.flatnonzero(key)])
        frames = scene.inside(scene.frames(ops))
        ratio = median / past.median_ns - 1
        out.append(
            Candidate(
                kind="regressed_operator",
                subject=name,
                title=f"{name} is {change(ratio)} against its best past run",
                advice="Look at the commits since that run and the differential flame graph.",
                change=scene.scaled(name, frames, past.median_ns / median),
                evidence={
                    "shapes": shapes,
                    "call_ns": round(median),
                    "past_ns": past.median_ns,
                    "past": duration(past.median_ns),
                    "past_run": past.run,
                    "past_commit": past.commit,
                },
                modules=scene.modules(ops),
                calls=len(ops),
            )
        )
    return out
