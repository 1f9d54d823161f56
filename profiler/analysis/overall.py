"""Many workloads, one sentence: who wins, who loses, and by how much on average."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from profiler.analysis.verdict import State, Verdict
from profiler.units import change


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """Geometric mean of the candidate's ratio to the baseline over `n` workloads, as a change."""

    group: str
    effect: float
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overall:
    """The verdicts of all workloads of a template together.

    `state` is the worst that any workload has, the one a gate goes by: slower,
    then not comparable, then inconclusive; faster when any is and none of those.
    """

    state: State
    sentence: str
    faster: int
    slower: int
    unchanged: int
    inconclusive: int
    not_comparable: int
    means: tuple[Mean, ...]


_WORST_FIRST: tuple[State, ...] = (
    "slower",
    "not comparable",
    "inconclusive",
    "faster",
    "no change",
)


def overall(verdicts: Sequence[tuple[str, Verdict]]) -> Overall:
    """Sum up verdicts, each with its group ("decode"): the groups' means stand apart.

    Means take in every workload with an estimate, decided or not; a group
    should hold one metric. Nothing at all is inconclusive.
    """
    states = [verdict.state for _, verdict in verdicts]
    counts = {state: states.count(state) for state in _WORST_FIRST}
    means = tuple(_means(verdicts))
    return Overall(
        state=next((state for state in _WORST_FIRST if counts[state]), "inconclusive"),
        sentence=_sentence(counts, means),
        faster=counts["faster"],
        slower=counts["slower"],
        unchanged=counts["no change"],
        inconclusive=counts["inconclusive"],
        not_comparable=counts["not comparable"],
        means=means,
    )


def _means(verdicts: Sequence[tuple[str, Verdict]]) -> list[Mean]:
    logs: dict[str, list[float]] = {}
    for group, verdict in verdicts:
        if verdict.effect is not None:
            logs.setdefault(group, []).append(math.log1p(verdict.effect))
    return [
        Mean(group=group, effect=math.expm1(math.fsum(found) / len(found)), n=len(found))
        for group, found in logs.items()
    ]


def _sentence(counts: dict[State, int], means: Sequence[Mean]) -> str:
    """`Wins 7, loses 1, unchanged 4; geometric mean −6.2 % decode, +0.3 % prefill.`"""
    said = [f"wins {counts['faster']}, loses {counts['slower']}, unchanged {counts['no change']}"]
    said += [f"{state} {counts[state]}" for state in _WORST_FIRST[1:3] if counts[state]]
    text = ", ".join(said)
    if means:
        shown = ", ".join(f"{change(mean.effect)} {mean.group}".rstrip() for mean in means)
        text = f"{text}; geometric mean {shown}"
    return f"{text[0].upper()}{text[1:]}."
