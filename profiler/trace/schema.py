"""The typed shape of one trace event, built from the argument names in `vendors.toml`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from profiler.trace.vendors import rules

Scalar = int | float | str | None

RAW_ARGUMENTS = ("shapes", "dtypes")
"""Arguments kept as JSON text: lists that only need comparing and showing."""

TEXT_ARGUMENTS = (
    "device",
    "stream",
    "collective",
    "group",
    "message_dtype",
    "sync_kind",
    "task_type",
)
"""Arguments kept as text; all others are whole numbers, -1 where absent."""

LABEL = "label"
"""The `name` argument of metadata events (process and thread names)."""

ARGUMENT_COLUMNS: tuple[str, ...] = (*rules().arguments, LABEL)

if TYPE_CHECKING:

    class Arguments(msgspec.Struct):
        """Stand-in for type checkers: the real class has one field per spelling."""

else:

    def _fields() -> tuple[list[tuple[str, type, object]], dict[str, str]]:
        fields, renamed = [], {}
        for column, spellings in (*rules().arguments.items(), (LABEL, ("name",))):
            raw = column in RAW_ARGUMENTS
            for n, spelling in enumerate(spellings):
                key = f"{column}_{n}"
                text = column in TEXT_ARGUMENTS or column == LABEL
                kind, default = (msgspec.Raw, msgspec.Raw(b"")) if raw else (Scalar, -1)
                default = None if text else default
                fields.append((key, kind, default))
                renamed[key] = spelling
        return fields, renamed

    _FIELDS, _RENAMED = _fields()
    Arguments = msgspec.defstruct(
        "Arguments", _FIELDS, rename=_RENAMED, frozen=True, gc=False, module=__name__
    )

NO_ARGUMENTS = Arguments()

ARGUMENT_FIELDS: dict[str, tuple[int, ...]] = {}
"""Positions of each column's spellings in `astuple` of the arguments."""

SPELLINGS: dict[str, str] = {}
"""Spelling in the file -> field of `Arguments`."""


def _index() -> None:
    at = 0
    for column, spellings in (*rules().arguments.items(), (LABEL, ("name",))):
        ARGUMENT_FIELDS[column] = tuple(range(at, at + len(spellings)))
        SPELLINGS.update((spelling, f"{column}_{n}") for n, spelling in enumerate(spellings))
        at += len(spellings)


_index()


class Event(msgspec.Struct, gc=False):
    """One event as written; numbers may be strings in some writers' files."""

    ph: str = ""
    cat: str | None = None
    name: str = ""
    pid: int | str = ""
    tid: int | str = ""
    ts: Scalar = None
    dur: Scalar = None
    id: Scalar = None
    args: Arguments = NO_ARGUMENTS
