"""Two traces side by side, whoever recorded them: what became of a step, and what matches.

Works from the step profiles that reading the traces left; no trace is read again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from dashboard.models import Result, Trace
from dashboard.queries.differences import step_change
from dashboard.queries.profiles import NoProfileError, step_profile_of
from dashboard.queries.side_by_side import FieldRow, SideBySide, field_rows, ordered
from dashboard.services.difference import Difference, difference_of
from profiler.analysis.diff import DiffSide
from profiler.errors import UserError, printable
from profiler.types import EXACT_ONLY
from profiler.units import change, duration, share

KEPT = 4
"""Differences held in memory: a reader zooms and sorts the same one again and again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """A part of the measured time of a step on both sides; all parts make the total."""

    title: str
    baseline_ns: int
    candidate_ns: int
    baseline_share: float | None
    candidate_share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TracesView:
    """A baseline, the candidate looked at, and the other traces of the address.

    `difference` is None where `problem` says why.
    """

    baseline: Trace
    candidate: Trace
    others: tuple[Trace, ...]
    missing: tuple[int, ...]
    facts: tuple[FieldRow, ...]
    environment: tuple[FieldRow, ...]
    difference: Difference | None
    problem: UserError | None
    sentence: str

    @property
    def coverage(self) -> tuple[Coverage, ...]:
        return coverage(self.difference) if self.difference else ()

    @property
    def everything(self) -> tuple[Trace, ...]:
        return (self.baseline, self.candidate, *self.others)


def traces_view(wanted: SideBySide) -> TracesView | None:
    """The traces asked for; None when fewer than two of them exist."""
    related = ("profile", "run__workload__model", "run__platform", "uploaded_by")
    rows = Trace.objects.select_related(*related).filter(pk__in=wanted.numbers)
    found = {trace.pk: trace for trace in rows}
    if len(found) < 2:
        return None
    first, *rest = (found[number] for number in ordered(wanted, tuple(found)))
    chosen = next((trace for trace in rest if trace.pk == wanted.candidate), rest[0])
    difference, problem = _difference(first, chosen)
    return TracesView(
        baseline=first,
        candidate=chosen,
        others=tuple(trace for trace in rest if trace.pk != chosen.pk),
        missing=tuple(number for number in wanted.numbers if number not in found),
        facts=_facts(first, chosen, difference),
        environment=_environment(first, chosen),
        difference=difference,
        problem=problem,
        sentence=_sentence(difference),
    )


def _difference(one: Trace, other: Trace) -> tuple[Difference | None, UserError | None]:
    for trace in (one, other):
        if trace.state != "ready" and trace.profile_id is None:
            name = printable(trace.name, 100)
            return None, NoProfileError(f"{name} is {trace.state}", "wait until it has been read")
    try:
        return _kept(_key(one), _key(other)), None
    except UserError as error:
        return None, error


_Key = tuple[int, str, str]
"""A trace, the hash of its profile and its name: another reading is another key."""


def _key(trace: Trace) -> _Key:
    return trace.pk, trace.profile.sha256 if trace.profile else "", trace.name


@lru_cache(maxsize=KEPT)
def _kept(one: _Key, other: _Key) -> Difference:
    rows = Trace.objects.select_related("profile").in_bulk([one[0], other[0]])
    return difference_of(step_profile_of(rows[one[0]]), step_profile_of(rows[other[0]]))


def coverage(found: Difference) -> tuple[Coverage, ...]:
    """Where the measured time of a step went, both sides, with nothing left over."""
    sides = (found.diff.baseline, found.diff.candidate)
    parts = (
        ("in operators that both have", [side.matched_ns for side in sides]),
        ("in operators of one side only", [side.unmatched_ns for side in sides]),
        ("inside graph launches, opaque", [side.opaque_ns for side in sides]),
        ("launched outside operators", [side.outside_ns for side in sides]),
        ("launch not in the file, unlinked", [side.unlinked_ns for side in sides]),
    )
    totals = [side.total_ns for side in sides]
    return tuple(
        _part(title, times, totals) for title, times in (*parts, ("all of a step", totals))
    )


def _part(title: str, times: list[int], totals: list[int]) -> Coverage:
    shares = [ns / total if total else None for ns, total in zip(times, totals, strict=True)]
    return Coverage(
        title=title,
        baseline_ns=times[0],
        candidate_ns=times[1],
        baseline_share=shares[0],
        candidate_share=shares[1],
    )


def _facts(one: Trace, other: Trace, found: Difference | None) -> tuple[FieldRow, ...]:
    """Facts of the recordings that differ."""
    sides = [_recorded(one), _recorded(other)]
    if found is not None:
        for facts, side in zip(sides, (found.diff.baseline, found.diff.candidate), strict=True):
            facts["device"] = side.device_kind
            facts["torch"] = side.torch_version or "not recorded"
            facts["steps"] = str(side.steps)
    return field_rows(sides, lambda name: name in {"device", "torch"})


def _recorded(trace: Trace) -> dict[str, str]:
    return {
        "device": trace.device_kind or "not known",
        "rank": str(trace.rank),
        "span": duration(trace.span_ns),
        "platform": trace.run.platform.slug if trace.run else "uploaded",
    }


def _environment(one: Trace, other: Trace) -> tuple[FieldRow, ...]:
    """Fields of the runs' environments that differ; empty without a run on both sides."""
    if one.run_id is None or other.run_id is None or one.run_id == other.run_id:
        return ()
    runs = (one.run_id, other.run_id)
    rows = Result.objects.filter(run_id__in=runs).defer("document")
    found = {row.run_id: row.environment.get("fields", {}) for row in rows}
    if len(found) < 2:
        return ()
    sides = [{str(k): str(v) for k, v in found[run].items()} for run in runs]
    return field_rows(sides, lambda name: name not in EXACT_ONLY)


def _sentence(found: Difference | None) -> str:
    """What a step takes on both sides; two recordings never make a verdict."""
    if found is None:
        return "These two traces cannot be compared yet."
    base, cand = found.diff.baseline, found.diff.candidate
    moved = change(step_change(found.diff))
    steps = f"A recorded step takes {duration(cand.step_ns)} instead of {duration(base.step_ns)}"
    return f"{steps}, {moved}. {_matched(base, cand)} One recording a side, so no verdict."


def _matched(base: DiffSide, cand: DiffSide) -> str:
    if base.matched_share is None or cand.matched_share is None:
        return "No operator time was linked on one side."
    return (
        f"{share(base.matched_share)} of the baseline's operator time and "
        f"{share(cand.matched_share)} of the candidate's is in operators that both have."
    )
