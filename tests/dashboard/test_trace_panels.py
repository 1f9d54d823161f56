"""Panels of a trace: each under an address of its own, filtered, sorted, exported, or why not."""

from __future__ import annotations

import pytest
from django.test import Client

from dashboard.models import Trace, TraceState
from dashboard.panels.base import Panel
from dashboard.panels.registry import ORDER
from dashboard.panels.shapes import inputs
from profiler.analysis.bounds import RooflineReport
from profiler.analysis.report import (
    CollectiveRow,
    CriticalPath,
    DeviceTimeline,
    KernelRow,
    Launches,
    PathPart,
    Percentiles,
    ShapeRow,
    StepRow,
    StreamRow,
)
from profiler.trace.privacy import CLEAN_COPY, HOLDS
from tests.dashboard.reading import HTMX, csv_of, json_of, page_of
from tests.dashboard.reports import bound_of, quality_of
from tests.factories import make_ready_trace, make_report, make_trace

SPAN = DeviceTimeline(
    device="0",
    span_ns=1000,
    busy_ns=700,
    idle_ns=300,
    compute_ns=600,
    comm_ns=200,
    copy_ns=0,
    exposed_comm_ns=100,
    exposed_copy_ns=0,
    overlap_ratio=0.5,
)


def kernel(name: str, total_ns: int, count: int = 2) -> KernelRow:
    return KernelRow(
        name=name,
        device_class="compute",
        count=count,
        total_ns=total_ns,
        min_ns=1,
        max_ns=total_ns,
    )


KERNELS = [kernel("gemm<4, float>", 500), kernel("=add()", 300), kernel("Softmax", 200)]


@pytest.fixture
def trace(db: None) -> Trace:
    return make_ready_trace(report=make_report(timeline=[SPAN], kernels=KERNELS))


def address(trace: Trace, panel: str, query: str = "") -> str:
    return f"/traces/{trace.pk}/panels/{panel}/{query}"


def names(client: Client, trace: Trace, query: str = "") -> list[str]:
    table = client.get(address(trace, "kernels", query)).context["table"]
    return [row[0].shown for row in table.rows]


def panel_page(client: Client, panel: str, **report: object) -> str:
    trace = make_ready_trace(report=make_report(**report))
    return page_of(client, address(trace, panel))


# Tables


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["gemm<4, float>", "=add()", "Softmax"]),
        ("?kernels-sort=total", ["Softmax", "=add()", "gemm<4, float>"]),
        ("?kernels-sort=name", ["=add()", "gemm<4, float>", "Softmax"]),
        ("?kernels-q=SOFT", ["Softmax"]),
        ("?kernels-q=nothing", []),
        ("?sort=name", ["gemm<4, float>", "=add()", "Softmax"]),
        ("?kernels-page=99", ["gemm<4, float>", "=add()", "Softmax"]),
    ],
)
def test_it_filters_and_sorts_a_table(
    query: str, found: list[str], trace: Trace, viewer_client: Client
) -> None:
    assert names(viewer_client, trace, query) == found


@pytest.mark.parametrize("query", ["?kernels-sort=min_ns;drop", "?kernels-page=0"])
def test_it_shows_everything_when_the_filter_cannot_be(
    query: str, trace: Trace, viewer_client: Client
) -> None:
    page = page_of(viewer_client, address(trace, "kernels", query))
    assert "The filter cannot be used" in page
    assert len(names(viewer_client, trace, query)) == 3


def test_it_pages_a_table(viewer_client: Client) -> None:
    rows = [kernel(f"k{n:02}", 1000 - n) for n in range(26)]
    long = make_ready_trace(report=make_report(timeline=[SPAN], kernels=rows))
    assert names(viewer_client, long, "?kernels-page=2") == ["k25"]
    page = page_of(viewer_client, address(long, "kernels", "?op=mm"))
    assert 'href="?op=mm&amp;kernels-page=2"' in page


def test_it_leaves_out_columns_that_say_nothing(trace: Trace, viewer_client: Client) -> None:
    page = page_of(viewer_client, address(trace, "kernels"))
    assert "class is compute in every row; count is 2 in every row" in page
    assert ">Class</a>" not in page


def test_it_keeps_foreign_names_as_text(trace: Trace, viewer_client: Client) -> None:
    page = page_of(viewer_client, address(trace, "kernels"))
    assert "gemm&lt;4, float&gt;" in page


def test_it_exports_the_rows_of_the_filter_with_every_column(
    trace: Trace, viewer_client: Client
) -> None:
    query = "?kernels-sort=total&kernels-page=7"
    response = viewer_client.get(f"/traces/{trace.pk}/panels/kernels.csv{query}")
    rows = csv_of(response)
    assert [row["name"] for row in rows] == ["Softmax", "'=add()", "gemm<4, float>"]
    assert rows[0]["total_ns"] == "200"
    assert rows[0]["class"] == "compute"


def test_it_answers_htmx_with_the_panel_alone(trace: Trace, viewer_client: Client) -> None:
    response = viewer_client.get(address(trace, "kernels"), headers=HTMX)
    part = response.content.decode()
    assert "<html" not in part
    assert 'data-params="kernels-q kernels-sort kernels-page"' in part
    assert "HX-Request" in response.headers["Vary"]


