"""How a workload stands, in words: against Day-0, against its best, against the roofline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dashboard.queries.standings import Measure, StandingDetail
from profiler import units
from profiler.types import SCENARIOS

ALIKE = 0.02
"""Single launches this near to Day-0 are called as fast; a verdict takes pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioWords:
    """One scenario in a few words; `tone` is better, worse or empty."""

    scenario: str
    words: str
    tone: str


def times(ratio: float) -> str:
    """`1.59x faster`, `1.05x slower`, `as fast`: a ratio of speeds."""
    if abs(ratio - 1) < ALIKE:
        return "as fast"
    return f"{ratio:.2f}x faster" if ratio > 1 else f"{1 / ratio:.2f}x slower"


def tone_of(ratio: float | None) -> str:
    """The colour of a ratio; none within `ALIKE`."""
    if ratio is None or abs(ratio - 1) < ALIKE:
        return ""
    return "better" if ratio > 1 else "worse"


def standing_words(one: StandingDetail | None) -> str:
    """`1.59x faster than on Day-0 (12.1 ms to 7.62 ms), its best so far`."""
    if one is None or one.measure is None:
        return "not measured yet"
    measure = one.measure
    unit = measure.metric.unit
    now = units.quantity(measure.value, unit)
    ratio = measure.ratio
    if ratio is None:
        return f"measured at one place only, {now}"
    day0 = units.quantity(measure.day0_value, unit)
    best = _best(measure, one.best_sha)
    if times(ratio) == "as fast":
        return f"as fast as on Day-0 ({now}){best}"
    return f"{times(ratio)} than on Day-0 ({day0} to {now}){best}"


def _best(measure: Measure, sha: str) -> str:
    if measure.at_best:
        return ", its best so far"
    best = units.quantity(measure.best_value, measure.metric.unit)
    where = sha[:10] or f"run {measure.best_run_id}"
    return f"; best so far {best} at {where}"


def scenario_words(chosen: Iterable[StandingDetail]) -> tuple[ScenarioWords, ...]:
    """A few words on every scenario; those without a workload are said to be missing."""
    found = {one.scenario: one for one in chosen}
    return tuple(
        ScenarioWords(
            scenario=scenario,
            words=standing_words(found.get(scenario)),
            tone=_tone(found.get(scenario)),
        )
        for scenario in SCENARIOS
    )


def _tone(one: StandingDetail | None) -> str:
    return tone_of(one.measure.ratio) if one is not None and one.measure else ""


def roofline_words(one: StandingDetail) -> str:
    """How far from the roofline the newest trace was, or why that is not known."""
    if one.trace_id is None:
        return "no trace of it has been read"
    if one.roofline is None or one.counted is None:
        return "not known: the trace has no shapes, or the platform no trusted peak"
    share, counted = units.share(one.roofline), units.share(one.counted)
    return f"{share} of the roofline in the {counted} of the time that can be counted"
