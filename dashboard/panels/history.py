"""Panel: the history of one workload as a chart, a table and a CSV."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.urls import reverse

from dashboard.figures.history import DrawnHistory, DrawnMark, DrawnPoint, history_figure
from dashboard.figures.samples import Figure
from dashboard.panels.table import Column, Table, TableView, table_view
from dashboard.queries.history import Boundary, History, Launched, Place
from dashboard.queries.history_marks import Mark
from dashboard.queries.standings import Measure
from profiler import units
from profiler.analysis import history
from profiler.analysis.compare import FieldDifference
from profiler.errors import printable

WORDS_CHARS = 160
CSV_COLUMNS = (
    "position",
    "commit",
    "subject",
    "run",
    "created_at",
    "value",
    "unit",
    "iqr",
    "n",
    "environment",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow:
    """One place as the table says it; `text` puts the same into the hover box."""

    place: Place
    number: int
    change: float | None
    environment: str
    marks: str

    @property
    def text(self) -> str:
        """Every column of the row that says anything."""
        point = self.place.point
        said = [self.place.name, f"run {point.run_id}" if self.place.sha else ""]
        said.append(value_words(self))
        said.append(spread_words(point))
        said.append(f"{units.change(self.change)} since Day-0" if self.change is not None else "")
        said += [self.environment, self.marks, printable(self.place.subject, 80)]
        return " · ".join(filter(None, said))


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPanel:
    """What the panel shows of one workload."""

    history: History
    measure: Measure
    figure: Figure
    table: TableView
    rows: tuple[HistoryRow, ...]
    order: str
    note: str

    @property
    def scenario(self) -> str:
        return self.history.facts.scenario

    @property
    def figure_id(self) -> str:
        """The id of the figure in the page."""
        return f"{self.scenario}-figure"

    @property
    def pair(self) -> tuple[int, int] | None:
        """The runs a comparison starts from: the first drawn and the last."""
        if len(self.rows) < 2:
            return None
        return self.rows[0].place.point.run_id, self.rows[-1].place.point.run_id


def history_panels(
    histories: Iterable[History], query: Mapping[str, str]
) -> tuple[HistoryPanel, ...]:
    """The panel of each scenario that has a history."""
    return tuple(panel for one in histories if (panel := _panel(one, query)))


def _panel(one: History, query: Mapping[str, str]) -> HistoryPanel | None:
    measure = one.facts.measure
    if not one.places or measure is None:
        return None
    day0 = measure.day0_value if one.source == one.facts.source else one.places[0].point.value
    rows = _rows(one, day0)
    return HistoryPanel(
        history=one,
        measure=measure,
        figure=history_figure(_drawn(one, rows, day0)),
        table=table_view(_table(one, rows), query),
        rows=rows,
        order=_order(one),
        note=_note(one),
    )


def _order(one: History) -> str:
    if one.by_commit:
        return f"commits of {one.source}, parents before children"
    return "runs in the order they were made, as they have no commit"


def _note(one: History) -> str:
    drawn = sum(len(place.point.run_ids) for place in one.places)
    if not one.left_out:
        return ""
    return f"The last {drawn:,} of {drawn + one.left_out:,} runs; the CSV has all."


def _rows(one: History, day0: float) -> tuple[HistoryRow, ...]:
    marks = placed(one.places, one.marks)
    known = {edge.index: edge.differences for edge in one.boundaries}
    starts = [first for first, _ in _stretches(one)[1:]]
    changed = {first: difference_words(known.get(first, ())) for first in starts}
    return tuple(
        HistoryRow(
            place=place,
            number=index,
            change=place.point.value / day0 - 1 if day0 else None,
            environment=changed.get(index, ""),
            marks="; ".join(mark.words for mark in marks.get(index, ())),
        )
        for index, place in enumerate(one.places)
    )


def _stretches(one: History) -> tuple[tuple[int, int], ...]:
    """Where environments stay comparable; of old boundaries the differences are not looked up."""
    return history.segments([place.point for place in one.places])


def placed(places: Sequence[Place], marks: Iterable[Mark]) -> dict[int, list[Mark]]:
    """Marks by the index of their place; those of commits that are not drawn are left out.

    A mark without a commit stands at the first run made at its moment or
    later, else at the last one.
    """
    by_sha = {place.sha: index for index, place in enumerate(places) if place.sha}
    found: dict[int, list[Mark]] = {}
    for mark in marks:
        if mark.sha:
            index = by_sha.get(mark.sha)
        else:
            after = (number for number, place in enumerate(places) if place.at >= mark.at)
            index = next(after, len(places) - 1)
        if index is not None:
            found.setdefault(index, []).append(mark)
    return found


def difference_words(differences: Sequence[FieldDifference]) -> str:
    """`torch 2.12.0 → 2.13.0, driver 550 → 560`; the fields that change numbers."""
    mattering = [field for field in differences if field.matters]
    if not mattering:
        return "environment changed"
    said = [
        f"{printable(field.name, 40)} {_side(field.baseline)} → {_side(field.candidate)}"
        for field in mattering[:3]
    ]
    more = f" and {len(mattering) - 3} more" if len(mattering) > 3 else ""
    return f"environment: {', '.join(said)}{more}"


def _side(value: str | None) -> str:
    return "none" if value is None else printable(value, 24)


def value_words(row: HistoryRow) -> str:
    """`7.62 ms ± 100 µs`."""
    point = row.place.point
    spread = point.spread
    shown = units.duration(point.value)
    return f"{shown} ± {units.duration(spread)}" if spread is not None else shown


def spread_words(point: history.Point) -> str:
    """What the spread is of, and how many stand behind it."""
    if point.between:
        return f"{point.n} launches"
    if len(point.run_ids) > 1:
        return f"{point.n} launches, spread of the newest"
    return f"n = {point.n} in one launch" if point.spread is not None else "one sample"


def _drawn(one: History, rows: Sequence[HistoryRow], day0: float) -> DrawnHistory:
    stretches = _stretches(one)
    words = {boundary.index: boundary for boundary in one.boundaries}
    return DrawnHistory(
        title=one.metric.title,
        unit=one.metric.unit,
        axis="commit" if one.by_commit else "run",
        points=_points(rows),
        stretches=stretches,
        boundaries=[(first, _boundary(words.get(first))) for first, _ in stretches[1:]],
        marks=[
            DrawnMark(
                index=index,
                kind=mark.kind,
                text=mark.words,
                address=mark.address,
                tone=mark.tone,
            )
            for index, marks in placed(one.places, one.marks).items()
            for mark in marks
        ],
        day0=day0,
    )


def _boundary(boundary: Boundary | None) -> str:
    """The first difference, as there is little room; of an old boundary only that it is one."""
    mattering = [field for field in boundary.differences if field.matters] if boundary else []
    if not mattering:
        return "environment changed"
    first = mattering[0]
    more = f" +{len(mattering) - 1}" if len(mattering) > 1 else ""
    return f"{printable(first.name, 24)} {_side(first.baseline)} → {_side(first.candidate)}{more}"


def _points(rows: Sequence[HistoryRow]) -> list[DrawnPoint]:
    """Addresses are built from one: asking for each takes longer than all the rest."""
    before, after = reverse("run-detail", args=[0]).split("0")
    return [
        DrawnPoint(
            name=row.place.sha[:7] or str(row.place.point.run_id),
            value=row.place.point.value,
            low=row.place.point.low,
            high=row.place.point.high,
            text=row.text,
            address=f"{before}{row.place.point.run_id}{after}",
            run_id=row.place.point.run_id,
        )
        for row in rows
    ]


def _columns(one: History) -> tuple[Column[HistoryRow], ...]:
    """Every column says what the hover box says."""
    return (
        Column(
            key="place",
            title="Commit" if one.by_commit else "Run",
            value=lambda row: row.place.name,
            kind="mono",
            link=lambda row: reverse("run-detail", args=[row.place.point.run_id]),
        ),
        Column(key="order", title="Place", value=lambda row: row.number + 1, kind="count"),
        Column(key="run", title="Run", value=lambda row: row.place.point.run_id, kind="count"),
        Column(
            key="value",
            title=one.metric.title,
            value=lambda row: row.place.point.value,
            kind=one.metric.unit,
        ),
        Column(
            key="spread",
            title="Spread ±",
            value=lambda row: row.place.point.spread,
            kind=one.metric.unit,
        ),
        Column(
            key="n", title="Behind it", value=lambda row: spread_words(row.place.point), kind="text"
        ),
        Column(
            key="change",
            title="Since Day-0",
            value=lambda row: units.change(row.change) if row.change is not None else None,
            kind="text",
        ),
        Column(
            key="environment",
            title="Environment",
            value=lambda row: row.environment,
            kind="text",
        ),
        Column(
            key="marks",
            title="Marks",
            value=lambda row: row.marks,
            kind="mono",
            chars=WORDS_CHARS,
        ),
        Column(
            key="subject",
            title="Subject",
            value=lambda row: row.place.subject,
            kind="mono",
        ),
    )


def _table(one: History, rows: Sequence[HistoryRow]) -> Table[HistoryRow]:
    """The newest place first."""
    return Table(
        name=f"{one.facts.scenario}-rows",
        noun="places",
        about=f"{one.metric.title} of {one.facts.workload}, {one.metric.direction} is better. "
        "Quartiles between launches from three on, else the quartiles of one launch's samples.",
        rows=rows,
        columns=_columns(one),
        sort="-order",
        search="place",
    )


def csv_cells(launched: Launched) -> tuple[str | int | float | None, ...]:
    """One launch as a line of the CSV."""
    place, reading = launched.place, launched.reading
    return (
        reading.place if place.sha else None,
        place.sha,
        place.subject,
        reading.run_id,
        place.at.isoformat(),
        reading.value,
        "ns",
        reading.iqr,
        reading.n,
        reading.environment,
    )
