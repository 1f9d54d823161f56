"""From pairs of launches to one verdict: faster, slower, no change, inconclusive, not comparable.

The unit is the launch: its value is the median of its timed iterations. The
estimate is the Hodges-Lehmann shift of the log ratios candidate / baseline.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from profiler.analysis.ladder import FEWEST_PAIRS, Settings
from profiler.analysis.stats import Floats, Shift, apart, shift, spread
from profiler.analysis.verdict import Pair, PairCounts, Reason, State, Verdict, improves
from profiler.analysis.wording import notes, sentence
from profiler.types import Definition

POWER = 0.8
"""How likely the pairs that are asked for settle it, if the effect is as estimated."""

EFFICIENCY = 0.955
"""Of the signed-rank test against the t test with normal noise: 3 / pi."""

NEAR = 0.25
"""No pair within this part of the margin around the median stands apart: it disturbs nothing."""

SURE = 0.5
"""Part of a look's level at which a verdict is announced without having been asked for."""

_LARGEST = 700.0
"""The largest log ratio whose ratio is still a number."""

MOST_MORE = 1000
"""A need for more pairs than this is told as none: they will not settle it."""


@dataclass(frozen=True, slots=True)
class _Sorted:
    """Log ratios that count, in the order measured, and what became of the rest."""

    ratios: Floats
    counts: PairCounts


def decide(
    pairs: Sequence[Pair],
    definition: Definition,
    settings: Settings | None = None,
    *,
    obstacles: Sequence[str] = (),
) -> Verdict:
    """The verdict of `pairs`, in the order they were measured, on the metric `definition`.

    Only pairs up to the last rung that is reached decide: asking after every
    pair gives the same answer as asking at the rungs, so nobody can peek.
    `obstacles` are reasons why the two sides must not be compared (a different
    environment, say); any forbids a verdict and an estimate.
    """
    settings = settings or Settings()
    rung = settings.rung(len(pairs))
    looked = pairs if rung is None else pairs[: settings.rungs[rung]]
    found = _sort(looked, settings, waiting=len(pairs) - len(looked))
    usable = not obstacles and len(found.ratios) > 0
    estimate = shift(found.ratios, settings.interval_at(rung)) if usable else None
    state, reason = _state(found.counts, estimate, settings, rung)
    if obstacles:
        state, reason = "not comparable", "environment"
    effect = _relative(estimate.value) if estimate else None
    if reason == "difference":
        state = "faster" if improves(effect, definition.direction) else "slower"
    made = Verdict(
        state=state,
        reason=reason,
        sentence="",
        metric=definition.name,
        title=definition.title,
        unit=definition.unit,
        direction=definition.direction,
        effect=effect,
        low=_relative(estimate.low) if estimate else None,
        high=_relative(estimate.high) if estimate else None,
        improved=improves(effect, definition.direction),
        confidence=settings.confidence,
        p_value=estimate.p_value if estimate else None,
        level=None if rung is None else settings.level_at(rung),
        margin=settings.margin,
        counts=found.counts,
        notes=notes(found.counts),
    )
    if state == "inconclusive":
        made = _open(made, found.ratios, settings)
    return replace(made, sentence=sentence(made, obstacles))


def interim(pairs: Sequence[Pair], settings: Settings | None = None) -> Shift | None:
    """The estimate so far, as log ratio and its interval, for progress only: it decides nothing."""
    settings = settings or Settings()
    ratios = _sort(pairs, settings, waiting=0).ratios
    return shift(ratios, settings.confidence) if len(ratios) else None


def _relative(log_ratio: float | None) -> float | None:
    """A log ratio as relative change: log(0.96) is -0.04."""
    return None if log_ratio is None else math.expm1(min(log_ratio, _LARGEST))


def _state(
    counts: PairCounts, estimate: Shift | None, settings: Settings, rung: int | None
) -> tuple[State, Reason]:
    """State and reason; a difference is "slower" until its direction is looked at."""
    if estimate is None:
        return _without_pairs(counts)
    if rung is None:
        return "inconclusive", "measuring"
    if estimate.n < FEWEST_PAIRS:
        return "inconclusive", "few pairs"
    effect = _relative(estimate.value) or 0.0
    if estimate.p_value <= settings.level_at(rung) and abs(effect) >= settings.margin:
        return "slower", "difference"
    low, high = _relative(estimate.low), _relative(estimate.high)
    if low is not None and high is not None and max(-low, high) <= settings.margin:
        return "no change", "equivalence"
    return "inconclusive", "unsure"


