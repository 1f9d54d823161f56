"""Standings stay true: of queued, measured and read runs, in the order of commits."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps

from dashboard.models import Run, RunState, Standing, Trace
from dashboard.services import history
from profiler.analysis.bounds import BoundRow, RooflineReport
from profiler.analysis.report import FindingRow, Report
from tests.dashboard.histories import commits, measured, standing, traced
from tests.factories import make_platform, make_ready_trace, make_report, make_result, make_run

pytestmark = pytest.mark.django_db


def test_a_queued_run_is_the_newest_and_nothing_is_measured() -> None:
    run = make_run(RunState.QUEUED)
    row = standing()
    assert (row.newest_run, row.measured, row.value, row.recent) == (run, 0, None, [])


def test_it_follows_the_commits_and_not_the_order_of_the_runs() -> None:
    first, second, third = commits(3)
    newest = measured(6e6, third)
    middle = measured(9e6, second)
    oldest = measured(8e6, first)
    row = standing()
    assert (row.day0_run, row.day0_value) == (oldest, 8e6)
    assert (row.measured_run, row.value) == (newest, 6e6)
    assert (row.best_run, row.best_value) == (newest, 6e6)
    assert row.recent == [8e6, 9e6, 6e6]
    assert (row.points, row.measured, row.newest_run) == (3, 3, oldest)
    assert middle.pk not in (row.day0_run_id, row.best_run_id)


def test_launches_of_one_commit_are_one_point() -> None:
    first, second = commits(2)
    measured(10e6, first)
    for value in (6e6, 8e6, 7e6):
        measured(value, second)
    row = standing()
    assert (row.points, row.measured, row.value, row.n) == (2, 4, 7e6, 3)
    assert row.spread == 0.5e6


def test_the_source_of_the_newest_result_counts() -> None:
    (first,) = commits(1)
    measured(5e6, first)
    measured(9e6)
    row = standing()
    assert (row.source, row.sources, row.value) == ("", {"models": 1, "": 1}, 9e6)
    assert row.points == 1


def test_another_environment_than_on_day0_is_told() -> None:
    first, second = commits(2)
    measured(5e6, first)
    assert standing().same_environment
    measured(5e6, second, mark="b")
    assert not standing().same_environment


def test_a_failed_run_leaves_what_was_measured() -> None:
    measured(5e6)
    failed = make_run(RunState.FAILED)
    row = standing()
    assert (row.newest_run, row.value) == (failed, 5e6)


def test_workloads_and_platforms_stay_apart() -> None:
    measured(5e6)
    measured(6e6, batch=2)
    make_result(make_run(RunState.SUCCEEDED, platform=make_platform("h100")), value=1e6)
    assert set(Standing.objects.values_list("value", flat=True)) == {1e6, 5e6, 6e6}


def report(efficiency: float | None = 0.5) -> Report:
    """Two counted operators, one of them without a trusted peak when `efficiency` is None."""

    def row(name: str, total_ns: int, least_ns: int | None, reached: float | None) -> BoundRow:
        return BoundRow(
            name=name,
            calls=1,
            total_ns=total_ns,
            share=total_ns / 4000,
            flops=1,
            bytes=1,
            flop_rate=1.0,
            byte_rate=1.0,
            bound="compute",
            bound_ns=least_ns,
            efficiency=reached,
        )

    finding = FindingRow(
        kind="host_wait",
        title="The device waits\0 for the host",
        subject="aten::item",
        recoverable_ns_per_step=1_740_000,
        share=0.2,
        evidence={},
        advice="Move it.",
    )
    rows = [row("aten::mm", 1000, 500, efficiency), row("aten::bmm", 2000, None, None)]
    roof = RooflineReport(time="host", peak=None, counted_share=0.75, operators=rows)
    return make_report(roofline=roof, findings=[finding])


def test_a_trace_tells_what_is_left() -> None:
    run = measured(5e6)
    trace = traced(run, 1000)
    history.note_trace(trace, report())
    row = standing()
    assert (row.trace, row.roofline, row.counted) == (trace, 0.5, 0.25)
    assert row.findings == [
        {
            "title": "The device waits for the host",
            "kind": "host_wait",
            "subject": "aten::item",
            "gain_ns": 1_740_000,
            "share": 0.2,
        }
    ]


def test_without_a_trusted_peak_the_roofline_is_not_known() -> None:
    history.note_trace(traced(measured(5e6), 1000), report(efficiency=None))
    assert (standing().roofline, standing().counted) == (None, None)


def test_a_trace_of_an_earlier_run_changes_nothing() -> None:
    early, late = measured(5e6), measured(5e6)
    history.note_trace(traced(late, 1000), report())
    history.note_trace(traced(early, 1000), report(efficiency=None))
    assert standing().roofline == 0.5


def test_refreshing_again_changes_nothing_and_reads_the_stored_report() -> None:
    run = measured(5e6)
    make_ready_trace(run=run, report=report())
    history.refresh(run.workload, run.platform)
    before = Standing.objects.values().get()
    assert before["roofline"] == 0.5
    assert history.refresh_all() == 1
    assert Standing.objects.values().get() == before


def test_a_lost_report_leaves_it_unknown() -> None:
    run = measured(5e6)
    traced(run, 1000)
    history.refresh(run.workload, run.platform)
    assert (standing().roofline, standing().findings) == (None, [])


def test_removed_runs_take_the_row_with_them() -> None:
    run = measured(5e6)
    Run.objects.filter(pk=run.pk).delete()
    assert history.refresh_all() == 0
    assert not Trace.objects.exists()


def test_the_migration_fills_in_what_the_service_would() -> None:
    first, second = commits(2)
    for value in (10e6, 12e6, 11e6):
        measured(value, first)
    measured(8e6, second, mark="b")
    measured(9e6, batch=8)
    measured(7e6, scenario="prefill", iqr=None)
    make_run(RunState.FAILED)
    expected = list(Standing.objects.order_by("workload").values(*_FILLED))
    Standing.objects.all().delete()
    import_module("dashboard.migrations.0015_standings").fill(apps, None)
    assert list(Standing.objects.order_by("workload").values(*_FILLED)) == expected


_FILLED = [
    field.attname
    for field in Standing._meta.concrete_fields
    if field.name not in {"id", "trace", "roofline", "counted", "findings"}
]
