"""Runs and traces side by side as CSV rows and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import HttpResponse

from dashboard.figures.waterfall import bar_name
from dashboard.queries.compare_reasons import RunColumn
from dashboard.queries.compare_runs import RunsView
from dashboard.queries.compare_traces import TracesView
from dashboard.services.difference import Difference
from dashboard.views.comparison_exports import markdown_cell
from dashboard.views.downloads import Cell
from profiler.units import MISSING, change, duration, quantity, share

OPERATORS_TOLD = 15
RUN_COLUMNS = (
    "run",
    "side",
    "model",
    "workload",
    "platform",
    "commit",
    "metric",
    "unit",
    "value",
    "iqr",
    "n",
    "relative_change",
    "no_change_because",
)


def run_cells(view: RunsView) -> Iterator[tuple[Cell, ...]]:
    """Every metric of every run with all its digits."""
    for place, column in enumerate(view.columns):
        run = column.run
        for row in view.metrics:
            cell = row.cells[place]
            yield (
                run.pk,
                "candidate" if place else "baseline",
                run.workload.model.name,
                str(run.workload),
                run.platform.slug,
                run.commit.sha if run.commit else None,
                row.name,
                row.unit,
                cell.value,
                None if cell.spread is None else 2 * cell.spread,
                cell.n or None,
                cell.change,
                cell.why or None,
            )


def runs_markdown(view: RunsView, address: str) -> str:
    """The sentence, the reasons, and one table."""
    heads = [_run_name(column) for column in view.columns]
    lines = [
        f"**{markdown_cell(view.sentence)}** {address}",
        "",
        *(
            f"- run {column.run.pk}: {markdown_cell(reason.text)}"
            for column in view.candidates
            for reason in column.reasons
        ),
        "",
        f"| metric | {' | '.join(heads)} |",
        f"|---|{'---:|' * len(heads)}",
    ]
    for row in view.metrics:
        cells = [
            f"{quantity(cell.value, row.unit)}{f' ({change(cell.change)})' if place else ''}"
            if cell.value is not None
            else MISSING
            for place, cell in enumerate(row.cells)
        ]
        lines.append(f"| {markdown_cell(row.title)} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _run_name(column: RunColumn) -> str:
    run = column.run
    words = f"run {run.pk} {run.workload.model.name} {run.workload} on {run.platform.slug}"
    return markdown_cell(words)


def traces_markdown(view: TracesView, report: Difference, address: str) -> str:
    """The sentence, where the time of a step went, and the largest changes."""
    lines = [
        f"**{markdown_cell(view.sentence)}** {address}",
        "",
        f"Baseline trace {view.baseline.pk} {markdown_cell(view.baseline.name)}, candidate trace "
        f"{view.candidate.pk} {markdown_cell(view.candidate.name)}.",
        "",
        f"| {report.diff.measure} time of a step | baseline | share | candidate | share |",
        "|---|---:|---:|---:|---:|",
        *(
            f"| {part.title} | {duration(part.baseline_ns)} | {share(part.baseline_share)} "
            f"| {duration(part.candidate_ns)} | {share(part.candidate_share)} |"
            for part in view.coverage
        ),
        "",
        "| part of the step | change |",
        "|---|---:|",
        *(
            f"| {markdown_cell(bar_name(bar))} | {_signed(bar.change_ns)} |"
            for bar in report.waterfall.bars
        ),
        "",
        "| operator | module | change | became |",
        "|---|---|---:|---|",
        *(
            f"| {markdown_cell(row.operator)} | {markdown_cell(row.module)} "
            f"| {_signed(row.change_ns)} | {row.how} |"
            for row in report.diff.rows[:OPERATORS_TOLD]
        ),
        "",
        *(f"- {markdown_cell(note)}" for note in report.diff.notes),
    ]
    return "\n".join([*lines, ""])


def _signed(ns: int) -> str:
    return f"{'−' if ns < 0 else '+' if ns else ''}{duration(abs(ns))}"


def markdown_file(name: str, text: str) -> HttpResponse:
    """Markdown to be saved; `name` is ours, never foreign text."""
    response = HttpResponse(text, content_type="text/markdown; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
