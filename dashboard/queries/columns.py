"""Columns of a list that say the same in every row: left out, and said once above the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

Row = TypeVar("Row")


def constant(rows: Sequence[Row], columns: Mapping[str, Callable[[Row], str]]) -> dict[str, str]:
    """The columns with one value in all of several rows, by name; empty where nothing is known."""
    if len(rows) < 2:
        return {}
    found = {name: {value(row) for row in rows} for name, value in columns.items()}
    return {name: values.pop() for name, values in found.items() if len(values) == 1}
