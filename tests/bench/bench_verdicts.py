"""How often verdicts are wrong: synthetic launches through the real decision code.

Every cell draws many comparisons of launches with a known effect and one shape
of noise, walks up the ladder as a comparison does and counts what is said.
Goals, for every shape: without an effect at most 1 % say "faster" or "slower"
up to 2 % noise between launches and at most 2 % up to 5 %; an effect of 5 % at
2 % noise is found in at least 95 % of cases with at most 14 pairs on average;
the interval holds the true effect in 93 to 97 % of cases. Effects near the
margin are shown too, without a goal: they are what "inconclusive" is for.
`REPEATS` (default 2500) sets how many comparisons a cell draws; below 2000
goals are not judged strictly enough to mean anything. `SEED` draws other ones.
`--markdown` prints the table of the documentation.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from dataclasses import dataclass

import numpy as np

from profiler.analysis.decide import decide
from profiler.analysis.ladder import Settings, orders
from profiler.analysis.stats import Floats
from profiler.analysis.verdict import Pair, Verdict
from profiler.metrics import METRICS

METRIC = METRICS["tpot"]
LEVEL_NS = 7e6
NOISES = (0.005, 0.01, 0.02, 0.03, 0.05)
SHAPES = {
    "normal": "independent, normal",
    "drift": "normal, and every 20 launches 5 % slower than the 20 before",
    "outliers": "normal, and one launch in 20 slower by 10 to 65 %",
    "bimodal": "two modes two standard deviations apart, 30 % of launches in the slow one",
}
FALSE_CALLS = {0.005: 0.01, 0.01: 0.01, 0.02: 0.01, 0.03: 0.02, 0.05: 0.02}
FOUND, MEAN_PAIRS = 0.95, 14.0
COVERAGE = (0.93, 0.97)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One kind of comparison: noise is the standard deviation of a launch's log time."""

    shape: str
    noise: float
    effect: float
    goal: bool = True


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a cell's comparisons said, as shares; `covered` of the intervals held the effect."""

    cell: Cell
    called: float
    wrong: float
    no_change: float
    pairs: float
    covered: float

    def missed(self) -> list[str]:
        """The goals that this cell misses."""
        cell = self.cell
        at = f"{cell.shape}, noise {cell.noise:.1%}, effect {cell.effect:+.0%}"
        out = []
        if cell.effect == 0 and self.called > FALSE_CALLS[cell.noise]:
            out.append(f"{at}: {self.called:.2%} false calls")
        if cell.effect and cell.noise == 0.02 and self.called - self.wrong < FOUND:
            out.append(f"{at}: {self.called - self.wrong:.1%} found")
        if cell.effect and cell.noise == 0.02 and self.pairs > MEAN_PAIRS:
            out.append(f"{at}: {self.pairs:.1f} pairs on average")
        if not COVERAGE[0] <= self.covered <= COVERAGE[1]:
            out.append(f"{at}: intervals hold the effect in {self.covered:.1%}")
        return out if cell.goal else []


def launches(random: np.random.Generator, cell: Cell, number: int) -> Floats:
    """Log times of launches in the order they run."""
    noise: Floats = random.normal(0, cell.noise, number)
    if cell.shape == "drift":
        noise += np.log(1.05) * np.arange(number) / 20
    if cell.shape == "outliers":
        noise += (random.random(number) < 0.05) * random.uniform(0.1, 0.5, number)
    if cell.shape == "bimodal":
        # Within a mode 40 % of the noise, between the modes 2 x sqrt(0.3 x 0.7) = 92 %.
        noise = 0.4 * noise + (random.random(number) < 0.3) * 2 * cell.noise
    return noise


def compare(random: np.random.Generator, cell: Cell, seed: int, settings: Settings) -> Verdict:
    """One comparison up the ladder until it is decided."""
    most = settings.rungs[-1]
    times = LEVEL_NS * np.exp(launches(random, cell, 2 * most).reshape(most, 2))
    pairs = []
    for (first, second), order in zip(times.tolist(), orders(seed, most), strict=True):
        baseline, candidate = (first, second) if order == "AB" else (second, first)
        pairs.append(Pair(baseline=baseline, candidate=candidate * (1 + cell.effect), order=order))
    for rung in settings.rungs:
        verdict = decide(pairs[:rung], METRIC, settings)
        if verdict.state != "inconclusive":
            break
    return verdict


def measure(cell: Cell, repeats: int, settings: Settings, seed: int = 0) -> Outcome:
    """Many comparisons of one cell; another seed draws others."""
    key = [
        list(SHAPES).index(cell.shape),
        round(cell.noise * 1e4),
        round(cell.effect * 1e4) + 10**4,
    ]
    key += [seed] if seed else []
    random = np.random.default_rng(key)
    states: Counter[str] = Counter()
    pairs = covered = 0
    for number in range(repeats):
        verdict = compare(random, cell, number, settings)
        states[verdict.state] += 1
        pairs += verdict.counts.attempted
        covered += (verdict.low or 0) <= cell.effect <= (verdict.high or 0)
    wrong = states["faster"] if cell.effect >= 0 else states["slower"]
    return Outcome(
        cell=cell,
        called=(states["faster"] + states["slower"]) / repeats,
        wrong=wrong / repeats,
        no_change=states["no change"] / repeats,
        pairs=pairs / repeats,
        covered=covered / repeats,
    )


def cells() -> list[Cell]:
    """Every cell: those with goals, then the effects near the margin at normal noise."""
    out = [
        Cell(shape=shape, noise=noise, effect=effect)
        for effect in (0.0, 0.05, -0.05)
        for shape in SHAPES
        for noise in NOISES
    ]
    out += [
        Cell(shape="normal", noise=noise, effect=effect, goal=False)
        for effect in (0.01, 0.02, 0.03, 0.10)
        for noise in NOISES
    ]
    return out


COLUMNS = ("effect", "shape", "noise", "called", "wrong side", "no change", "pairs", "interval")


def row(outcome: Outcome) -> tuple[str, ...]:
    """One line of the table."""
    cell = outcome.cell
    wrong = outcome.called if cell.effect == 0 else outcome.wrong
    return (
        f"{cell.effect * 100:+.0f} %" if cell.effect else "none",
        cell.shape,
        f"{cell.noise * 100:.1f} %",
        f"{outcome.called * 100:.2f} %",
        f"{wrong * 100:.2f} %",
        f"{outcome.no_change * 100:.1f} %",
        f"{outcome.pairs:.1f}",
        f"{outcome.covered * 100:.1f} %",
    )


def show(values: tuple[str, ...], *, markdown: bool) -> None:
    """Print one row."""
    text = f"| {' | '.join(values)} |" if markdown else " ".join(f"{v:>10}" for v in values)
    print(text, flush=True)


def main() -> int:
    markdown = "--markdown" in sys.argv[1:]
    repeats = int(os.environ.get("REPEATS", "2500"))
    seed = int(os.environ.get("SEED", "0"))
    show(COLUMNS, markdown=markdown)
    if markdown:
        print(f"|{'---|' * len(COLUMNS)}")
    missed: list[str] = []
    for cell in cells():
        outcome = measure(cell, repeats, Settings(), seed)
        show(row(outcome), markdown=markdown)
        missed += outcome.missed()
    print("goal met" if not missed else f"goal missed: {'; '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
