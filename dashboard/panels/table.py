"""A table of a report: filtered, ordered and paged on the server, exported whole as CSV.

Columns that are empty or equal in every row are left out and said in a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from dashboard.forms.tables import TableForm, TableWish
from dashboard.panels.asking import question_address
from profiler import units
from profiler.analysis.questions import Subject
from profiler.errors import printable

Row = TypeVar("Row")
Value = str | int | float | None
PAGE_ROWS = 25
NAME_CHARS = 60
TITLE_CHARS = 200
TEXTS = ("text", "mono")
_SUFFIXES = {"ns": "_ns", "bytes": "_bytes", "B/s": "_bytes_per_s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Generic[Row]):
    """One column. `kind` is text, mono (a foreign name), share, or a unit of `units.quantity`."""

    key: str
    title: str
    value: Callable[[Row], Value]
    kind: str = "ns"
    about: str = ""
    always: bool = False
    """Whether it stays where every row says the same, as it is a remark and no measure."""
    chars: int = NAME_CHARS
    """How much of a foreign name is shown; the middle is left out."""
    full: Callable[[Row], str] | None = None
    """The whole text behind a shortened value; the exports have it."""
    raw: Callable[[Row], Value] | None = None
    """What the exports hold instead: totals where the page shows those of a step."""
    link: Callable[[Row], str] | None = None
    """An address of ours that the value leads to."""

    @property
    def is_text(self) -> bool:
        return self.kind in TEXTS

    @property
    def numeric(self) -> str:
        """The class of its heading: `num` for numbers."""
        return "" if self.is_text else "num"

    @property
    def heading(self) -> str:
        """The heading in a CSV, with the unit."""
        return f"{self.key}{_SUFFIXES.get(self.kind, '')}"

    def exported(self, row: Row) -> Value:
        """The value with all its digits and letters."""
        if self.raw:
            return self.raw(row)
        return self.full(row) if self.full else self.value(row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Generic[Row]):
    """Rows with their columns; the first column names a row. `sort` is the order at first."""

    name: str
    noun: str
    about: str
    rows: Sequence[Row]
    columns: tuple[Column[Row], ...]
    sort: str = ""
    search: str = ""
    """Key of the text column that the filter looks into."""
    size: int = PAGE_ROWS
    asks: tuple[Subject, Callable[[Row], str]] | None = None
    """What a row is in a question of the reader, and the name it goes by there."""

    def column(self, key: str) -> Column[Row]:
        return next(column for column in self.columns if column.key == key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A value as shown, with the whole of it for the title."""

    shown: str
    title: str
    kind: str
    part: float | None = None
    href: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """One page of a table, ready to be drawn."""

    name: str
    noun: str
    about: str
    form: TableForm
    wanted: TableWish
    columns: tuple[Column[object], ...]
    rows: tuple[tuple[Cell, ...], ...]
    hidden: tuple[str, ...]
    searched: str
    sort: str
    total: int
    found: int
    page: int
    pages: int
    size: int
    asks: bool
    """Whether every row ends with a question to click on."""

    @property
    def parameters(self) -> str:
        """The names of its parameters in the address."""
        return " ".join(self.form.add_prefix(field) for field in self.form.fields)

    @property
    def touched(self) -> bool:
        """Whether the reader asked for anything, so that a folded table is better open."""
        return self.wanted != TableWish()

    @property
    def text_parameter(self) -> str:
        return self.form.add_prefix("q")

    @property
    def sort_parameter(self) -> str:
        return self.form.add_prefix("sort")

    @property
    def page_parameter(self) -> str:
        return self.form.add_prefix("page")


