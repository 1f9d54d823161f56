"""Panel: the samples of one metric of a run, as a chart, a table and a CSV."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from dashboard.figures.samples import Figure, Series, samples_figure
from dashboard.queries.run_detail import MetricView, ResultView

POINTS_LIMIT = 5000
ROWS_LIMIT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplesPanel:
    """What the panel shows. `note` says when not every sample is drawn."""

    metric: MetricView
    choices: tuple[MetricView, ...]
    figure: Figure
    rows: tuple[tuple[int, float], ...]
    note: str

    @property
    def cut(self) -> bool:
        """Whether the table stops before the last sample."""
        return len(self.metric.samples) > len(self.rows)


def samples_panel(result: ResultView, name: str) -> SamplesPanel | None:
    """The panel for the metric asked for, else the first that was sampled more than once."""
    choices = tuple(metric for metric in result.metrics if len(metric.samples) > 1)
    if not choices:
        return None
    metric = next((choice for choice in choices if choice.name == name), choices[0])
    points = tuple(enumerate(metric.samples, start=1))
    every = -(-len(points) // POINTS_LIMIT)
    series = Series(
        title=metric.title,
        unit=metric.unit,
        points=points[::every],
        median=statistics.median(metric.samples),
    )
    note = f"Drawn: one in {every} of {len(points):,} samples." if every > 1 else ""
    return SamplesPanel(
        metric=metric,
        choices=choices,
        figure=samples_figure(series),
        rows=points[:ROWS_LIMIT],
        note=note,
    )
