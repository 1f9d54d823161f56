"""Which operator took most of a confirmed change, from the profiled launches of its pairs."""

from __future__ import annotations

from dashboard.models import ComparedWorkload
from dashboard.queries.differences import difference_of
from profiler import units
from profiler.analysis.waterfall import Bar, Waterfall
from profiler.errors import UserError, printable


def culprit_of(compared: ComparedWorkload) -> tuple[str, str]:
    """The name of what changed most in the change's own direction, and by how much of the whole.

    The name is empty where the profiled launches do not tell; the second text says why.
    """
    try:
        report = difference_of(compared)
    except UserError as error:
        return "", printable(error.line(), 500)
    if report is None:
        return "", "The profiled launches were not compared"
    found = largest(report.waterfall, slower=compared.verdict == "slower")
    if found is None:
        return "", "Under the profiler no part of the step changed that way"
    whole = report.waterfall.candidate_ns - report.waterfall.baseline_ns
    detail = f"{_signed(found.change_ns)} of {_signed(whole)} per step under the profiler"
    return printable(found.name, 500), detail


def largest(waterfall: Waterfall, *, slower: bool) -> Bar | None:
    """The bar with the largest change in one direction, None when all go the other way."""
    sign = 1 if slower else -1
    told = [bar for bar in waterfall.bars if bar.kind != "rest" and bar.change_ns * sign > 0]
    return max(told, key=lambda bar: bar.change_ns * sign, default=None)


def _signed(ns: int) -> str:
    return f"{'+' if ns >= 0 else '−'}{units.duration(abs(ns))}"
