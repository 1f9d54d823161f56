"""Panel: the steps of a trace with their phases."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from dashboard.panels.base import Panel
from dashboard.panels.table import Column, Table
from profiler.analysis.report import Report, StepRow


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFacts:
    """How even the steps are; the slowest is told against the median."""

    count: int
    median_ns: float
    slowest: StepRow
    over: float
    inferred: bool
    phases: tuple[tuple[str, int, int], ...]
    cuts: tuple[tuple[str, int], ...]
    """Steps worth a closer look, by their number from 1."""


def why_empty(report: Report) -> str:
    """Steps come from marks, else from repetition."""
    if report.steps:
        return ""
    return (
        "Nothing marks steps, and no stretch of calls repeats evenly. Call prof.step() after "
        "each iteration to have them marked."
    )


def facts(report: Report) -> StepFacts:
    """Median, slowest, and time by phase."""
    median = statistics.median(row.dur_ns for row in report.steps)
    slowest = max(report.steps, key=lambda row: row.dur_ns)
    phases: dict[str, tuple[int, int]] = {}
    for row in report.steps:
        count, total = phases.get(row.phase or "", (0, 0))
        phases[row.phase or ""] = (count + 1, total + row.dur_ns)
    return StepFacts(
        count=len(report.steps),
        median_ns=median,
        slowest=slowest,
        over=slowest.dur_ns / median - 1 if median else 0.0,
        inferred=report.steps[0].name.startswith("repetition#"),
        phases=tuple((name or "no phase", *times) for name, times in sorted(phases.items()))
        if any(phases)
        else (),
        cuts=_cuts(report.steps, slowest, median),
    )


def _cuts(rows: list[StepRow], slowest: StepRow, median: float) -> tuple[tuple[str, int], ...]:
    """The slowest step and one like most of them; the only one where there is one."""
    if len(rows) == 1:
        return (("the step", 1),)
    usual = min(rows, key=lambda row: abs(row.dur_ns - median))
    return (("the slowest", rows.index(slowest) + 1), ("a usual one", rows.index(usual) + 1))


def table(report: Report) -> Table[StepRow]:
    """Steps in the order of time."""
    columns: tuple[Column[StepRow], ...] = (
        Column(key="name", title="Step", value=lambda row: row.name, kind="mono"),
        Column(key="phase", title="Phase", value=lambda row: row.phase, kind="text"),
        Column(key="start", title="Start", value=lambda row: row.start_ns),
        Column(key="duration", title="Duration", value=lambda row: row.dur_ns),
        Column(key="device_busy", title="Device busy", value=lambda row: row.device_busy_ns),
        Column(key="busy_share", title="Busy share", value=_busy_share, kind="share"),
    )
    about = (
        "Starts count from the first event. Device busy is the union of the work launched inside "
        "the step; some of it may run after the step's end."
    )
    return Table(
        name="steps",
        noun="steps",
        about=about,
        rows=report.steps,
        columns=columns,
        sort="start",
        search="name",
    )


def _busy_share(row: StepRow) -> float | None:
    if row.device_busy_ns is None or not row.dur_ns:
        return None
    return row.device_busy_ns / row.dur_ns


PANEL = Panel(
    name="steps",
    title="Steps",
    about="iterations as the recording marks them, with their phase",
    why_empty=why_empty,
    table=table,
    facts=facts,
    template="dashboard/partials/panel_steps.html",
)
