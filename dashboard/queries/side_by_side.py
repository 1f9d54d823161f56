"""What pages share that lay several runs or traces side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from profiler.errors import printable

FIELDS_NAMED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """Numbers of rows in the order of the address.

    `baseline` is what they are compared with (None: the oldest), `candidate`
    the one looked at closely (None: the first other).
    """

    numbers: tuple[int, ...] = ()
    baseline: int | None = None
    candidate: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRow:
    """A field that is not the same everywhere; None where a run lacks it."""

    name: str
    values: tuple[str | None, ...]
    matters: bool


def ordered(wanted: SideBySide, known: Sequence[int]) -> list[int]:
    """The known numbers, the baseline first: the one named, else the oldest."""
    numbers = [number for number in wanted.numbers if number in known]
    named = wanted.baseline
    first = named if named is not None and named in numbers else min(numbers)
    return [first, *(number for number in numbers if number != first)]


def field_rows(
    sides: Sequence[Mapping[str, str]], matters: Callable[[str], bool]
) -> tuple[FieldRow, ...]:
    """Fields with more than one value, those that matter first."""
    names = sorted({name for side in sides for name in side})
    rows = [
        FieldRow(name=name, values=tuple(side.get(name) for side in sides), matters=matters(name))
        for name in names
        if len({side.get(name) for side in sides}) > 1
    ]
    return tuple(sorted(rows, key=lambda row: not row.matters))


def in_words(names: Sequence[str], one: Mapping[str, str], other: Mapping[str, str]) -> str:
    """The first fields in words: `batch 1 against 8`."""
    said = [
        f"{printable(name, 40)} {_shown(one.get(name))} against {_shown(other.get(name))}"
        for name in names[:FIELDS_NAMED]
    ]
    if len(names) > FIELDS_NAMED:
        said.append(f"{len(names) - FIELDS_NAMED} more")
    return ", ".join(said)


def _shown(value: str | None) -> str:
    return "unknown" if value is None else printable(value, 60)
