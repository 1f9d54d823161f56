"""Every shared malformed file: what comes out, or the one sentence that refuses it."""

from __future__ import annotations

import pytest

from profiler.analysis.ingest import ingest
from profiler.analysis.report import Report
from profiler.errors import TraceError
from tests.profiler.trace.shared import MALFORMED, needs_traces

pytestmark = needs_traces

BASE_EVENTS = 220


def report_of(number: str) -> Report:
    (path,) = MALFORMED.glob(f"{number}-*")
    return ingest([path], None)


# One event more than the base each; the defect is in that event.
@pytest.mark.parametrize(
    ("number", "repair"),
    [
        ("03", "unescaped backslash"),
        ("04", "unescaped quote"),
        ("05", "not-a-number value"),
        ("06", "not-a-number value"),
        ("09", "control character or invalid text"),
        ("21", "control character or invalid text"),
    ],
)
def test_it_repairs_the_one_damaged_event(number: str, repair: str) -> None:
    report = report_of(number)
    assert report.trace.events == BASE_EVENTS + 1
    assert report.quality.repaired_by == {repair: 1}
    assert report.quality.dropped == 0


@pytest.mark.parametrize("number", ["00", "08", "10", "13", "18", "19", "20"])
def test_it_loads_odd_but_complete_files_like_the_base(number: str) -> None:
    report, base = report_of(number), report_of("00")
    assert report.trace.events == BASE_EVENTS
    assert report.kernels == base.kernels
    assert report.operators == base.operators
    assert report.quality.dropped == 0


def test_it_warns_about_a_damaged_header_only() -> None:
    assert report_of("00").quality.warnings == []
    assert any("around the events" in text for text in report_of("13").quality.warnings)


def test_it_keeps_what_stands_before_a_cut() -> None:
    report = report_of("01")
    assert report.trace.events == 125
    assert report.quality.dropped_by == {"unreadable event": 1}


def test_it_keeps_what_inflates_of_a_cut_gzip_file() -> None:
    report = report_of("02")
    assert report.trace.events == 103
    assert any("cut off" in text for text in report.quality.warnings)


def test_it_leaves_a_kernel_at_time_zero_out_of_the_span() -> None:
    report = report_of("07")
    assert report.quality.dropped_by == {"start time zero": 1}
    assert report.span_ns == report_of("00").span_ns


def test_it_keeps_self_times_right_when_a_child_outlives_its_parent() -> None:
    report = report_of("11")
    assert list(report.quality.repaired_by) == ["operator outlives the one around it"]
    assert all(row.host_self_ns >= 0 for row in report.operators)
    assert all(row.union_ns == row.operators_self_ns for row in report.threads)


def test_it_points_at_one_kernel_longer_than_all_others() -> None:
    assert any("suspicious duration" in text for text in report_of("12").quality.warnings)


def test_it_drops_a_negative_duration() -> None:
    assert report_of("14").quality.dropped_by == {"negative duration": 1}


@pytest.mark.parametrize(
    ("number", "sentence"),
    [("15", "is empty"), ("16", "has no traceEvents"), ("17", "has no events")],
)
def test_it_refuses_files_without_events_in_one_sentence(number: str, sentence: str) -> None:
    with pytest.raises(TraceError, match=sentence) as caught:
        report_of(number)
    assert "\n" not in caught.value.line()


def test_it_keeps_the_readable_events_of_the_old_exporter() -> None:
    report = report_of("22")
    assert report.trace.events == 2
    assert report.quality.dropped == 1
    assert [row.name for row in report.operators] == ["add"]
