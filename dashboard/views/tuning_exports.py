"""A tuning as CSV and as Markdown, for spreadsheets, reviews and customers."""

from __future__ import annotations

from collections.abc import Iterator

from dashboard.models import IterationState
from dashboard.queries.tuning import IterationView, TuningView, interval
from dashboard.queries.tuning_calibration import Prediction
from dashboard.views.downloads import Cell
from profiler import units
from profiler.errors import printable

ITERATION_COLUMNS = (
    "iteration",
    "state",
    "hypothesis",
    "finding_kind",
    "finding_subject",
    "baseline",
    "commit",
    "candidate_ref",
    "predicted_ns_per_step",
    "predicted_change",
    "verdict",
    "measured_change",
    "low",
    "high",
    "pairs",
    "numerics",
    "comparison",
    "change_mended",
    "reason",
    "kept_despite",
    "decided_by",
    "created_at",
    "decided_at",
)
LADDER_COLUMNS = (
    "step",
    "iteration",
    "metric",
    "unit",
    "before",
    "predicted",
    "after",
    "relative_change",
    "times_day0_speed",
    "measured_in_pairs",
)
PREDICTION_COLUMNS = (
    "tuning",
    "iteration",
    "finding_kind",
    "state",
    "decided_at",
    "predicted_change",
    "measured_change",
    "measured_over_predicted",
)


def iteration_cells(item: IterationView) -> tuple[Cell, ...]:
    """One iteration, in the order of `ITERATION_COLUMNS`."""
    row = item.row
    decided = row.decided_at.isoformat() if row.decided_at else None
    return (
        *(row.number, item.state, row.hypothesis, row.finding_kind, row.finding_subject),
        *(row.baseline.sha, row.commit.sha if row.commit else None, row.candidate_ref),
        *(row.predicted_ns, row.predicted_effect, item.verdict, item.effect, item.low, item.high),
        *(row.pairs, row.numerics, row.comparison_id, row.change_id, row.reason, row.despite),
        *(row.decided_by.username if row.decided_by else None, row.created_at.isoformat()),
        decided,
    )


def ladder_cells(view: TuningView) -> Iterator[tuple[Cell, ...]]:
    """Day-0, every rung, what is kept now, the target and, where known, the roofline."""
    name, unit = view.metric.name, view.metric.unit
    day0 = view.row.day0_value
    yield ("Day-0", None, name, unit, None, None, day0, None, 1.0, None)
    for rung in view.rungs:
        step = "lost" if rung.is_setback else "kept"
        figures = (rung.before, rung.predicted, rung.after, rung.change, rung.speed)
        yield (step, rung.iteration.number, name, unit, *figures, "yes" if rung.measured else "no")
    yield ("now", None, name, unit, None, None, view.ladder.now, None, view.speed, None)
    target = view.row.target_value
    yield ("target", None, name, unit, None, None, target, None, None, None)
    if view.ceiling is not None:
        yield ("roofline", None, name, unit, None, None, view.ceiling, None, None, None)


def prediction_cells(row: Prediction) -> tuple[Cell, ...]:
    """One decided prediction, in the order of `PREDICTION_COLUMNS`."""
    return (
        *(row.tuning_id, row.number, row.kind, row.state, row.decided_at.isoformat()),
        *(row.predicted, row.measured, row.ratio),
    )


def markdown(view: TuningView, address: str) -> str:
    """The report of a tuning: where it stands, the ladder, everything that was tried."""
    row = view.row
    lines = [
        f"# Tuning of {_cell(row.workload.model.name)} on {_cell(row.platform.slug)}",
        "",
        f"**{_cell(view.sentence, 1000)}**",
        "",
        f"Workload {_cell(str(row.workload))}, commits of {_cell(row.repository.slug)}, Day-0 "
        f"commit `{row.day0_commit.sha[:10]}` ({_runs(view)}).",
        *_closed(view),
        "",
        "## Ladder",
        "",
        f"| step | {view.metric.title.lower()} | change | predicted | speed against Day-0 |",
        "|---|---:|---:|---:|---:|",
        f"| Day-0 | {_value(view, row.day0_value)} | | | 1.00 × |",
        *_rung_lines(view),
        f"| target | {_value(view, row.target_value)} | {units.change(view.remains)} to go | | |",
        _roofline_line(view),
        "",
        "## Everything that was tried",
        "",
        "| # | decision | what | commit | predicted | measured (95 %) | verdict | answers | why |",
        "|---:|---|---|---|---:|---|---|---|---|",
        *(_tried_line(item) for item in view.tried),
        *([] if view.tried else ["| | | nothing was tried yet | | | | | | |"]),
        "",
        "Changes are of the metric, measured in pairs of launches on one machine; negative is "
        f"{'better' if view.metric.direction == 'lower' else 'worse'}. Values after Day-0 are the "
        "Day-0 value times the changes that were kept.",
        "",
        address,
        "",
    ]
    return "\n".join(lines)


def _runs(view: TuningView) -> str:
    numbers = [str(run.pk) for run in view.row.day0_runs.all()]
    return f"run{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"


def _closed(view: TuningView) -> list[str]:
    row = view.row
    if row.is_open:
        return []
    return ["", f"{row.get_state_display()}: {_cell(row.reason, 1000)}"]


def _rung_lines(view: TuningView) -> Iterator[str]:
    for rung in view.rungs:
        number = rung.iteration.number
        name = f"lost before {number}" if rung.is_setback else f"iteration {number}"
        change = units.change(rung.change) if rung.measured else "not measured"
        said = "" if rung.predicted is None else _value(view, rung.predicted)
        yield (
            f"| {name} | {_value(view, rung.after)} | {change} | {said} "
            f"| {units.significant(rung.speed)} × |"
        )


def _roofline_line(view: TuningView) -> str:
    if view.ceiling is None or view.newest is None:
        why = view.newest.source if view.newest else "never measured"
        return f"| roofline | not known | {_cell(why)} | | |"
    reached = units.share(view.roofline_share)
    return f"| roofline | {_value(view, view.ceiling)} | {reached} reached | | |"


def _tried_line(item: IterationView) -> str:
    row = item.row
    why = row.reason + (f" Kept all the same because: {row.despite}" if row.despite else "")
    said = "" if row.predicted_effect is None else units.change(row.predicted_effect)
    state = row.state if row.state != IterationState.MEASURING else item.state
    return (
        f"| {row.number} | {state} | {_cell(row.hypothesis, 400)} "
        f"| {f'`{row.commit.sha[:10]}`' if row.commit else ''} | {said} "
        f"| {interval(item.effect, item.low, item.high)} | {item.verdict} | {row.numerics} "
        f"| {_cell(why, 600)} |"
    )


def _value(view: TuningView, value: float) -> str:
    return units.quantity(value, view.metric.unit)


def _cell(text: str, limit: int = 200) -> str:
    """Foreign text that neither breaks the table nor becomes markup."""
    plain = printable(text.replace("\r\n", " ").replace("\n", " "), limit)
    return "".join(f"\\{char}" if char in "\\`*_{}[]<>|#!&~" else char for char in plain)
