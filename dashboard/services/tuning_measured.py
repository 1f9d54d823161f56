"""What the comparison of an iteration says, and what speaks against keeping it."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.models import ComparedState, ComparedWorkload, Comparison, Iteration
from dashboard.models.tuning import FASTER, NUMERICS_RIGHT
from dashboard.services.pairs import verdict_of
from profiler.analysis.verdict import Verdict

UNMEASURED = "not measured"
NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What the comparison of an iteration says by now.

    `verdict` is that of the leading workload, None where nothing was measured;
    `slower` names the other workloads that got slower, `unsettled` those that
    have no verdict.
    """

    verdict: Verdict | None = None
    slower: tuple[str, ...] = ()
    unsettled: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        return self.verdict.state if self.verdict else UNMEASURED


def measured_of(iteration: Iteration) -> Measured:
    """The verdicts of the iteration's comparison from every pair stored by now."""
    comparison = iteration.comparison
    if comparison is None:
        return Measured()
    rows = list(comparison.workloads.select_related("workload").order_by("position"))
    lead = next((row for row in rows if row.workload_id == iteration.tuning.workload_id), None)
    others = [row for row in rows if row is not lead]
    return Measured(
        verdict=_verdict(lead, comparison, iteration.tuning.metric) if lead else None,
        slower=tuple(str(row.workload) for row in others if row.verdict == "slower"),
        unsettled=tuple(str(row.workload) for row in others if row.state != ComparedState.SETTLED),
    )


def _verdict(row: ComparedWorkload, comparison: Comparison, metric: str) -> Verdict | None:
    row.comparison = comparison
    pairs = list(row.pairs.prefetch_related("launches"))
    return verdict_of(row, metric, pairs) if pairs else None


def concerns(iteration: Iteration, measured: Measured) -> tuple[str, ...]:
    """What speaks against keeping it, each the end of a sentence; none when all is verified."""
    found = []
    if measured.verdict is None:
        found.append("was not measured in pairs")
    elif measured.state != FASTER:
        found.append(f"is {measured.state}")
    if measured.slower:
        found.append(f"makes {_list(measured.slower)} slower")
    if measured.unsettled:
        found.append(f"left {_list(measured.unsettled)} without a verdict")
    if iteration.numerics not in NUMERICS_RIGHT:
        found.append(f"has answers that are {iteration.numerics}")
    return tuple(found)


def _list(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"
