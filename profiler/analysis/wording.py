"""Verdicts in words: one sentence each, and what else a reader must know."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.analysis.verdict import PairCounts, Verdict
from profiler.errors import printable
from profiler.units import change

_NO_SPEED = ("bytes", "ratio", "count")
"""Units of metrics that get better or worse but neither faster nor slower."""

_NOT_COMPARABLE = {
    "no baseline": "the baseline produced no result in any of {n} pairs",
    "no candidate": "the candidate produced no result in any of {n} pairs",
    "no pair": "none of {n} pairs has a result on both sides",
    "unusable": "none of {n} pairs has a positive, finite value on both sides",
}


def sentence(verdict: Verdict, obstacles: Sequence[str] = ()) -> str:
    """One sentence that says the verdict with its figures."""
    title, pairs = verdict.title, _pairs(verdict.counts.used)
    if verdict.reason == "environment":
        return f"{title}: not comparable: {'; '.join(printable(text) for text in obstacles)}."
    if verdict.state == "not comparable":
        why = _NOT_COMPARABLE[verdict.reason].format(n=verdict.counts.attempted)
        return f"{title}: not comparable: {why}."
    if verdict.reason == "difference":
        return f"{title}: {speed_word(verdict)}, {figures(verdict)}, {pairs}."
    if verdict.state == "no change":
        return f"{title}: no change within {within(verdict)}, {figures(verdict)}, {pairs}."
    return f"{title}: inconclusive{_so_far(verdict)}{_open(verdict)}."


def speed_word(verdict: Verdict) -> str:
    """The state as a word that suits the metric: memory is better or worse, not faster."""
    if verdict.unit in _NO_SPEED and verdict.state in ("faster", "slower"):
        return "better" if verdict.state == "faster" else "worse"
    return verdict.state


def figures(verdict: Verdict) -> str:
    """The effect with its interval: `−4.1 % (−5.0 % to −3.2 %)`."""
    if verdict.low is None:
        return change(verdict.effect)
    return f"{change(verdict.effect)} ({change(verdict.low)} to {change(verdict.high)})"


def within(verdict: Verdict) -> str:
    """The margin: `±2 %`."""
    return f"±{verdict.margin * 100:g} %"


def _so_far(verdict: Verdict) -> str:
    if verdict.effect is None:
        return ", no pair measured yet"
    return f", {figures(verdict)} after {_pairs(verdict.counts.used)}"


def _open(verdict: Verdict) -> str:
    """What is missing for a verdict."""
    if verdict.reason == "measuring":
        return f"; the first look is due at {verdict.next_rung} pairs"
    if verdict.more_pairs is None:
        return (
            f"; the effect is so close to {within(verdict)} that more pairs will hardly settle it"
        )
    return f"; about {verdict.more_pairs} more pairs would settle it"


def _pairs(number: int) -> str:
    return "1 pair" if number == 1 else f"{number} pairs"


def notes(counts: PairCounts) -> tuple[str, ...]:
    """What happened to pairs that did not decide, a sentence for each kind."""
    told = (
        (counts.failed_baseline, "lost: the baseline's launch failed"),
        (counts.failed_candidate, "lost: the candidate's launch failed"),
        (counts.failed_both, "lost: both launches failed"),
        (counts.unusable, "lost: a value is zero, negative or not a number"),
        (counts.balanced, "left out so that both orders stay equally frequent"),
        (counts.apart, "left out: far apart from the rest"),
    )
    out = [f"{number} of {_pairs(counts.attempted)} {why}" for number, why in told if number]
    if counts.failed_candidate != counts.failed_baseline:
        out.append("only launches that finished are compared")
    return tuple(out)
