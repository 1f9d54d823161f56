"""How many pairs are measured, in which order, and how sure each look at them must be."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from profiler.errors import UserError

Order = Literal["AB", "BA"]
"""Which launch of a pair comes first: A is the baseline, B the candidate."""

FEWEST_PAIRS = 6
"""Fewer pairs can never be significant at 5 %: the smallest signed-rank p of five is 0.0625."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a verdict asks for.

    `margin` is the smallest relative change that matters. The pairs are looked
    at when their number reaches a rung. `levels` are the two-sided p up to
    which each look calls a difference; looks beyond those take half of the one
    before, so that extending for ever adds no more than the last level again.
    Intervals hold the effect with `confidence`; from the third look on they
    are computed with `later`, which makes up for what stopping early costs
    (`make bench-verdicts` measures it).
    """

    margin: float = 0.02
    rungs: tuple[int, ...] = (10, 20, 40)
    levels: tuple[float, ...] = (0.008, 0.003, 0.002)
    confidence: float = 0.95
    later: float = 0.955

    def __post_init__(self) -> None:
        """Refuse settings that cannot lead to a verdict; raises `UserError`."""
        if not 0 < self.margin < 1:
            raise UserError(f"margin {self.margin:g} is not between 0 and 1", "0.02 is 2 %")
        steps = pairwise(self.rungs)
        if not self.rungs or self.rungs[0] < FEWEST_PAIRS or any(b <= a for a, b in steps):
            raise UserError(
                f"rungs {self.rungs} do not grow from at least {FEWEST_PAIRS} pairs",
                "10, 20, 40 is usual",
            )

    def rung(self, attempted: int) -> int | None:
        """Position of the highest rung that `attempted` pairs reach, None below the first."""
        reached = [at for at, rung in enumerate(self.rungs) if rung <= attempted]
        return reached[-1] if reached else None

    def next_rung(self, attempted: int) -> int | None:
        """The number of pairs at which the next look is due, None above the last rung."""
        return next((rung for rung in self.rungs if rung > attempted), None)

    def interval_at(self, rung: int | None) -> float:
        """The confidence with which the look at position `rung` computes its interval."""
        return self.later if rung is not None and rung >= 2 else self.confidence

    def level_at(self, rung: int) -> float:
        """The two-sided level of the look at position `rung`."""
        beyond = max(0, rung - len(self.levels) + 1)
        return self.levels[min(rung, len(self.levels) - 1)] / float(2**beyond)


def extended(settings: Settings, pairs: int) -> Settings:
    """The same settings with one more rung, `pairs` (at least 2, made even) above the last."""
    if pairs < 2:
        raise UserError(f"{pairs} more pairs are too few", "ask for at least 2")
    return replace(settings, rungs=(*settings.rungs, settings.rungs[-1] + pairs + pairs % 2))


def orders(seed: int, pairs: int) -> tuple[Order, ...]:
    """The order of each of the first `pairs` pairs: blocks of two, ABBA or BAAB by the seed.

    Any even number of pairs holds as many AB as BA, so a steady drift cancels.
    A longer answer begins with the shorter one, so that measuring can go on
    later. The choice is the lowest bit of SHA-256, the same everywhere.
    """
    out: list[Order] = []
    for block in range((pairs + 1) // 2):
        swapped = hashlib.sha256(f"{seed}:{block}".encode()).digest()[0] & 1
        out += ["BA", "AB"] if swapped else ["AB", "BA"]
    return tuple(out[:pairs])
