"""The typed shape of trace events, built from the argument names in `vendors.toml`.

An event is decoded in two goes: first with its arguments as raw JSON, then the
arguments of all events of one group together, with only the columns that group
can have. That keeps events small and skips the arguments nobody reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import msgspec

from profiler.trace.kinds import DEVICE_KINDS, Kind
from profiler.trace.vendors import rules

Scalar = int | float | str | None

NO_ARGUMENTS = msgspec.Raw(b"{}")
NO_VALUE = msgspec.Raw(b"")

RAW_COLUMNS = ("shapes", "dtypes", "concrete")
"""Arguments kept as JSON text: lists that only need comparing and showing."""

TEXT_COLUMNS = (
    "device",
    "stream",
    "collective",
    "group",
    "message_dtype",
    "sync_kind",
    "task_type",
    "label",
)
"""Arguments kept as text; all others are whole numbers, -1 where absent."""

_MEMORY = ("bytes", "allocated", "reserved", "memory_device", "memory_index", "address")
_ONLY_MEMORY = ("allocated", "reserved", "memory_device", "memory_index", "address", "label")

COLUMNS: tuple[str, ...] = tuple(c for c in rules().arguments if c not in _ONLY_MEMORY)
"""Argument columns of complete events."""

CODE_COLUMNS = frozenset(c for c in COLUMNS if c in TEXT_COLUMNS or c in RAW_COLUMNS)
"""Columns whose values are codes of strings."""


class Complete(msgspec.Struct, tag_field="ph", tag="X", gc=False):
    """A complete event as written; numbers may be strings in some writers' files."""

    cat: str | None = None
    name: str = ""
    pid: int | str = ""
    tid: int | str = ""
    ts: Scalar = None
    dur: Scalar = None
    args: msgspec.Raw = NO_ARGUMENTS


class FlowStart(msgspec.Struct, tag_field="ph", tag="s", gc=False):
    """The start of a flow arrow."""

    cat: str | None = None
    id: Scalar = None
    pid: int | str = ""
    tid: int | str = ""
    ts: Scalar = None


class FlowEnd(FlowStart, tag_field="ph", tag="f", gc=False):
    """The end of a flow arrow."""


class Named(msgspec.Struct, gc=False):
    """Fields of the rarer phases."""

    name: str = ""
    pid: int | str = ""
    tid: int | str = ""
    ts: Scalar = None
    args: msgspec.Raw = NO_ARGUMENTS


class Instant(Named, tag_field="ph", tag="i", gc=False):
    """An instant, such as a memory record."""


class OldInstant(Named, tag_field="ph", tag="I", gc=False):
    """An instant in the spelling of early writers."""


class Metadata(Named, tag_field="ph", tag="M", gc=False):
    """A name of a process or thread."""


class Begin(Named, tag_field="ph", tag="B", gc=False):
    """The begin of an interval whose end is an event of its own."""


class End(Named, tag_field="ph", tag="E", gc=False):
    """The end of the interval begun last on the same track."""


class Counter(msgspec.Struct, tag_field="ph", tag="C", gc=False):
    """A counter value; counted, not kept."""


class Unread(msgspec.Struct, gc=False):
    """An event of a phase nobody reads here."""


Event = Complete | FlowStart | FlowEnd | Instant | OldInstant | Metadata | Begin | End | Counter
"""The phases decoded by type; others take the slow path and become `Unread`."""

EventLike = Event | Unread


if TYPE_CHECKING:

    class Arguments(msgspec.Struct):
        """Stand-in for type checkers: the real classes have one field per spelling."""


@dataclass(frozen=True, slots=True)
class Group:
    """Events that share a set of argument columns.

    `fields` are the fields of `shape` that spell each column; `spellings`
    maps names in the file to fields.
    """

    columns: tuple[str, ...]
    shape: type[Arguments]
    decoder: msgspec.json.Decoder[list[Arguments]]
    fields: dict[str, tuple[str, ...]]
    spellings: dict[str, str]


def _group(name: str, columns: tuple[str, ...]) -> Group:
    fields: dict[str, tuple[str, ...]] = {}
    spellings: dict[str, str] = {}
    shape: list[tuple[str, type, object]] = []
    for column in columns:
        spelled = rules().arguments[column]
        fields[column] = tuple(f"{column}_{n}" for n in range(len(spelled)))
        spellings.update(zip(spelled, fields[column], strict=True))
        kind, default = _field(column)
        shape += [(field, kind, default) for field in fields[column]]
    renamed = {field: spelled for spelled, field in spellings.items()}
    made = cast(
        "type[Arguments]",
        msgspec.defstruct(name, shape, rename=renamed, gc=False, module=__name__),
    )
    return Group(columns, made, msgspec.json.Decoder(list[made]), fields, spellings)  # type: ignore[valid-type]


def _field(column: str) -> tuple[type, object]:
    if column in RAW_COLUMNS:
        return msgspec.Raw, NO_VALUE
    return cast("type", Scalar), None if column in TEXT_COLUMNS else -1


_IDS = ("correlation", "external_id")
ALL = _group("AllArguments", tuple(c for c in COLUMNS if c != "concrete"))
MEMORY = _group("MemoryArguments", _MEMORY)
LABEL = _group("LabelArguments", ("label",))
_HOST_ONLY = ("sequence", "forward_thread", "shapes", "dtypes")
_NOT_DEVICE = (*_HOST_ONLY, "concrete")
_DEVICE = _group("DeviceArguments", tuple(c for c in COLUMNS if c not in _NOT_DEVICE))
_HOST = _group("HostArguments", ("external_id", *_HOST_ONLY))
_SCALARS = _group("ScalarArguments", ("external_id", *_HOST_ONLY, "concrete"))
_CALL = _group("CallArguments", _IDS)
_MARK = _group("MarkArguments", ("external_id",))

GROUPS: tuple[Group | None, ...] = (None, ALL, _HOST, _CALL, _MARK, _DEVICE, _SCALARS)
"""Groups by number; 0 has no arguments worth reading, 1 may have any."""

_BY_KIND: dict[Kind, int] = {
    Kind.HOST_OP: 2,
    Kind.RUNTIME: 3,
    Kind.ANNOTATION: 4,
    Kind.MODULE: 4,
    Kind.PYTHON: 0,
    Kind.SPAN: 0,
    Kind.OVERHEAD: 0,
    Kind.SYNC: 5,
    Kind.DEVICE_ANNOTATION: 5,
    **dict.fromkeys(DEVICE_KINDS, 5),
}

ANY_ARGUMENTS = frozenset(("record_param_comms",))
"""Host operators that carry the arguments of device work (collectives)."""

BY_NAME: dict[str, int] = {**dict.fromkeys(rules().scalars, 6), **dict.fromkeys(ANY_ARGUMENTS, 1)}
"""Group of the events of these names, whatever their category."""


def group_of_category(category: str) -> int:
    """Number of the group of events with this category; unknown ones may have any argument."""
    kind = rules().kinds.get(category)
    return 1 if kind is None else _BY_KIND.get(kind, 1)
