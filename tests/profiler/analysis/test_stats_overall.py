"""The verdicts of a whole template in one sentence."""

from __future__ import annotations

import pytest

from profiler.analysis.decide import decide
from profiler.analysis.overall import overall
from profiler.analysis.verdict import Pair, Verdict
from profiler.metrics import METRICS


def verdict(ratio: float | None) -> Verdict:
    """A verdict on pairs without noise; None for a candidate that failed."""
    pairs = [Pair(baseline=100.0, candidate=None if ratio is None else 100 * ratio)] * 10
    return decide(pairs, METRICS["tpot"])


def test_it_counts_and_averages_by_group() -> None:
    found = overall(
        [
            ("decode", verdict(0.8)),
            ("decode", verdict(1.25)),
            ("decode", verdict(0.9)),
            ("prefill", verdict(1.003)),
        ]
    )
    assert (found.state, found.faster, found.slower, found.unchanged) == ("slower", 2, 1, 1)
    assert found.sentence == (
        "Wins 2, loses 1, unchanged 1; geometric mean −3.5 % decode, +0.3 % prefill."
    )
    assert [(mean.group, mean.n) for mean in found.means] == [("decode", 3), ("prefill", 1)]
    assert found.means[0].effect == pytest.approx(0.9 ** (1 / 3) - 1)


@pytest.mark.parametrize(
    ("ratios", "state"),
    [
        ([0.9, 1.0], "faster"),
        ([1.0, 1.0], "no change"),
        ([0.9, None], "not comparable"),
        ([None, 1.1], "slower"),
        ([], "inconclusive"),
    ],
)
def test_it_goes_by_the_worst(ratios: list[float | None], state: str) -> None:
    assert overall([("decode", verdict(ratio)) for ratio in ratios]).state == state


def test_it_names_what_is_open() -> None:
    few = decide([Pair(baseline=1.0, candidate=1.0)] * 3, METRICS["tpot"])
    found = overall([("decode", few), ("decode", verdict(None))])
    assert found.sentence == (
        "Wins 0, loses 0, unchanged 0, not comparable 1, inconclusive 1; "
        "geometric mean +0.0 % decode."
    )
