"""Distinct codes agree with sorting."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profiler.trace import codes

COLUMNS = st.lists(st.integers(-1, 50), max_size=60)


@given(COLUMNS)
def test_it_finds_the_codes_in_use(values: list[int]) -> None:
    assert codes.distinct(np.array(values, np.int32)) == sorted(set(values))


@given(st.lists(st.integers(0, 99), max_size=60), st.sampled_from([100, 1 << 30]))
def test_it_places_keys_among_the_distinct_ones(values: list[int], size: int) -> None:
    found, places = codes.grouped(np.array(values, np.int64), size)
    assert found.tolist() == sorted(set(values))
    assert [found[place] for place in places] == values


@given(st.lists(st.integers(-(2**62), 2**62), max_size=60))
def test_it_orders_ids(values: list[int]) -> None:
    assert codes.ordered(np.array(values, np.int64)).tolist() == sorted(set(values))
