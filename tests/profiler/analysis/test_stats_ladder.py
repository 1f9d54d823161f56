"""The order and the number of pairs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.analysis.ladder import Settings, extended, orders
from profiler.errors import UserError

Seeds = st.integers(0, 2**63)


@given(Seeds, st.integers(0, 60))
def test_it_balances_the_orders_at_every_even_number(seed: int, blocks: int) -> None:
    found = orders(seed, 2 * blocks)
    assert all(sorted(found[at : at + 2]) == ["AB", "BA"] for at in range(0, 2 * blocks, 2))


@given(Seeds, st.integers(0, 40), st.integers(0, 40))
def test_it_goes_on_where_it_ended(seed: int, first: int, more: int) -> None:
    assert orders(seed, first + more)[:first] == orders(seed, first)


def test_it_shuffles_by_the_seed_alone() -> None:
    assert orders(7, 8) == orders(7, 8)
    firsts = [orders(seed, 1)[0] for seed in range(200)]
    assert 60 < firsts.count("AB") < 140


def test_it_knows_which_rung_is_reached() -> None:
    settings = Settings()
    assert [settings.rung(n) for n in (9, 10, 19, 20, 40, 90)] == [None, 0, 0, 1, 2, 2]
    assert [settings.next_rung(n) for n in (0, 10, 39, 40)] == [10, 20, 40, None]


def test_it_halves_the_level_of_looks_beyond_the_ladder() -> None:
    settings = extended(extended(Settings(), 10), 9)
    assert settings.rungs == (10, 20, 40, 50, 60)
    levels = [settings.level_at(at) for at in range(5)]
    assert levels == pytest.approx([0.008, 0.003, 0.002, 0.001, 0.0005])


@pytest.mark.parametrize(
    "wrong", [{"rungs": ()}, {"rungs": (4, 8)}, {"rungs": (10, 10)}, {"margin": 0}, {"margin": 2}]
)
def test_it_refuses_settings_that_lead_nowhere(wrong: dict[str, object]) -> None:
    with pytest.raises(UserError):
        Settings(**wrong)  # type: ignore[arg-type]


def test_it_refuses_to_add_nothing() -> None:
    with pytest.raises(UserError, match="too few"):
        extended(Settings(), 1)
