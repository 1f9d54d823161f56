"""The roofline of a trace: chart, ceilings by how far they may be trusted, and the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from django.test import Client

from dashboard.figures.roofline import Point, points_of, roofline_figure
from dashboard.models import Trace
from dashboard.panels import roofline
from profiler.analysis.bounds import BoundRow, PeakFacts, RooflineReport, UncountedRow
from tests.dashboard.reading import csv_of, page_of
from tests.dashboard.reports import bound_of
from tests.factories import make_ready_trace, make_report

PEAK = PeakFacts(
    device="H100",
    label="datasheet",
    source="NVIDIA",
    as_of="2025-01-01",
    flops={"bfloat16": 989e12, "float32": 67e12},
    bandwidth=3.35e12,
)
HOSTILE = '<img src=x onerror="alert(1)">'


def report_of(*rows: BoundRow, peak: PeakFacts | None = PEAK) -> RooflineReport:
    missing = UncountedRow(name="aten::topk", calls=2, total_ns=90, share=0.1, reason="no formula")
    return RooflineReport(
        time="device", peak=peak, counted_share=0.9, operators=list(rows), uncounted=[missing]
    )


def series_of(points: Sequence[Point], peak: PeakFacts | None) -> list[dict[str, Any]]:
    data = roofline_figure(points, peak)["data"]
    assert isinstance(data, list)
    return data


def stored(found: RooflineReport | None) -> Trace:
    return make_ready_trace(report=make_report(roofline=found))


def page(client: Client, trace: Trace, query: str = "") -> str:
    return page_of(client, f"/traces/{trace.pk}/panels/roofline/{query}")


@pytest.fixture
def trace(db: None) -> Trace:
    mm = bound_of(dtype="bfloat16")
    copy = bound_of("aten::copy_", flops=0, flop_rate=None, bound="memory", total_ns=100)
    return stored(report_of(mm, copy))


def test_it_says_what_its_ceilings_rest_on(trace: Trace, viewer_client: Client) -> None:
    said = page(viewer_client, trace)
    assert "3.35 TB/s of memory, 989 TFLOP/s bfloat16, 67.0 TFLOP/s float32" in said
    assert "<b>datasheet</b>, NVIDIA, 2025-01-01" in said
    assert "90.0 % of device time has a formula" in said


def test_it_takes_no_percentage_from_what_nobody_checked(viewer_client: Client, db: None) -> None:
    peak = PeakFacts(device="910B", label="unverified", flops={"bfloat16": 3e14}, bandwidth=4e11)
    said = page(viewer_client, stored(report_of(bound_of(efficiency=None), peak=peak)))
    assert "no percentage is taken from them" in said


def test_it_says_when_no_peak_is_known(viewer_client: Client, db: None) -> None:
    said = page(viewer_client, stored(report_of(bound_of(efficiency=None), peak=None)))
    assert "no ceiling and no percentage" in said


def test_it_lists_what_has_no_formula(trace: Trace, viewer_client: Client) -> None:
    rows = csv_of(viewer_client.get(f"/traces/{trace.pk}/panels/roofline.csv"))
    assert [row["name"] for row in rows] == ["aten::mm", "aten::copy_", "aten::topk"]
    assert rows[2]["bound"] == "uncounted: no formula"
    assert rows[2]["share"] == "0.1"
    assert rows[1]["flops"] == ""


def test_its_rows_open_the_operator(trace: Trace, viewer_client: Client) -> None:
    said = page(viewer_client, trace)
    assert '<a href="/operators/?name=aten%3A%3Amm">aten::mm</a>' in said
    assert "1 operators compute nothing" in said


@pytest.mark.parametrize(
    ("sort", "first"), [("reached", "aten::mm"), ("name", "aten::copy_"), ("-share", "aten::mm")]
)
def test_it_sorts(sort: str, first: str, trace: Trace, viewer_client: Client) -> None:
    address = f"/traces/{trace.pk}/panels/roofline/?roofline-sort={sort}"
    assert viewer_client.get(address).context["table"].rows[0][0].shown == first


@pytest.mark.parametrize(
    ("found", "said"),
    [(None, "read it again"), (report_of(), "record_shapes=True")],
    ids=["read before", "no shapes"],
)
def test_it_says_why_there_is_none(
    found: RooflineReport | None, said: str, viewer_client: Client, db: None
) -> None:
    assert said in page(viewer_client, stored(found))


def test_it_draws_only_what_computes() -> None:
    rows = [bound_of(), bound_of(flops=0), bound_of(bytes=None), bound_of(flop_rate=None)]
    (point,) = points_of(rows, ["/a", "/b", "/c", "/d"])
    assert (point.intensity, point.address) == (1000.0, "/a")


def test_it_draws_ceilings_that_meet() -> None:
    points = points_of([bound_of(dtype="bfloat16")], ["/a"])
    memory, compute, series = series_of(points, PEAK)
    assert memory["name"] == "memory 3.35 TB/s (datasheet)"
    assert memory["y"][1] == pytest.approx(compute["y"][0])
    assert memory["x"][1] == pytest.approx(compute["x"][0])
    assert series["customdata"] == ["/a"]
    assert compute["line"]["dash"] == "solid"


def test_an_unverified_ceiling_is_dashed() -> None:
    peak = PeakFacts(device="x", label="unverified", bandwidth=1e12)
    ceiling, _ = series_of(points_of([bound_of()], ["/a"]), peak)
    assert ceiling["line"]["dash"] == "dash"
    assert "unverified" in ceiling["name"]


def test_it_draws_larger_what_takes_longer() -> None:
    rows = [bound_of(share=0.01), bound_of(share=0.8)]
    (series,) = series_of(points_of(rows, ["/a", "/b"]), None)
    assert series["marker"]["size"][0] < series["marker"]["size"][1]


def test_it_shows_hostile_names_as_text(viewer_client: Client, db: None) -> None:
    peak = PeakFacts(device=HOSTILE, label="measured", source=HOSTILE, flops={HOSTILE: 1e12})
    said = page(viewer_client, stored(report_of(bound_of(HOSTILE, dtype=HOSTILE), peak=peak)))
    assert "<img" not in said
    assert "&lt;img" in said


def test_it_draws_the_largest_and_says_so(
    trace: Trace, viewer_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roofline, "DRAWN", 0)
    assert "nothing to draw" in page(viewer_client, trace)