def is_sure(verdict: Verdict, settings: Settings) -> bool:
    """Whether a difference is sure enough to be announced though nobody asked about it.

    A watch over histories asks for pairs wherever it sees something, which is
    often in noisy ones; so it takes half of the level that a person's question
    takes. `make bench-history` measures what is announced falsely.
    """
    rung = settings.rung(verdict.counts.attempted)
    if verdict.reason != "difference" or verdict.p_value is None or rung is None:
        return False
    return verdict.p_value <= SURE * settings.level_at(rung)


def _without_pairs(counts: PairCounts) -> tuple[State, Reason]:
    """State and reason when no pair can be used."""
    attempted = counts.attempted - counts.waiting
    if attempted == 0:
        return "inconclusive", "measuring"
    if counts.failed_baseline == attempted:
        return "not comparable", "no baseline"
    if counts.failed_candidate == attempted:
        return "not comparable", "no candidate"
    if counts.unusable:
        return "not comparable", "unusable"
    return "not comparable", "no pair"


def _open(verdict: Verdict, ratios: Floats, settings: Settings) -> Verdict:
    """The verdict with how many more pairs are needed and when the next look is due."""
    attempted = verdict.counts.attempted
    due = settings.next_rung(attempted)
    to_look = 0 if due is None else due - attempted
    if verdict.reason == "unsure":
        needed = pairs_needed(ratios, settings)
        more = None if needed is None else max(needed - len(ratios), to_look, 2)
        more = None if more is None or more > MOST_MORE else more + more % 2
    else:
        more = to_look or max(2, settings.rungs[0] - len(ratios))
    return replace(verdict, more_pairs=more, next_rung=due)


def pairs_needed(ratios: Floats, settings: Settings) -> int | None:
    """About how many pairs settle an effect as estimated with noise as seen, None for no number.

    Normal approximation with power `POWER`: an effect beyond the margin must
    differ from zero, one within it must lie inside the margin surely.
    """
    effect = abs(float(shift(ratios).value))
    margin = math.log1p(settings.margin)
    if effect >= margin:
        distance, tail = effect, settings.level_at(len(settings.rungs) - 1) / 2
    else:
        distance, tail = margin - effect, (1 - settings.later) / 2
    quantiles = NormalDist().inv_cdf(1 - tail) + NormalDist().inv_cdf(POWER)
    if distance <= 0:
        return None
    return math.ceil((quantiles * spread(ratios) / distance) ** 2 / EFFICIENCY)


def _sort(pairs: Sequence[Pair], settings: Settings, *, waiting: int) -> _Sorted:
    """Log ratios of the pairs that count, and the counts of all."""
    lost = dict.fromkeys(("failed_baseline", "failed_candidate", "failed_both", "unusable"), 0)
    kept = []
    for pair in pairs:
        why = _lost(pair)
        if why:
            lost[why] += 1
        else:
            kept.append(pair)
    even = _balanced(kept, odd=len(pairs) % 2)
    ratios = np.array([_log_ratio(pair) for pair in even], np.float64)
    stand_apart = apart(ratios, near=settings.margin * NEAR)
    used = ratios[~stand_apart]
    counts = PairCounts(
        attempted=len(pairs) + waiting,
        used=len(used),
        balanced=len(kept) - len(even),
        apart=int(stand_apart.sum()),
        waiting=waiting,
        **lost,
    )
    return _Sorted(used, counts)


def _lost(pair: Pair) -> str:
    """Why a pair cannot be used, by the name of its count; empty when it can."""
    if pair.baseline is None and pair.candidate is None:
        return "failed_both"
    if pair.baseline is None:
        return "failed_baseline"
    if pair.candidate is None:
        return "failed_candidate"
    good = (math.isfinite(value) and value > 0 for value in (pair.baseline, pair.candidate))
    return "" if all(good) else "unusable"


def _log_ratio(pair: Pair) -> float:
    return math.log(pair.candidate or math.nan) - math.log(pair.baseline or math.nan)


def _balanced(kept: list[Pair], *, odd: int) -> list[Pair]:
    """As many pairs of each order: the last ones of the more frequent order go."""
    first = sum(pair.order == "AB" for pair in kept)
    second = sum(pair.order == "BA" for pair in kept)
    surplus = abs(first - second) - odd
    if first + second < len(kept) or surplus <= 0:
        return kept
    frequent = "AB" if first > second else "BA"
    places = [at for at, pair in enumerate(kept) if pair.order == frequent][-surplus:]
    return [pair for at, pair in enumerate(kept) if at not in places]
