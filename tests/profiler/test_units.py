from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler import units


@pytest.mark.parametrize(
    ("ns", "shown"),
    [
        (None, "–"),
        (math.nan, "–"),
        (0, "0 ns"),
        (1, "1 ns"),
        (999, "999 ns"),
        (999.6, "1.00 µs"),
        (1500, "1.50 µs"),
        (7_620_000, "7.62 ms"),
        (999_999_999, "1.00 s"),
        (90e9, "90.0 s"),
    ],
)
def test_it_shows_durations_in_si(ns: float | None, shown: str) -> None:
    assert units.duration(ns) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [(None, "–"), (0, "0 B"), (1023, "1,023 B"), (2048, "2.00 KiB"), (66_355_131_842, "61.8 GiB")],
)
def test_it_shows_sizes_in_iec(count: float | None, shown: str) -> None:
    assert units.size(count) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(1050, "1.05 ktok/s"), (0.5, "0.500 tok/s"), (12, "12 tok/s")]
)
def test_it_shows_rates(value: float, shown: str) -> None:
    assert units.rate(value, "tok/s") == shown


@pytest.mark.parametrize(
    ("part", "shown"),
    [(None, "–"), (0, "0.00 %"), (1e-9, "<0.01 %"), (0.0123, "1.23 %"), (0.5, "50.0 %")],
)
def test_it_shows_shares(part: float | None, shown: str) -> None:
    assert units.share(part) == shown


@pytest.mark.parametrize(
    ("ratio", "shown"), [(None, "n/a"), (-0.124, "−12.4 %"), (0.5, "+50.0 %"), (math.inf, "n/a")]
)
def test_it_shows_changes_with_a_true_minus(ratio: float | None, shown: str) -> None:
    assert units.change(ratio) == shown


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (1e6, "ns", "1.00 ms"),
        (2048, "bytes", "2.00 KiB"),
        (0.5, "ratio", "50.0 %"),
        (1234, "count", "1,234"),
        (2000, "tok/s", "2.00 ktok/s"),
    ],
)
def test_it_shows_a_metric_in_the_unit_of_its_definition(
    value: float, unit: str, shown: str
) -> None:
    assert units.quantity(value, unit) == shown


@given(st.floats(min_value=1e-12, max_value=1e18))
def test_it_never_shows_a_value_as_zero(value: float) -> None:
    assert float(units.significant(value).replace(",", "")) > 0


@given(st.text(max_size=300), st.integers(10, 80))
def test_it_keeps_both_ends_of_a_long_name(text: str, limit: int) -> None:
    shown = units.middle(text, limit)
    assert len(shown) <= limit
    assert shown[:4] == text[:4]
    assert shown[-4:] == text[-4:]
