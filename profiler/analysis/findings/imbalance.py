"""Ranks that wait for the slowest one."""

from __future__ import annotations

import numpy as np

from profiler.analysis.findings.parts import Parts
from profiler.analysis.findings.ranking import priced
from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.stored import Replayed
from profiler.analysis.findings.types import Candidate, Finding
from profiler.analysis.replay.change import Change
from profiler.analysis.replay.schedule import spans_ns
from profiler.analysis.report import RankRow, RankSet
from profiler.trace.kinds import Kind
from profiler.units import duration

UNEVEN = 1.02
"""Compute of the slowest rank over the mean from which ranks count as uneven."""

EXPLAINS = 0.5
"""Share of the waiting that more compute must explain to be its cause."""

_ADVICE = (
    "Look at routing and placement (experts, sequence lengths), and at that rank's clocks and "
    "temperature."
)
_ADVICE_LATE = (
    "It computes no longer than the others, so look at what its host does before its collectives: "
    "input, Python, other programs on its processor."
)


def find(scene: Scene) -> list[Candidate]:
    """From the comparison of all ranks: what equal ranks would save this one."""
    ranks, own = _ranks_of(scene), own_rank(scene)
    made = _candidate(scene, ranks, own.rank) if ranks is not None and own is not None else None
    return [made] if made is not None else []


def own_rank(scene: Scene) -> RankRow | None:
    """The row of the rank this trace is of, None without a comparison of ranks."""
    ranks = _ranks_of(scene)
    if ranks is None or not ranks.ranks:
        return None
    recorded = scene.trace.header.rank
    rank = recorded if recorded is not None else ranks.ranks[0].rank
    return next((row for row in ranks.ranks if row.rank == rank), None)


def _ranks_of(scene: Scene) -> RankSet | None:
    return scene.ranks or (scene.report.ranks if scene.report is not None else None)


def of_set(steps: Replayed, ranks: RankSet, rank: int) -> Finding | None:
    """The same long after the traces were read, from the replayed steps of `rank`.

    None where the ranks are even, or where that says nothing of this rank's step.
    """
    made = _candidate(steps, ranks, rank)
    if made is None or made.change is None:
        return None
    measured, span = spans_ns(steps.graph, [Change("unchanged"), made.change])
    return priced(steps, made, measured - span, steps.path)


def cause(ranks: RankSet) -> int | None:
    """The rank that the others wait for: it computes more than they do, or else comes late."""
    if len(ranks.ranks) < 2:
        return None
    slowest = max(ranks.ranks, key=lambda r: r.compute_ns)
    return slowest.rank if _computes_more(ranks, slowest) else ranks.straggler


def _computes_more(ranks: RankSet, row: RankRow) -> bool:
    """Whether more compute than the mean, and than half of what the straggler is waited for.

    A rank that is late for another reason (its host) is not helped by equal compute.
    """
    late = max((r.late_ns for r in ranks.ranks if r.rank == ranks.straggler), default=0)
    others = (sum(r.compute_ns for r in ranks.ranks) - row.compute_ns) / (len(ranks.ranks) - 1)
    more = row.compute_ns - others
    return row.compute_ns > UNEVEN * _mean(ranks) and more >= EXPLAINS * late


def _mean(ranks: RankSet) -> float:
    return sum(r.compute_ns for r in ranks.ranks) / len(ranks.ranks)


def _candidate(parts: Parts, ranks: RankSet, rank: int) -> Candidate | None:
    subject = cause(ranks)
    own = next((row for row in ranks.ranks if row.rank == rank), None)
    slow = next((row for row in ranks.ranks if row.rank == subject), None)
    if own is None or slow is None:
        return None
    if _computes_more(ranks, slow):
        return _uneven(parts, ranks, own, slow)
    return _late(parts, ranks, own, slow) if own is not slow else None


def _uneven(parts: Parts, ranks: RankSet, own: RankRow, slowest: RankRow) -> Candidate:
    """The slowest rank computes the mean; every other rank waits that much less in collectives."""
    mean = _mean(ranks)
    if own is slowest:
        works = np.flatnonzero(parts.work_kind == Kind.KERNEL)
        change = parts.with_work_ns("", works, parts.work_ns[works] * (mean / own.compute_ns))
    else:
        change = _shorter_waits(parts, own, slowest.compute_ns - mean)
    return Candidate(
        kind="imbalance",
        subject=f"rank {slowest.rank}",
        title=f"Rank {slowest.rank} computes {duration(slowest.compute_ns)} against a mean of "
        f"{duration(mean)}; the others wait for it",
        advice=_ADVICE,
        change=change,
        evidence={
            "slowest_compute_ns": slowest.compute_ns,
            "mean_compute_ns": round(mean),
            "waited_ns": own.waited_ns,
            "priced_on_rank": own.rank,
        },
        calls=ranks.matched_collectives,
        guessed=True,
    )


def _late(parts: Parts, ranks: RankSet, own: RankRow, late: RankRow) -> Candidate:
    """The straggler comes with the others, which then wait that much less for it."""
    return Candidate(
        kind="imbalance",
        subject=f"rank {late.rank}",
        title=f"Rank {late.rank} comes last to its collectives; the others wait "
        f"{duration(late.late_ns)} for it on average",
        advice=_ADVICE_LATE,
        change=_shorter_waits(parts, own, late.late_ns),
        evidence={
            "late_ns": late.late_ns,
            "waited_ns": own.waited_ns,
            "priced_on_rank": own.rank,
        },
        calls=ranks.matched_collectives,
        guessed=True,
    )


def _shorter_waits(parts: Parts, own: RankRow, excess_ns: float) -> Change:
    """Collectives of this rank without their share of a wait of `excess_ns` over the whole trace.

    The steps that are replayed may be some of the trace: what is taken off is a share.
    """
    comm = np.flatnonzero(parts.work_kind == Kind.COMMUNICATION)
    total = max(int(parts.work_ns[comm].sum()), own.comm_ns)
    excess = min(float(own.waited_ns), excess_ns)
    factor = max(0.0, 1 - excess / total) if total else 1.0
    return parts.with_work_ns("", comm, parts.work_ns[comm] * factor)