@pytest.mark.parametrize("ending", ["kernel/", "KERNELS/", "nothing.csv", "../raw"])
def test_it_knows_no_other_panels(ending: str, trace: Trace, viewer_client: Client) -> None:
    assert viewer_client.get(f"/traces/{trace.pk}/panels/{ending}").status_code == 404


def test_it_has_no_panels_before_a_trace_is_read(viewer_client: Client) -> None:
    assert viewer_client.get(address(make_trace(), "kernels")).status_code == 404


def test_it_says_that_the_report_is_gone(viewer_client: Client) -> None:
    lost = make_trace(TraceState.READY)
    for ending in ("kernels/", "kernels.csv"):
        response = viewer_client.get(f"/traces/{lost.pk}/panels/{ending}")
        assert response.status_code == 410
        assert "The stored report cannot be read" in response.content.decode()


# The page


@pytest.mark.parametrize("panel", ORDER, ids=lambda panel: panel.name)
def test_it_loads_each_panel_or_says_why_not(
    panel: Panel, trace: Trace, viewer_client: Client
) -> None:
    page = page_of(viewer_client, f"/traces/{trace.pk}/")
    later = f'hx-get="{address(trace, panel.name)}"' in page
    part = page_of(viewer_client, address(trace, panel.name))
    assert later == ("This trace has nothing for it" not in part)
    assert later or panel.title in page.partition('id="absent"')[2]


def test_it_passes_the_address_on_to_its_panels(trace: Trace, viewer_client: Client) -> None:
    page = page_of(viewer_client, f"/traces/{trace.pk}/?kernels-sort=name")
    assert f'hx-get="{address(trace, "kernels", "?kernels-sort=name")}"' in page


# Single panels


def test_it_names_what_was_launched_before_the_recording(viewer_client: Client) -> None:
    launches = Launches(
        linked=3,
        unlinked=1,
        by_rule={"correlation": 2, "flow": 1},
        delay_ns=Percentiles(p50=1000, p90=2000, p99=3000),
        calls=4,
        before_window=1,
        before_window_ns=250,
        graph_calls=1,
        graph_events=2,
        graph_device_ns=500,
        queue_depth=Percentiles(p50=1, p90=2, p99=3),
        queue_depth_max=9,
        blocking_calls=2,
        blocking_ns=7000,
    )
    quality = quality_of(attributed_device_ns=750, unattributed_device_ns=250)
    page = panel_page(
        viewer_client, "launches", timeline=[SPAN], launches=launches, quality=quality
    )
    assert "250 ns (25.0 % of device time)" in page
    assert "500 ns (50.0 % of device time) is opaque" in page
    assert "median 1.00 µs, 90 % within 2.00 µs, 99 % within 3.00 µs" in page
    assert "median 1, 90 % within 2, 99 % within 3, at most 9" in page
    assert "2 calls, 7.00 µs" in page
    assert "flow arrow of the recording" in page


def test_it_shows_whether_device_time_is_conserved(viewer_client: Client) -> None:
    quality = quality_of(attributed_device_ns=600, unattributed_device_ns=400)
    page = panel_page(viewer_client, "quality", timeline=[SPAN], kernels=KERNELS, quality=quality)
    assert "600 ns attributed to operators + 400 ns not attributed = 1.00 µs" in page
    assert "equal to the sum of the kernel table, to the nanosecond" in page
    other = quality_of(attributed_device_ns=600, unattributed_device_ns=399)
    page = panel_page(viewer_client, "quality", timeline=[SPAN], kernels=KERNELS, quality=other)
    assert "the kernel table adds up to 1.00 µs: they differ" in page


def test_it_counts_what_was_done_to_the_data(viewer_client: Client) -> None:
    quality = quality_of(
        repaired=3,
        repaired_by={"missing duration": 3},
        dropped=1,
        dropped_by={"cut event": 1},
        warnings=["strange <b>", f"{HOLDS}1 x home folder{CLEAN_COPY}"],
    )
    page = panel_page(viewer_client, "quality", quality=quality)
    assert "<td>repaired</td>" in page
    assert "cut event" in page
    assert "strange &lt;b&gt;" in page
    assert "home folder" not in page


def test_it_names_the_denominator_of_overlap(viewer_client: Client) -> None:
    row = CollectiveRow(
        name="all_reduce",
        group_size=2,
        count=3,
        bytes=3000,
        total_ns=200,
        exposed_ns=100,
        algbw=15e9,
        busbw=15e9,
    )
    page = panel_page(viewer_client, "collectives", timeline=[SPAN], collectives=[row])
    assert "50.0 % of 200 ns of communication overlaps compute, 100 ns is exposed" in page
    assert "a share of the communication time, not of the span" in page
    assert "15.0 GB/s" in page


