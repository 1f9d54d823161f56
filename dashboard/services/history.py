"""Keeps every standing true: called where runs are queued, measured and read.

`refresh` computes a row anew from the readings, so that calling it again, or
after rows were removed or inserted in bulk, is always right.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TypeVar

import msgspec
from django.db import transaction
from django.db.models import Model, QuerySet, Value
from django.db.models.functions import Coalesce
from django.db.models.lookups import Exact

from dashboard.models import (
    MetricValue,
    Platform,
    Result,
    Run,
    RunState,
    Standing,
    Trace,
    TraceState,
    Workload,
)
from dashboard.services import artifacts
from profiler.analysis import history
from profiler.analysis.report import FindingRow, Report
from profiler.metrics import HEADLINE, METRICS

logger = logging.getLogger(__name__)
Rows = TypeVar("Rows", bound=Model)

RECENT = 20
"""Values a sparkline shows at most."""

FINDINGS = 5
"""How many findings of the newest trace are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """How near the counted time of a trace comes to what the device can do.

    `share` is the least time of the operators that have a formula and a
    trusted peak, over the time they took; `counted` their share of all time.
    """

    share: float
    counted: float


def note_queued(run: Run) -> None:
    """A run of a history was made; sessions of comparisons belong to none."""
    if run.compared_id is not None:
        return
    row = _row(run.workload_id, run.platform_id, run.workload.scenario)
    if row.newest_run_id is None or row.newest_run_id < run.pk:
        Standing.objects.filter(pk=row.pk).update(newest_run=run)


def note_result(run: Run) -> None:
    """A run of a history was measured; call it where the result is stored."""
    refresh(run.workload, run.platform)


def note_trace(trace: Trace, report: Report) -> None:
    """The trace of a run was read: what is left, for the lists, from the newest of rank 0."""
    run = trace.run
    if run is None or trace.rank:
        return
    row = Standing.objects.filter(workload=run.workload_id, platform=run.platform_id).first()
    known = row.trace.run_id if row is not None and row.trace is not None else None
    if row is None or (known is not None and known > run.pk):
        return
    row.trace = trace
    _tell(row, report)
    row.save(update_fields=["trace", "roofline", "counted", "findings"])


def _tell(row: Standing, report: Report | None) -> None:
    """What is left according to the report of the trace; nothing is known without one."""
    roof = roofline_of(report) if report else None
    row.roofline = roof.share if roof else None
    row.counted = roof.counted if roof else None
    row.findings = [_finding(one) for one in report.findings[:FINDINGS]] if report else []


def _read_trace(row: Standing, trace: Trace | None) -> None:
    """Take over another trace; where its report is gone what is left stays unknown."""
    if trace is not None and trace.pk == row.trace_id:
        return
    row.trace = trace
    report: Report | None = None
    if trace is not None and trace.report is not None:
        try:
            report = msgspec.json.decode(artifacts.read(trace.report.sha256), type=Report)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            logger.warning("the report of trace %d cannot be read", trace.pk)
    _tell(row, report)


def _finding(row: FindingRow) -> dict[str, str | int | float | None]:
    """What lists say of a finding; `queries.standings` reads it back."""
    return {
        "title": row.title[:300].replace("\0", ""),
        "kind": row.kind,
        "subject": row.subject[:500].replace("\0", ""),
        "gain_ns": row.recoverable_ns_per_step,
        "share": row.share,
    }


def roofline_of(report: Report) -> Roofline | None:
    """None without shapes, without formulas, or without a peak that is trusted."""
    if report.roofline is None:
        return None
    known = [row for row in report.roofline.operators if row.efficiency is not None]
    took = sum(row.total_ns for row in known)
    if not took:
        return None
    least = sum(row.bound_ns or 0 for row in known)
    return Roofline(share=least / took, counted=sum(row.share for row in known))


@transaction.atomic
def refresh(workload: Workload, platform: Platform) -> None:
    """Compute the row of a history anew; without any run of it the row is removed."""
    newest = _runs(workload, platform).order_by("-id").values_list("pk", flat=True).first()
    if newest is None:
        Standing.objects.filter(workload=workload, platform=platform).delete()
        return
    # Of two runs that end at once the later waits here, and then sees what the other wrote.
    made = _row(workload.pk, platform.pk, workload.scenario)
    row = Standing.objects.select_for_update().get(pk=made.pk)
    row.newest_run_id = newest
    _read_trace(row, _newest_trace(workload, platform))
    _measure(row, workload, platform)
    row.save()


