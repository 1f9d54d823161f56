"""Panel: one operator over the history of a workload, as a chart, a table and a CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.urls import reverse

from dashboard.figures.history import DrawnHistory, DrawnPoint, history_figure
from dashboard.figures.samples import Figure
from dashboard.forms.history import WorkloadForm
from dashboard.panels.table import Column, Table, TableView, table_view
from dashboard.queries.operator_history import (
    Choice,
    OperatorPlace,
    OperatorTrack,
    operator_choices,
    operator_track,
)
from dashboard.queries.standings import StandingDetail
from profiler import units
from profiler.analysis import history
from profiler.errors import printable

CSV_COLUMNS = ("place", "commit", "run", "trace", "self_ns", "launches", "calls", "environment")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRow:
    """One place with the operator's change against the first that is drawn."""

    place: OperatorPlace
    number: int
    change: float | None

    @property
    def text(self) -> str:
        point = self.place.point
        said = [self.place.name, f"run {point.run_id}" if self.place.sha else ""]
        said.append(units.duration(point.value))
        if self.change is not None:
            said.append(f"{units.change(self.change)} since the first")
        if self.place.calls is not None:
            said.append(f"{units.count(self.place.calls)} calls a step")
        said.append(printable(self.place.subject, 80))
        return " · ".join(filter(None, said))


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorPanel:
    """What the page shows; `figure` and `table` are None where no trace names the operator."""

    track: OperatorTrack
    choices: tuple[Choice, ...]
    figure: Figure | None
    table: TableView | None
    rows: tuple[OperatorRow, ...]

    @property
    def time(self) -> str:
        """What the times are of."""
        where = "device" if self.track.on_device else "host"
        return f"{where} self time of {'a step' if self.track.per_step else 'a whole trace'}"

    @property
    def change(self) -> float | None:
        """Of the last place against the first."""
        return self.rows[-1].change if len(self.rows) > 1 else None


def track_of(standing: StandingDetail, form: WorkloadForm) -> OperatorTrack:
    """The operator that the address asks for, without those it could ask for."""
    source = form.source_wanted()
    known = dict(standing.sources)
    chosen = standing.source if source is None or source not in known else source
    name = form.operator()
    if not name:
        choices = operator_choices(standing)
        name = choices[0].name if choices else ""
    return operator_track(standing, name, source=chosen, runs=form.runs_wanted())


def operator_panel(
    standing: StandingDetail, form: WorkloadForm, query: Mapping[str, str]
) -> OperatorPanel:
    """The panel of the operator asked for, else of the one with most time."""
    track = track_of(standing, form)
    rows = _rows(track)
    return OperatorPanel(
        track=track,
        choices=operator_choices(standing),
        figure=history_figure(_drawn(track, rows)) if rows else None,
        table=table_view(_table(rows), query) if rows else None,
        rows=rows,
    )


def _rows(track: OperatorTrack) -> tuple[OperatorRow, ...]:
    first = track.places[0].point.value if track.places else 0.0
    return tuple(
        OperatorRow(
            place=place,
            number=number,
            change=place.point.value / first - 1 if first else None,
        )
        for number, place in enumerate(track.places)
    )


def _drawn(track: OperatorTrack, rows: tuple[OperatorRow, ...]) -> DrawnHistory:
    stretches = history.segments([row.place.point for row in rows])
    return DrawnHistory(
        title=printable(track.name, 60),
        unit="ns",
        axis="commit" if track.source else "run",
        points=[
            DrawnPoint(
                name=row.place.sha[:7] or str(row.place.point.run_id),
                value=row.place.point.value,
                low=row.place.point.low,
                high=row.place.point.high,
                text=row.text,
                address=reverse("trace-detail", args=[row.place.trace_id]),
                run_id=row.place.point.run_id,
            )
            for row in rows
        ],
        stretches=stretches,
        boundaries=[(first, "environment changed") for first, _ in stretches[1:]],
        marks=(),
        day0=None,
    )


def _table(rows: tuple[OperatorRow, ...]) -> Table[OperatorRow]:
    columns: tuple[Column[OperatorRow], ...] = (
        Column(
            key="place",
            title="Place",
            value=lambda row: row.place.name,
            kind="mono",
            link=lambda row: reverse("trace-detail", args=[row.place.trace_id]),
        ),
        Column(key="order", title="Order", value=lambda row: row.number + 1, kind="count"),
        Column(key="run", title="Run", value=lambda row: row.place.point.run_id, kind="count"),
        Column(key="self", title="Self time", value=lambda row: row.place.point.value),
        Column(
            key="launches",
            title="Launches",
            value=lambda row: len(row.place.point.run_ids),
            kind="count",
        ),
        Column(key="calls", title="Calls a step", value=lambda row: row.place.calls, kind="count"),
        Column(
            key="change",
            title="Since the first",
            value=lambda row: units.change(row.change) if row.change is not None else None,
            kind="text",
        ),
        Column(key="subject", title="Subject", value=lambda row: row.place.subject, kind="mono"),
    )
    return Table(
        name="operator-rows",
        noun="places",
        about="From profiled launches, which are slower than timed ones.",
        rows=rows,
        columns=columns,
        sort="-order",
        search="place",
    )


def csv_rows(track: OperatorTrack) -> Iterator[tuple[str | int | float | None, ...]]:
    """Every place that is drawn, oldest first."""
    for place in track.places:
        point = place.point
        yield (
            point.place,
            place.sha,
            point.run_id,
            place.trace_id,
            point.value,
            len(point.run_ids),
            place.calls,
            point.environment,
        )
