"""Panels of a tuning: its ladder and its calibration, as charts with the rows beneath."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from dashboard.figures.ladder import (
    Bar,
    Bars,
    DrawnBar,
    Ratio,
    calibration_figure,
    drawn_bars,
    ladder_figure,
)
from dashboard.figures.samples import Figure
from dashboard.queries.tuning import RungView, TuningView
from dashboard.queries.tuning_calibration import Calibration, Prediction
from dashboard.services.tuning_ladder import speed
from profiler.errors import printable

TABLE_ROWS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderPanel:
    """The chart and what it shows; `drawn` are the same bars for pages without scripts."""

    bars: Bars
    figure: Figure
    drawn: tuple[DrawnBar, ...]

    @property
    def target_x(self) -> str:
        """Where the target stands on the scale of the drawn bars."""
        return f"{self.bars.target / self.bars.top * 100:.2f}"

    @property
    def roofline_x(self) -> str:
        """Where the roofline stands; empty where it is not known or out of sight."""
        if self.bars.roofline is None or not self.bars.shows_roofline:
            return ""
        return f"{self.bars.roofline / self.bars.top * 100:.2f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationPanel:
    """Predictions of the whole installation, the newest in the table first."""

    known: Calibration
    figure: Figure
    rows: tuple[Prediction, ...]

    @property
    def more(self) -> int:
        return len(self.known.rows) - len(self.rows)


def ladder_panel(view: TuningView) -> LadderPanel:
    """The ladder in speeds against Day-0, so that better is up for times and rates alike."""
    bars = _bars(view)
    return LadderPanel(bars=bars, figure=ladder_figure(bars), drawn=drawn_bars(bars))


def _bars(view: TuningView) -> Bars:
    def of(value: float) -> float:
        return speed(view.row.day0_value, value, view.metric.direction)

    rungs = [_day0(view.row.day0_value)]
    for rung in view.rungs:
        before, after = of(rung.before), of(rung.after)
        rungs.append(
            Bar(
                label=_label(rung),
                title=_title(rung),
                before=before,
                after=after,
                kind=_kind(rung, before, after),
                value=rung.after,
                change=rung.change if rung.measured else None,
                predicted=None if rung.predicted is None else of(rung.predicted),
                address=_address(rung),
            )
        )
    return Bars(
        rungs=tuple(rungs),
        target=of(view.row.target_value),
        roofline=None if view.ceiling is None else of(view.ceiling),
    )


def _day0(value: float) -> Bar:
    return Bar(label="Day-0", title="Day-0", before=1.0, after=1.0, kind="day0", value=value)


def _label(rung: RungView) -> str:
    number = rung.iteration.number
    return f"lost before {number}" if rung.is_setback else f"#{number}"


def _title(rung: RungView) -> str:
    row = rung.iteration
    if rung.is_setback:
        return f"Lost by the change that iteration {row.number} mends"
    return f"Iteration {row.number}, {printable(row.finding_title or row.hypothesis, 80)}"


def _kind(rung: RungView, before: float, after: float) -> str:
    if not rung.measured:
        return "unknown"
    return "better" if after >= before else "worse"


def _address(rung: RungView) -> str:
    change_id = rung.iteration.change_id
    if rung.is_setback and change_id is not None:
        return reverse("change-detail", args=[change_id])
    return reverse("iteration-detail", args=[rung.iteration.pk])


def calibration_panel(known: Calibration) -> CalibrationPanel | None:
    """None while no prediction was measured."""
    if not known.rows:
        return None
    ratios = [
        Ratio(
            kind=row.kind,
            title=f"tuning {row.tuning_id}, iteration {row.number}, {row.state}",
            ratio=row.ratio,
            address=reverse("iteration-detail", args=[row.iteration_id]),
        )
        for row in known.rows
    ]
    return CalibrationPanel(
        known=known,
        figure=calibration_figure(ratios, [record.kind for record in known.kinds]),
        rows=tuple(reversed(known.rows))[:TABLE_ROWS],
    )