def table_view(table: Table[Row], query: Mapping[str, str], *, asked_at: str = "") -> TableView:
    """The page of `table` that the address asks for; a page past the end is the last one.

    `asked_at` is where questions about its rows are answered, if anywhere.
    """
    form = TableForm(query, name=table.name, sorts=[column.key for column in table.columns])
    wanted = form.wanted()
    rows = ordered(table, wanted)
    pages = max(1, -(-len(rows) // table.size))
    page = min(wanted.page, pages)
    unknown = [column for column in table.columns[1:] if _unknown(table, column)]
    flat = {
        column.key: said
        for column in table.columns[1:]
        if column not in unknown and not column.always and (said := _flat(table, column))
    }
    out = {column.key for column in unknown} | flat.keys()
    shown = tuple(column for column in table.columns if column.key not in out)
    part = rows[(page - 1) * table.size : page * table.size]
    return TableView(
        name=table.name,
        noun=table.noun,
        about=table.about,
        form=form,
        wanted=wanted,
        columns=shown,  # type: ignore[arg-type]
        rows=tuple(_cells(table, shown, row, asked_at) for row in part),
        hidden=(*flat.values(), *_not_known(unknown)),
        searched=table.column(table.search).title.lower() if table.search else "",
        sort=wanted.sort or table.sort,
        total=len(table.rows),
        found=len(rows),
        page=page,
        pages=pages,
        size=table.size,
        asks=bool(asked_at and table.asks),
    )


def _cells(
    table: Table[Row], columns: Sequence[Column[Row]], row: Row, asked_at: str
) -> tuple[Cell, ...]:
    cells = tuple(cell(column, row) for column in columns)
    if not (asked_at and table.asks):
        return cells
    subject, name = table.asks
    href = question_address(asked_at, subject, name(row))
    return (*cells, Cell(shown="", title="", kind="ask", href=href))


def ordered(table: Table[Row], wanted: TableWish) -> list[Row]:
    """Every row the filter leaves, in the order asked for; ties keep the report's order."""
    rows = list(table.rows)
    if wanted.text and table.search:
        column = table.column(table.search)
        text = wanted.text.casefold()
        rows = [row for row in rows if text in str(column.exported(row)).casefold()]
    sort = wanted.sort or table.sort
    if not sort:
        return rows
    value = table.column(sort.removeprefix("-")).value
    known = [row for row in rows if value(row) is not None]
    known.sort(key=lambda row: _key(value(row)), reverse=sort.startswith("-"))
    return known + [row for row in rows if value(row) is None]


def _key(value: Value) -> tuple[float, str]:
    return (0.0, value.casefold()) if isinstance(value, str) else (float(value or 0), "")


def exported(table: Table[Row], query: Mapping[str, str]) -> Iterator[tuple[Value, ...]]:
    """Every row the filter leaves, all columns, in the order of the page."""
    form = TableForm(query, name=table.name, sorts=[column.key for column in table.columns])
    for row in ordered(table, form.wanted()):
        yield tuple(column.exported(row) for column in table.columns)


def cell(column: Column[Row], row: Row) -> Cell:
    """One value: foreign text made harmless and cut, numbers with their unit."""
    value = column.value(row)
    if isinstance(value, str):
        whole = column.full(row) if column.full else value
        limit = column.chars if column.kind == "mono" else TITLE_CHARS
        shown = units.middle(printable(value, 2000), limit)
        href = column.link(row) if column.link else ""
        title = printable(whole, TITLE_CHARS)
        return Cell(shown=shown, title=title, kind=column.kind, href=href)
    if value is None:
        return Cell(shown=units.MISSING, title="not known", kind=column.kind)
    if column.kind == "share":
        title = f"{value:.6g}"
        return Cell(shown=units.share(value), title=title, kind="share", part=float(value))
    href = column.link(row) if column.link else ""
    exact = f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
    unit = "" if column.kind == "count" else column.kind
    shown = units.quantity(value, column.kind)
    return Cell(shown=shown, title=f"{exact} {unit}".rstrip(), kind=column.kind, href=href)


def _flat(table: Table[Row], column: Column[Row]) -> str:
    """What is the same in every row of a column, as words; empty where rows differ."""
    first = column.value(table.rows[0])
    if len(table.rows) < 2 or any(column.value(row) != first for row in table.rows):
        return ""
    return f"{column.title.lower()} is {cell(column, table.rows[0]).shown} in every row"


def _not_known(columns: Sequence[Column[Row]]) -> tuple[str, ...]:
    names = ", ".join(column.title.lower() for column in columns if not column.always)
    return (f"not known: {names}",) if names else ()


def _unknown(table: Table[Row], column: Column[Row]) -> bool:
    return all(column.value(row) in {None, ""} for row in table.rows)