def test_it_splits_the_critical_path_by_class(viewer_client: Client) -> None:
    parts = [
        PathPart(kind="compute", name="gemm", total_ns=600, count=2),
        PathPart(kind="host", name="aten::mm", total_ns=300, count=1),
        PathPart(kind="compute", name="add", total_ns=100, count=1),
    ]
    path = CriticalPath(
        step="ProfilerStep#1", total_ns=1000, parts=parts, inferred_edges=1, recorded_edges=4
    )
    page = panel_page(viewer_client, "critical", critical_path=path)
    assert 'aria-label="Critical path: compute 70.0%, host 30.0%"' in page
    assert "4 links are recorded, 1 inferred from times" in page


def test_it_says_which_step_is_slow(viewer_client: Client) -> None:
    steps = [
        StepRow(name=f"ProfilerStep#{n}", start_ns=n, dur_ns=ns, phase="decode")
        for n, ns in enumerate((100, 100, 150))
    ]
    page = panel_page(viewer_client, "steps", steps=steps)
    assert "3 steps, median 100 ns; the slowest" in page
    assert "takes 150 ns (50.0 % over the median)" in page
    assert "decode: 3 steps, 350 ns" in page


def test_it_says_that_steps_are_inferred(viewer_client: Client) -> None:
    steps = [StepRow(name="repetition#0", start_ns=0, dur_ns=1, phase=None)]
    assert "<b>inferred</b>" in panel_page(viewer_client, "steps", steps=steps)


def test_it_shares_streams_out_over_the_span(viewer_client: Client) -> None:
    stream = StreamRow(device="0", stream="7", events=4, total_ns=800, union_ns=500)
    page = panel_page(viewer_client, "streams", timeline=[SPAN], streams=[stream])
    assert "50.0 %" in page
    assert ">300 ns<" in page


@pytest.mark.parametrize(
    ("shapes", "dtypes", "shown"),
    [
        ("[[2,3],[3,4]]", '["float","c10::BFloat16"]', "2×3 fp32, 3×4 bf16"),
        ("[[2],[],[]]", '["int","",""]', "2 int"),
        ("[[[2,3],[4]]]", '["TensorList"]', "[2×3, 4] tensorlist"),
        ("[[],[]]", '["",""]', "no tensor"),
        ("", "", "not recorded"),
        ("2,3;\r\n4", "float;\r\nScalar", "2,3; 4"),
        (str([[1]] * 10), "[]", "1, 1, 1, 1, 1, 1, 1, 1, and 2 more"),
        ("[" * 100_000, "", "[" * 100_000),
    ],
)
def test_it_writes_shapes_in_one_line(shapes: str, dtypes: str, shown: str) -> None:
    times = dict.fromkeys(("host_total_ns", "host_self_ns", "device_total_ns", "device_self_ns"), 0)
    row = ShapeRow(name="aten::mm", shapes=shapes, dtypes=dtypes, count=1, **times)
    assert inputs(row) == shown


# Files that are gone


@pytest.mark.parametrize("file", ["raw", "report.json", "flame.speedscope.json"])
def test_it_says_that_a_file_is_gone(file: str, viewer_client: Client) -> None:
    lost = make_trace(TraceState.READY)
    response = viewer_client.get(f"/traces/{lost.pk}/{file}")
    assert response.status_code == 410
    assert "is no longer there" in response.content.decode()


def test_it_shows_sums_as_those_of_a_step_and_exports_the_sums(
    viewer_client: Client, db: None
) -> None:
    steps = [StepRow(name=f"s{n}", start_ns=n, dur_ns=1, phase=None) for n in range(4)]
    trace = make_ready_trace(report=make_report(timeline=[SPAN], kernels=KERNELS, steps=steps))
    page = page_of(viewer_client, address(trace, "kernels"))
    assert "Total / step" in page and "125 ns" in page
    found = csv_of(viewer_client.get(f"/traces/{trace.pk}/panels/kernels.csv"))
    assert (found[0]["total_ns"], found[0]["count"]) == ("500", "2")


def test_it_exports_a_table_as_json(trace: Trace, viewer_client: Client) -> None:
    answer = viewer_client.get(f"/traces/{trace.pk}/panels/kernels.json?kernels-q=gemm")
    (found,) = json_of(answer)
    assert (found["name"], found["total_ns"]) == ("gemm<4, float>", 500)
    assert answer["Content-Disposition"] == f'attachment; filename="trace{trace.pk}_kernels.json"'


def test_it_holds_operators_with_shapes_against_the_roofline(
    viewer_client: Client, db: None
) -> None:
    times = {"host_total_ns": 9, "host_self_ns": 9, "device_total_ns": 0, "device_self_ns": 0}
    shapes = [
        ShapeRow(name=name, shapes="[[4, 4]]", dtypes='["float"]', count=1, **times)
        for name in ("aten::mm", "aten::topk")
    ]
    bound = bound_of(shapes="[[4, 4]]", dtypes='["float"]', flop_rate=1.4e10, byte_rate=2.1e10)
    roof = RooflineReport(time="host", peak=None, counted_share=1.0, shapes=[bound])
    trace = make_ready_trace(report=make_report(operator_shapes=shapes, roofline=roof))
    page = page_of(viewer_client, address(trace, "shapes"))
    assert "14.0 GFLOP/s" in page and "21.0 GB/s" in page and "50.0 %" in page
    assert "<td>uncounted</td>" in page
