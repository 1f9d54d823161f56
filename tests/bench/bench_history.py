"""How often the watch over a history is wrong: synthetic series through the real detection code.

An unchanged series has 60 points; steps and leaks both count as alerts. The
goal holds for the look at the whole series: alerts on at most 5 % (15 % where
neighbours correlate by 0.5), for every shape and noise but the strong drift. A keeper looks after
every new point, so the share with an alert at any of the 55 looks is shown
too, and each of those is measured again by pairs, ten times, through the real
decision code: on average at most 0.5 % of unchanged series may lead to an announcement.
A step comes after 40 points and must be found within two places. Goals for
independent noise of at most 3 %, and for a drift of at most 2 %: a step of
10 % found with 3 points after it in at least 90 %, one of 5 % with 8 points in
at least 70 %. Where one of three points may be an outlier, or neighbours
correlate, it takes longer: those rows are shown without a goal, and so are leaks.
`REPEATS` (default 500) sets how many series a cell draws, six times as many for the look at the
whole; below 300 the goals
are not judged strictly enough to mean anything. `SEED` draws other ones.
`--markdown` prints the table of the documentation.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from profiler.analysis.changepoints import FEWEST, change_points, slow_leak
from profiler.analysis.decide import decide, is_sure
from profiler.analysis.ladder import Settings, orders
from profiler.analysis.stats import Floats
from profiler.analysis.verdict import Pair
from profiler.metrics import METRICS

METRIC = METRICS["tpot"]
LEVEL_NS = 7e6
POINTS, BEFORE, AFTER = 60, 40, 8
NOISES = (0.01, 0.02, 0.03, 0.05)
SHAPES = {
    "normal": "independent, normal",
    "drift": "normal on a wave of 0.5 % up and down over 40 points",
    "strong drift": "normal on a wave of 1 % up and down: its ends differ by what matters",
    "outliers": "normal, and one point in 20 slower by 10 to 65 %",
    "correlated": "each point shares half of its deviation with the one before",
}
WAVES = {"drift": 0.005, "strong drift": 0.01}
CORRELATION = 0.5
ALERTS = {"correlated": 0.15, "strong drift": 1.0}
ALERTS_ELSEWHERE = 0.05
ANNOUNCED = 0.005
CONFIRMATIONS = 10
"""Measurements in pairs of every alert: their mean is steadier than the one that would be made."""
WHOLE = 6
"""Times as many series for the one look at all of a series, which is cheap beside 55 looks."""

JUDGED_NOISE = {"normal": 0.03, "drift": 0.02}
FOUND = {0.10: (3, 0.90), -0.10: (3, 0.90), 0.05: (8, 0.70), -0.05: (8, 0.70)}
NEAR = 2
LEAKING = 0.08


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One kind of series. `effect` is that of a step, or of a straight leak over all points."""

    shape: str
    noise: float
    effect: float = 0.0
    leaks: bool = False


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Shares of a cell's series; `early` and `late`: a step found with 3 and with 8 points.

    `alerts` have one at any look, `last` at the look at the whole series;
    `announced` are those with an alert that pairs confirmed.
    """

    cell: Cell
    alerts: float | None = None
    last: float | None = None
    early: float | None = None
    late: float | None = None
    announced: float | None = None

    def missed(self) -> list[str]:
        """The goals that this cell misses."""
        cell, out = self.cell, []
        at = f"{cell.shape}, noise {cell.noise:.0%}, effect {cell.effect:+.0%}"
        most = ALERTS.get(cell.shape, ALERTS_ELSEWHERE)
        if self.last is not None and self.last > most:
            out.append(f"{at}: {self.last:.1%} alerts")
        if self.announced is not None and self.announced > ANNOUNCED:
            out.append(f"{at}: {self.announced:.2%} announced")
        judged = cell.noise <= JUDGED_NOISE.get(cell.shape, 0.0) and not cell.leaks
        if judged and cell.effect in FOUND:
            points, share = FOUND[cell.effect]
            found = self.early if points == FEWEST else self.late
            if found is not None and found < share:
                out.append(f"{at}: {found:.1%} found within {points} points")
        return out


def series(random: np.random.Generator, cell: Cell, points: int) -> Floats:
    """Log values without the effect."""
    noise: Floats = random.normal(0, cell.noise, points)
    if cell.shape in WAVES:
        phase = random.uniform(0, 2 * np.pi)
        noise += WAVES[cell.shape] * np.sin(phase + np.arange(points) * 2 * np.pi / 40)
    if cell.shape == "outliers":
        noise += (random.random(points) < 0.05) * random.uniform(0.1, 0.5, points)
    if cell.shape == "correlated":
        fresh = noise * (1 - CORRELATION**2) ** 0.5
        for at in range(1, points):
            noise[at] = CORRELATION * noise[at - 1] + fresh[at]
    return noise


def alerts(values: Floats) -> tuple[int, ...]:
    """Directions of what is found in a series: 1 slower, -1 faster."""
    found = change_points(values.tolist())
    leak = slow_leak(values.tolist(), direction="lower", steps=found)
    said = [int(np.sign(point.effect)) for point in found]
    return (*said, 1) if leak else tuple(said)


def unchanged(cell: Cell, repeats: int, random: np.random.Generator) -> Outcome:
    """Series without an effect, looked at after every point; each alert measured again."""
    alarmed = last = 0
    announced = 0.0
    for number in range(repeats):
        values = LEVEL_NS * np.exp(series(random, cell, POINTS))
        looks = [alerts(values[:end]) for end in range(2 * FEWEST, POINTS + 1)]
        said = {direction for look in looks for direction in look}
        alarmed += bool(said)
        last += bool(looks[-1])
        again = range(CONFIRMATIONS * number, CONFIRMATIONS * (number + 1)) if said else ()
        calls = [any(confirmed(random, cell, seed, way) for way in sorted(said)) for seed in again]
        announced += sum(calls) / CONFIRMATIONS
    more = (LEVEL_NS * np.exp(series(random, cell, POINTS)) for _ in range(repeats * (WHOLE - 1)))
    last += sum(bool(alerts(values)) for values in more)
    return Outcome(
        cell=cell,
        alerts=alarmed / repeats,
        last=last / (repeats * WHOLE),
        announced=announced / repeats,
    )


def confirmed(random: np.random.Generator, cell: Cell, seed: int, direction: int) -> bool:
    """Whether pairs of two equal commits call the change that the history suggested."""
    settings = Settings()
    most = settings.rungs[-1]
    times = LEVEL_NS * np.exp(series(random, cell, 2 * most).reshape(most, 2))
    pairs = [
        Pair(baseline=b, candidate=c, order=order)
        if order == "AB"
        else Pair(baseline=c, candidate=b, order=order)
        for (b, c), order in zip(times.tolist(), orders(seed, most), strict=True)
    ]
    for rung in settings.rungs:
        verdict = decide(pairs[:rung], METRIC, settings)
        if verdict.state != "inconclusive":
            break
    said = verdict.state == ("slower" if direction > 0 else "faster")
    return said and is_sure(verdict, settings)


def stepping(cell: Cell, repeats: int, random: np.random.Generator) -> Outcome:
    """Series with a step, looked at after every point that follows it, from the third on."""
    early = late = 0
    for _ in range(repeats):
        logs = series(random, cell, BEFORE + AFTER)
        logs[BEFORE:] += np.log1p(cell.effect)
        values = LEVEL_NS * np.exp(logs)
        looks = [_sees(values[: BEFORE + more], cell.effect) for more in range(FEWEST, AFTER + 1)]
        early += looks[0]
        late += any(looks)
    return Outcome(cell=cell, early=early / repeats, late=late / repeats)


def _sees(values: Floats, effect: float) -> bool:
    return any(
        abs(point.index - BEFORE) <= NEAR and point.effect * effect > 0
        for point in change_points(values.tolist())
    )


def leaking(cell: Cell, repeats: int, random: np.random.Generator) -> Outcome:
    """Series that lose the effect in equal parts: whether a step or a leak tells of it."""
    slope = np.log1p(cell.effect) * np.arange(POINTS) / (POINTS - 1)
    found = 0
    for _ in range(repeats):
        values = LEVEL_NS * np.exp(series(random, cell, POINTS) + slope)
        looks = (alerts(values[:end]) for end in range(POINTS // 2, POINTS + 1, 3))
        found += any(1 in look for look in looks)
    return Outcome(cell=cell, late=found / repeats)


def measure(cell: Cell, repeats: int, seed: int = 0) -> Outcome:
    """Many series of one cell; another seed draws others."""
    key = [list(SHAPES).index(cell.shape), round(cell.noise * 1e4), seed]
    key += [round(cell.effect * 1e4) + 10**4, int(cell.leaks)]
    random = np.random.default_rng(key)
    kind = leaking if cell.leaks else stepping if cell.effect else unchanged
    return kind(cell, repeats, random)


def cells() -> list[Cell]:
    """Every cell: unchanged, steps up and down, leaks."""
    out = [
        Cell(shape=shape, noise=noise, effect=effect)
        for effect in (0.0, 0.10, -0.10, 0.05, -0.05)
        for shape in SHAPES
        if effect == 0 or shape != "strong drift"
        for noise in NOISES
    ]
    return out + [Cell(shape="normal", noise=noise, effect=LEAKING, leaks=True) for noise in NOISES]


COLUMNS = ("change", "shape", "noise", "alerts", "any look", "3 points", "8 points", "announced")


def row(outcome: Outcome) -> tuple[str, ...]:
    """One line of the table."""
    cell = outcome.cell
    change = f"{cell.effect * 100:+.0f} %" if cell.effect else "none"
    shares = (outcome.last, outcome.alerts, outcome.early, outcome.late)
    return (
        f"leak {change}" if cell.leaks else change,
        cell.shape,
        f"{cell.noise * 100:.0f} %",
        *("" if share is None else f"{share * 100:.1f} %" for share in shares),
        "" if outcome.announced is None else f"{outcome.announced * 100:.2f} %",
    )


def show(values: tuple[str, ...], *, markdown: bool) -> None:
    """Print one row."""
    text = f"| {' | '.join(values)} |" if markdown else " ".join(f"{v:>10}" for v in values)
    print(text, flush=True)


def main() -> int:
    markdown = "--markdown" in sys.argv[1:]
    repeats = int(os.environ.get("REPEATS", "500"))
    seed = int(os.environ.get("SEED", "0"))
    show(COLUMNS, markdown=markdown)
    if markdown:
        print(f"|{'---|' * len(COLUMNS)}")
    missed: list[str] = []
    wanted = cells()
    with ProcessPoolExecutor() as pool:
        outcomes = pool.map(measure, wanted, [repeats] * len(wanted), [seed] * len(wanted))
        for outcome in outcomes:
            show(row(outcome), markdown=markdown)
            missed += outcome.missed()
    print("goal met" if not missed else f"goal missed: {'; '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
