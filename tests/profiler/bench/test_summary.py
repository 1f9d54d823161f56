from __future__ import annotations

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.bench.summary import quantile, summarise

FINITE = st.floats(min_value=-1e12, max_value=1e12, allow_nan=False)


@given(st.lists(FINITE, min_size=1, max_size=50), st.floats(min_value=0, max_value=1))
def test_it_agrees_with_numpy_on_quantiles(samples: list[float], rank: float) -> None:
    expected = float(numpy.quantile(samples, rank))
    assert quantile(sorted(samples), rank) == pytest.approx(expected, abs=1e-3)


def test_it_keeps_raw_samples_in_order_and_takes_the_median() -> None:
    metric = summarise("ttft", [30, 10, 20, 40], phase="timed", method="host clock")
    assert list(metric.samples) == [30, 10, 20, 40]
    assert (metric.value, metric.n, metric.minimum, metric.maximum) == (25, 4, 10, 40)
    assert metric.iqr == 15
    assert metric.cov == pytest.approx(12.909944 / 25)


def test_it_takes_unit_direction_and_version_from_the_definition() -> None:
    metric = summarise("prefill_rate", [5.0], phase="timed", method="m", value=7.0)
    assert (metric.unit, metric.direction, metric.definition) == ("tok/s", "higher", 1)
    assert metric.value == 7.0


def test_it_shows_no_spread_of_a_single_sample() -> None:
    metric = summarise("first_call", [5], phase="correctness", method="m")
    assert metric.iqr is None
    assert metric.cov is None


@pytest.mark.parametrize(
    ("n", "shown"),
    [
        (9, []),
        (10, ["p90"]),
        (20, ["p90", "p95"]),
        (99, ["p90", "p95"]),
        (100, ["p90", "p95", "p99"]),
        (1000, ["p90", "p95", "p99", "p99.9"]),
    ],
)
def test_it_shows_only_percentiles_that_n_allows(n: int, shown: list[str]) -> None:
    metric = summarise("itl", [float(i) for i in range(n)], phase="timed", method="m")
    assert list(metric.percentiles) == shown
