"""Ranks that wait for the slowest one."""

from __future__ import annotations

import numpy as np

from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.types import Candidate
from profiler.analysis.replay.change import Change
from profiler.analysis.report import RankRow
from profiler.trace.kinds import Kind
from profiler.units import duration


def find(scene: Scene) -> list[Candidate]:
    """From the comparison of all ranks: what equal compute would save this rank."""
    ranks = scene.ranks or (scene.report.ranks if scene.report is not None else None)
    if ranks is None or len(ranks.ranks) < 2:
        return []
    own = own_rank(scene)
    mean = sum(r.compute_ns for r in ranks.ranks) / len(ranks.ranks)
    slowest = max(ranks.ranks, key=lambda r: r.compute_ns)
    if own is None or slowest.compute_ns <= 1.02 * mean:
        return []
    return [
        Candidate(
            kind="imbalance",
            subject=f"rank {slowest.rank}",
            title=f"Rank {slowest.rank} computes {duration(slowest.compute_ns)} against a mean of "
            f"{duration(mean)}; the others wait for it",
            advice="Look at routing and placement (experts, sequence lengths), and at that rank's "
            "clocks and temperature.",
            change=_levelled(scene, own, slowest, mean),
            evidence={
                "slowest_compute_ns": slowest.compute_ns,
                "mean_compute_ns": round(mean),
                "waited_ns": own.waited_ns,
            },
            calls=ranks.matched_collectives,
            guessed=True,
        )
    ]


def own_rank(scene: Scene) -> RankRow | None:
    """The row of the rank this trace is of, None without a comparison of ranks."""
    ranks = scene.ranks or (scene.report.ranks if scene.report is not None else None)
    if ranks is None or not ranks.ranks:
        return None
    recorded = scene.trace.header.rank
    rank = recorded if recorded is not None else ranks.ranks[0].rank
    return next((row for row in ranks.ranks if row.rank == rank), None)


def _levelled(scene: Scene, own: RankRow, slowest: RankRow, mean: float) -> Change:
    """The slowest rank computes the mean; every other rank waits that much less in collectives."""
    if own.rank == slowest.rank:
        works = np.flatnonzero(scene.work_kind == Kind.KERNEL)
        return scene.with_work_ns("", works, scene.work_ns[works] * (mean / own.compute_ns))
    comm = np.flatnonzero(scene.work_kind == Kind.COMMUNICATION)
    total = int(scene.work_ns[comm].sum())
    excess = min(float(own.waited_ns), slowest.compute_ns - mean)
    factor = max(0.0, 1 - excess / total) if total else 1.0
    return scene.with_work_ns("", comm, scene.work_ns[comm] * factor)
