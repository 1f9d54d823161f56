"""Panel: how far the numbers of a trace can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.panels.base import Fact, Panel
from dashboard.panels.launches import device_ns
from dashboard.panels.privacy import is_privacy_warning
from dashboard.panels.table import Column, Table
from profiler import units
from profiler.analysis.report import Report

Loss = tuple[str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityFacts:
    """What was done to the data, whether device time is conserved, and what to know."""

    facts: tuple[Fact, ...]
    warnings: tuple[str, ...]
    clean: bool


def never_empty(report: Report) -> str:
    """There is always something to say about quality."""
    return ""


def facts(report: Report) -> QualityFacts:
    """Counts by deed, conservation of device time, flows."""
    quality = report.quality
    warnings = tuple(text for text in quality.warnings if not is_privacy_warning(text))
    touched = quality.repaired + quality.dropped + quality.clipped
    lines = [
        Fact(term="events read", shown=units.count(report.trace.events)),
        Fact(
            term="repaired, dropped, clipped",
            shown=f"{units.count(quality.repaired)}, {units.count(quality.dropped)}, "
            f"{units.count(quality.clipped)}",
            note="" if touched else "every event is as it was written",
        ),
    ]
    if report.timeline:
        lines.append(_conservation(report))
    if quality.flows_paired or quality.flows_unpaired:
        lines.append(
            Fact(
                term="flow arrows",
                shown=f"{units.count(quality.flows_paired)} with both ends, "
                f"{units.count(quality.flows_unpaired)} with one",
            )
        )
    return QualityFacts(facts=tuple(lines), warnings=warnings, clean=not (touched or warnings))


def _conservation(report: Report) -> Fact:
    """Attributed + unattributed against the sum of the kernel table, to the nanosecond."""
    quality, whole_ns = report.quality, device_ns(report)
    summed_ns = sum(row.total_ns for row in report.kernels)
    verdict = (
        "equal to the sum of the kernel table, to the nanosecond"
        if whole_ns == summed_ns
        else f"the kernel table adds up to {units.duration(summed_ns)}: they differ"
    )
    return Fact(
        term="device time",
        shown=f"{units.duration(quality.attributed_device_ns)} attributed to operators + "
        f"{units.duration(quality.unattributed_device_ns)} not attributed = "
        f"{units.duration(whole_ns)}",
        exact=f"{quality.attributed_device_ns:,} + {quality.unattributed_device_ns:,} "
        f"= {whole_ns:,} ns",
        note=verdict,
    )


def table(report: Report) -> Table[Loss] | None:
    """What was repaired, dropped or clipped, by kind."""
    quality = report.quality
    deeds = (
        ("repaired", quality.repaired_by),
        ("dropped", quality.dropped_by),
        ("clipped", quality.clipped_by),
    )
    rows = [(kind, deed, count) for deed, kinds in deeds for kind, count in kinds.items()]
    if not rows:
        return None
    columns: tuple[Column[Loss], ...] = (
        Column(key="kind", title="What", value=lambda row: row[0], kind="text"),
        Column(key="deed", title="Was", value=lambda row: row[1], kind="text"),
        Column(key="events", title="Events", value=lambda row: row[2], kind="count"),
    )
    return Table(
        name="quality",
        noun="kinds",
        about="Repaired events are kept, dropped ones are not, clipped ones were cut.",
        rows=rows,
        columns=columns,
        sort="-events",
    )


PANEL = Panel(
    name="quality",
    title="Quality of the recording",
    about="what was done to the data, and whether it adds up",
    why_empty=never_empty,
    table=table,
    facts=facts,
    template="dashboard/partials/panel_quality.html",
)
