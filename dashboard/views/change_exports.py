"""Changes as CSV. Units stand in the headings; values keep all their digits."""

from __future__ import annotations

from collections.abc import Iterator

from dashboard.queries.changes import ChangeRow, ChangeView
from dashboard.views.downloads import Cell

CHANGE_COLUMNS = (
    "change",
    "state",
    "kind",
    "direction",
    "model",
    "workload",
    "platform",
    "metric",
    "unit",
    "before",
    "after",
    "relative_effect",
    "measured_relative_effect",
    "p",
    "repository",
    "before_commit",
    "after_commit",
    "subject",
    "culprit",
    "reason",
    "comparison",
    "fixed_by_commit",
    "found_at",
    "state_at",
)
POINT_COLUMNS = ("point", "commit", "subject", "run", "runs", "metric", "unit", "value", "side")


def change_cells(item: ChangeRow) -> tuple[Cell, ...]:
    """One change, in the order of `CHANGE_COLUMNS`."""
    row = item.row
    return (
        *(row.pk, row.state, row.kind, row.direction),
        *(row.workload.model.name, str(row.workload), row.platform.slug),
        *(row.metric, item.metric.unit, row.before_value, row.after_value),
        *(row.effect, row.measured_effect, row.p_value),
        *(row.repository.slug, row.before_commit.sha, row.after_commit.sha),
        *(row.after_commit.subject, row.culprit, row.reason, row.comparison_id),
        row.fixed_commit.sha if row.fixed_commit else None,
        *(row.found_at.isoformat(), row.state_at.isoformat()),
    )


def point_cells(view: ChangeView) -> Iterator[tuple[Cell, ...]]:
    """The history around a change, in the order of `POINT_COLUMNS`."""
    for point in view.points:
        yield (
            *(point.number, point.sha, point.subject, point.run_id, point.runs),
            *(view.metric.name, view.metric.unit, point.value, point.side),
        )
