"""Panel: the chain of work that decided how long a step took."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.panels.base import Panel, no_device_work
from dashboard.panels.table import Column, Table
from dashboard.panels.timeline import Part, placed
from profiler.analysis.report import CriticalPath, PathPart, Report

_COLOURS = {
    "compute": "compute",
    "communication": "comm",
    "copy": "copy",
    "fill": "copy",
    "host": "idle-host",
    "launch latency": "idle-launch",
    "synchronisation": "python",
    "dependency": "idle-other",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PathFacts:
    """The path by class; the parts of the bar add up to its length."""

    path: CriticalPath
    parts: tuple[Part, ...]

    @property
    def spoken(self) -> str:
        """The bar in words, for those who do not see it."""
        return ", ".join(f"{part.title} {part.share:.1%}" for part in self.parts)


def why_empty(report: Report) -> str:
    """A path needs a marked step and device work."""
    if report.critical_path is not None:
        return ""
    return no_device_work(report) or (
        "No step is marked, so there is no stretch to find the path through. "
        "Call prof.step() after each iteration."
    )


def facts(report: Report) -> PathFacts | None:
    """The path by class, the longest first."""
    path = report.critical_path
    if path is None:
        return None
    totals: dict[str, int] = {}
    for row in path.parts:
        totals[row.kind] = totals.get(row.kind, 0) + row.total_ns
    kinds = sorted(totals.items(), key=lambda item: -item[1])
    stretches = [(kind, _COLOURS.get(kind, "python"), total) for kind, total in kinds]
    return PathFacts(path=path, parts=tuple(placed(stretches, path.total_ns)))


def table(report: Report) -> Table[PathPart] | None:
    """What is on the path, by class and name."""
    path = report.critical_path
    if path is None:
        return None
    columns: tuple[Column[PathPart], ...] = (
        Column(key="name", title="On the path", value=lambda row: row.name, kind="mono", chars=80),
        Column(key="class", title="Class", value=lambda row: row.kind, kind="text"),
        Column(key="total", title="Time", value=lambda row: row.total_ns),
        Column(
            key="share",
            title="Share of the step",
            value=lambda row: row.total_ns / path.total_ns if path.total_ns else None,
            kind="share",
        ),
        Column(key="pieces", title="Pieces", value=lambda row: row.count, kind="count"),
    )
    return Table(
        name="critical",
        noun="parts",
        about="Only shortening what is on the path shortens the step.",
        rows=path.parts,
        columns=columns,
        sort="-total",
        search="name",
        size=12,
    )


PANEL = Panel(
    name="critical",
    title="Critical path",
    about="the chain of work that decided how long one step took",
    why_empty=why_empty,
    table=table,
    facts=facts,
    template="dashboard/partials/panel_critical.html",
)
