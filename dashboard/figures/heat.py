"""The verdicts of many workloads as heat maps: a cell per batch and prompt length, text in each.

Geometry and words only; the colour says again what the text says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.models import ComparedState, Workload
from dashboard.queries.comparisons import WorkloadView
from profiler.analysis.wording import within
from profiler.units import change, count

STEPS = (0.02, 0.05, 0.1, 0.2)
"""Changes at which a tint gets one step stronger."""

FEWEST = 2
"""Groups without as many workloads make no map worth drawing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatCell:
    """One workload: its words, its tint (`better2`, `worse1`, `same`, `open`, `failed`)."""

    text: str
    tint: str
    title: str
    position: int
    has_difference: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatRow:
    """One batch size; a place without a workload is None."""

    batch: int
    cells: tuple[HeatCell | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """The workloads that differ in batch and prompt length alone."""

    title: str
    metric: str
    prompts: tuple[int, ...]
    rows: tuple[HeatRow, ...]


def heat_maps(views: Sequence[WorkloadView]) -> tuple[HeatMap, ...]:
    """One map for each model, scenario, type and variant, in the order of the workloads."""
    if not views:
        return ()
    groups: dict[str, list[WorkloadView]] = {}
    several = len({view.row.workload.model_id for view in views}) > 1
    for view in views:
        groups.setdefault(_group(view.row.workload, named=several), []).append(view)
    if max(map(len, groups.values())) < FEWEST:
        return ()
    return tuple(_map(title, found) for title, found in groups.items())


def _group(workload: Workload, *, named: bool) -> str:
    """What the workloads of a map share: `decode out32 bfloat16`."""
    model = workload.model.name if named else ""
    tokens = f"out{workload.output_tokens}" if workload.output_tokens else ""
    words = (model, workload.scenario, tokens, workload.dtype, workload.variant)
    return " ".join(word for word in words if word)


def _map(title: str, found: Sequence[WorkloadView]) -> HeatMap:
    at = {(view.row.workload.batch, view.row.workload.prompt_tokens): view for view in found}
    prompts = tuple(sorted({prompt for _, prompt in at}))
    return HeatMap(
        title=title,
        metric=found[0].verdict.title,
        prompts=prompts,
        rows=tuple(
            HeatRow(
                batch=batch,
                cells=tuple(
                    _cell(at[batch, prompt]) if (batch, prompt) in at else None
                    for prompt in prompts
                ),
            )
            for batch in sorted({batch for batch, _ in at})
        ),
    )


def _cell(view: WorkloadView) -> HeatCell:
    text, tint = _words(view)
    return HeatCell(
        text=text,
        tint=tint,
        title=f"{view.row.workload}: {view.verdict.sentence}",
        position=view.row.position,
        has_difference=view.row.difference_id is not None,
    )


def _words(view: WorkloadView) -> tuple[str, str]:
    """What the cell says and the name of its tint."""
    verdict = view.verdict
    if view.row.state == ComparedState.FAILED:
        return "failed", "failed"
    if view.row.state == ComparedState.CANCELLED:
        return "cancelled", "open"
    if view.is_measured:
        return f"pair {verdict.counts.attempted} of {view.row.pairs_wanted}", "open"
    if verdict.state in {"faster", "slower"}:
        tint = "better" if verdict.state == "faster" else "worse"
        mark = "▼" if (verdict.effect or 0) < 0 else "▲"
        return f"{mark} {change(verdict.effect)}", f"{tint}{_step(verdict.effect)}"
    if verdict.state == "no change":
        return f"{change(verdict.effect)}, within {within(verdict)}", "same"
    if verdict.state == "inconclusive":
        more = verdict.more_pairs
        return (f"? {count(more)} more pairs" if more else "? inconclusive"), "open"
    return "not comparable", "failed"


def _step(effect: float | None) -> int:
    size = abs(effect or 0.0)
    return max(1, sum(size >= step for step in STEPS))
