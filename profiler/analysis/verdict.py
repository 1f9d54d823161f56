"""What a verdict on speed is made of and what it says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from profiler.analysis.ladder import Order
from profiler.types import Direction

State = Literal["faster", "slower", "no change", "inconclusive", "not comparable"]
Reason = Literal[
    "difference",
    "equivalence",
    "measuring",
    "few pairs",
    "unsure",
    "environment",
    "no baseline",
    "no candidate",
    "no pair",
    "unusable",
]
"""Why the state is what it is; from "environment" on they belong to "not comparable"."""

TEST = "Wilcoxon signed-rank on log ratios, pairs that stand apart left out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two launches, one of each side: launch medians in the metric's unit, None for a failed one.

    `order` says which ran first (A is the baseline); None when it is not known.
    """

    baseline: float | None
    candidate: float | None
    order: Order | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCounts:
    """What became of the pairs; `attempted` is the sum of the others.

    `used` decided. `failed_baseline`, `failed_candidate` and `failed_both`
    lost a launch; `unusable` held zero, a negative number, NaN or infinity;
    `balanced` were left out so that both orders stay equally frequent; `apart`
    stood apart from the rest; `waiting` came after the last look.
    """

    attempted: int = 0
    used: int = 0
    failed_baseline: int = 0
    failed_candidate: int = 0
    failed_both: int = 0
    unusable: int = 0
    balanced: int = 0
    apart: int = 0
    waiting: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the pairs say about one metric.

    `effect`, `low` and `high` are relative changes of the metric, candidate
    against baseline (-0.04 is 4 % lower); the interval has `confidence` and is
    None below 6 pairs. `improved` says whether the effect goes the metric's
    good way. `more_pairs` is about how many further pairs would settle it,
    None when nothing is open or no number would; `next_rung` is the number of
    pairs at which the ladder looks again, None when it has ended. `sentence`
    says all this in words, `notes` what else a reader must know.
    """

    state: State
    reason: Reason
    sentence: str
    metric: str
    title: str
    unit: str
    direction: Direction
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    improved: bool | None = None
    confidence: float = 0.95
    p_value: float | None = None
    level: float | None = None
    margin: float = 0.02
    more_pairs: int | None = None
    next_rung: int | None = None
    counts: PairCounts = field(default_factory=PairCounts)
    notes: tuple[str, ...] = ()
    test: str = TEST


def improves(effect: float | None, direction: Direction) -> bool | None:
    """Whether a relative change goes the good way; None for no change or an unknown one.

    The one place that knows what a direction means.
    """
    if effect is None or effect == 0:
        return None
    return (effect < 0) == (direction == "lower")
