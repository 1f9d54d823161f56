"""What two profiled launches differ in: the document that a worker writes and a page reads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from profiler.analysis.diff import SCHEMA, Diff, diff
from profiler.analysis.diffflame import DiffFlame, diff_flame
from profiler.analysis.stepprofile import StepProfile, profile_of_trace
from profiler.analysis.waterfall import Waterfall, waterfall

FRAMES_KEPT = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The same parts that `python -m profiler diff --json` prints."""

    diff: Diff
    waterfall: Waterfall
    flame: DiffFlame
    schema: int = SCHEMA


def difference_between(base: Path, candidate: Path) -> Difference:
    """Compare two traces per step; raises `UserError` when one cannot be read."""
    return difference_of(profile_of_trace(base), profile_of_trace(candidate))


def difference_of(one: StepProfile, other: StepProfile) -> Difference:
    """Compare two step profiles."""
    found = diff(one, other)
    return Difference(
        diff=found,
        waterfall=waterfall(found),
        flame=diff_flame(one, other, found.measure, most=FRAMES_KEPT),
    )