def refresh_all() -> int:
    """Every standing anew, for after rows came or went in bulk; how many there are."""
    pairs = set(Run.objects.order_by().values_list("workload_id", "platform_id").distinct())
    pairs |= set(Standing.objects.values_list("workload_id", "platform_id"))
    workloads = Workload.objects.in_bulk({workload for workload, _ in pairs})
    platforms = Platform.objects.in_bulk({platform for _, platform in pairs})
    for workload_id, platform_id in sorted(pairs):
        refresh(workloads[workload_id], platforms[platform_id])
    return Standing.objects.count()


def _row(workload_id: int, platform_id: int, scenario: str) -> Standing:
    row, _ = Standing.objects.get_or_create(
        workload_id=workload_id, platform_id=platform_id, defaults={"metric": HEADLINE[scenario]}
    )
    return row


def _runs(workload: Workload, platform: Platform) -> QuerySet[Run]:
    return Run.objects.filter(workload=workload, platform=platform, compared__isnull=True)


def _newest_trace(workload: Workload, platform: Platform) -> Trace | None:
    traces = Trace.objects.filter(
        run__workload=workload, run__platform=platform, rank=0, state=TraceState.READY
    )
    return traces.select_related("report").order_by("-run_id").first()


def _measure(row: Standing, workload: Workload, platform: Platform) -> None:
    """Fill in what the readings of the newest result's source say."""
    newest = (
        Result.objects.filter(run__workload=workload, run__platform=platform)
        .order_by("-run_id")
        .values_list("run__commit__repository__slug", flat=True)
    )
    row.sources = _sources(workload, platform)
    row.source = newest[0] or "" if row.sources else ""
    row.measured = sum(row.sources.values())
    found = history.points(readings(workload, platform, row.metric, row.source))
    row.points = len(found)
    if not found:
        row.measured_run = row.day0_run = row.best_run = None
        row.value = row.spread = row.n = row.day0_value = row.best_value = None
        row.recent, row.same_environment = [], True
        return
    first, last = found[0], found[-1]
    best = history.best(found, METRICS[row.metric].direction)
    row.day0_run_id, row.day0_value = first.run_id, first.value
    row.best_run_id, row.best_value = best.run_id, best.value
    row.measured_run_id, row.value, row.spread, row.n = last.run_id, last.value, last.spread, last.n
    row.same_environment = first.environment == last.environment
    row.recent = [point.value for point in found[-RECENT:]]


def _sources(workload: Workload, platform: Platform) -> dict[str, int]:
    """Measured runs by the repository of their commit; empty for runs without one."""
    slugs = Result.objects.filter(
        run__workload=workload, run__platform=platform, run__state=RunState.SUCCEEDED
    ).values_list("run__commit__repository__slug", flat=True)
    found: dict[str, int] = {}
    for slug in slugs:
        found[slug or ""] = found.get(slug or "", 0) + 1
    return found


def from_source(found: QuerySet[Rows], commit: str, source: str) -> QuerySet[Rows]:
    """Rows whose run is at a commit of the repository `source`, empty: of runs without a commit.

    `commit` is the path to the commit. Asked this way and not by equality, as SQLite, which
    has no statistics of its own accord, would else walk every run of every commit.
    """
    slug = Coalesce(f"{commit}__repository__slug", Value(""))
    return found.filter(Exact(slug, source))


def readings(
    workload: Workload, platform: Platform, metric: str, source: str
) -> list[history.Reading]:
    """Every launch of a history from one source."""
    found = MetricValue.objects.filter(
        name=metric,
        result__run__workload=workload,
        result__run__platform=platform,
        result__run__state=RunState.SUCCEEDED,
    )
    rows = from_source(found, "result__run__commit", source).values_list(
        "result__run_id",
        "result__run__commit__position",
        "value",
        "iqr",
        "n",
        "result__comparable_hash",
    )
    return [
        history.Reading(
            run_id=run_id,
            place=run_id if position is None else position,
            value=value,
            iqr=iqr,
            n=n,
            environment=environment,
        )
        for run_id, position, value, iqr, n, environment in rows
    ]
