"""The operator table of a trace, and the files a trace hands out."""

from __future__ import annotations

import gzip
import json

import pytest
from django.test import Client

from dashboard.models import Operator, RunState, Trace, TraceState
from dashboard.queries.traces import OPERATORS_SIZE
from profiler.analysis.bounds import BoundRow, RooflineReport, UncountedRow
from profiler.analysis.report import OperatorRow, StepRow
from tests.dashboard.reading import HTMX, body_of, csv_of, json_of, page_of
from tests.dashboard.reports import bound_of
from tests.factories import (
    make_note,
    make_operator,
    make_platform,
    make_ready_trace,
    make_report,
    make_run,
    make_trace,
)

# The operator table


def operators(client: Client, trace: Trace, query: str = "") -> list[str]:
    page = client.get(f"/traces/{trace.pk}/operators/{query}").context["operators"].page
    return [row.name for row in page.rows]


@pytest.fixture
def three(db: None) -> Trace:
    trace = make_trace(TraceState.READY)
    make_operator(trace, "aten::mm", count=1, host_self_ns=300, host_total_ns=300)
    make_operator(trace, "aten::linear", count=9, host_self_ns=100, host_total_ns=900)
    make_operator(trace, "ns::foo<4, float>", count=4, host_self_ns=200, host_total_ns=200)
    return trace


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("", "aten::mm"),
        ("?sort=-total", "aten::linear"),
        ("?sort=self", "aten::linear"),
        ("?sort=-calls", "aten::linear"),
        ("?sort=-name", "ns::foo<4, float>"),
        ("?op=FOO", "ns::foo<4, float>"),
        ("?op=aten&sort=-calls", "aten::linear"),
        ("?sort=id;drop", "aten::mm"),
        ("?page=0", "aten::mm"),
        ("?page=99", "aten::mm"),
    ],
)
def test_it_sorts_and_filters_operators(
    query: str, first: str, three: Trace, viewer_client: Client
) -> None:
    assert operators(viewer_client, three, query)[0] == first


def test_it_shares_self_time_out_over_all_operators(three: Trace, viewer_client: Client) -> None:
    page = viewer_client.get(f"/traces/{three.pk}/operators/?op=mm").context["operators"].page
    assert page.rows[0].share == pytest.approx(0.5)
    assert page.host_self_ns == 600


def test_it_ranks_by_device_time_where_there_is_any(three: Trace, viewer_client: Client) -> None:
    Operator.objects.filter(name="aten::linear").update(device_self_ns=50, device_total_ns=80)
    assert operators(viewer_client, three)[0] == "aten::linear"
    assert "Device self" in page_of(viewer_client, f"/traces/{three.pk}/operators/")


def test_it_pages_operators(viewer_client: Client) -> None:
    trace = make_trace(TraceState.READY)
    for number in range(OPERATORS_SIZE + 1):
        make_operator(trace, f"op{number:03}", host_self_ns=1000 - number)
    assert operators(viewer_client, trace, "?page=2") == [f"op{OPERATORS_SIZE:03}"]


def test_it_keeps_names_with_brackets_as_text(three: Trace, viewer_client: Client) -> None:
    page = page_of(viewer_client, f"/traces/{three.pk}/operators/")
    assert "ns::foo&lt;4, float&gt;" in page


def test_it_renews_the_table_alone_for_htmx(three: Trace, viewer_client: Client) -> None:
    response = viewer_client.get(f"/traces/{three.pk}/operators/?sort=-total", headers=HTMX)
    part = response.content.decode()
    assert "<html" not in part
    assert f'data-panel="/traces/{three.pk}/operators/"' in part
    assert 'aria-sort="descending"' in part


def test_it_says_that_no_operator_has_the_name(three: Trace, viewer_client: Client) -> None:
    page = page_of(viewer_client, f"/traces/{three.pk}/operators/?op=%3Cb%3E")
    assert "No operator has “&lt;b&gt;” in its name" in page


def test_it_exports_operators_in_the_order_of_the_page(three: Trace, viewer_client: Client) -> None:
    make_operator(three, "=cmd()", host_self_ns=1)
    response = viewer_client.get(f"/traces/{three.pk}/operators.csv?sort=-calls")
    names = [row["operator"] for row in csv_of(response)]
    assert names == ["'=cmd()", "aten::linear", "ns::foo<4, float>", "aten::mm"]


def test_it_has_no_operators_before_a_trace_is_read(viewer_client: Client) -> None:
    trace = make_trace()
    for name in ("operators/", "operators.csv", "flame.speedscope.json", "report.json"):
        assert viewer_client.get(f"/traces/{trace.pk}/{name}").status_code == 404


# Files


def test_it_passes_the_flame_graph_on_as_it_is_packed(viewer_client: Client) -> None:
    address = f"/traces/{make_ready_trace().pk}/flame.speedscope.json"
    packed = viewer_client.get(address, headers={"Accept-Encoding": "gzip, br"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert packed.headers["Content-Type"] == "application/json"
    plain = viewer_client.get(address)
    assert "Content-Encoding" not in plain.headers
    assert json.loads(gzip.decompress(body_of(packed))) == json.loads(body_of(plain))
    assert "Accept-Encoding" in plain.headers["Vary"]


def test_it_hands_the_raw_file_out_only_to_be_saved(viewer_client: Client) -> None:
    trace = make_ready_trace()
    Trace.objects.filter(pk=trace.pk).update(name='a".html\r\nX: y')
    response = viewer_client.get(f"/traces/{trace.pk}/raw")
    assert gzip.decompress(body_of(response)) == b'{"traceEvents": []}'
    assert response.headers["Content-Type"] == "application/octet-stream"
    assert response.headers["Content-Disposition"].startswith("attachment;")
    assert "\n" not in response.headers["Content-Disposition"]
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Content-Security-Policy"].startswith("sandbox")


def test_it_hands_out_the_report(viewer_client: Client) -> None:
    trace = make_ready_trace()
    response = viewer_client.get(f"/traces/{trace.pk}/report.json")
    assert json.loads(body_of(response))["schema"] == 1


def test_it_reads_a_trace_again(operator_client: Client) -> None:
    trace = make_trace(TraceState.REJECTED)
    operator_client.post(f"/traces/{trace.pk}/again/")
    trace.refresh_from_db()
    assert trace.state == TraceState.PENDING


def test_it_does_not_read_a_trace_twice_at_once(operator_client: Client) -> None:
    trace = make_trace()
    page = operator_client.post(f"/traces/{trace.pk}/again/", follow=True).content.decode()
    assert "is being read already" in page


# Against the roofline, per step, and over time


def with_roofline(*bounds: BoundRow, steps: int = 0) -> Trace:
    names = ("aten::mm", "aten::topk")
    times = {"host_total_ns": 3_000, "device_total_ns": 0, "device_self_ns": 0}
    rows = [
        OperatorRow(name=name, canonical=name, count=8, host_self_ns=3_000, **times)
        for name in names
    ]
    missing = UncountedRow(name="aten::topk", calls=8, total_ns=1, share=0.1, reason="no formula")
    roof = RooflineReport(
        time="host", peak=None, counted_share=0.9, operators=list(bounds), uncounted=[missing]
    )
    marks = [StepRow(name=f"s{n}", start_ns=n, dur_ns=1, phase=None) for n in range(steps)]
    return make_ready_trace(report=make_report(operators=rows, roofline=roof, steps=marks))


def test_it_holds_operators_against_the_roofline(viewer_client: Client, db: None) -> None:
    page = page_of(viewer_client, f"/traces/{with_roofline(bound_of()).pk}/operators/")
    assert "412 TFLOP/s" in page and "<td>compute</td>" in page and "50.0 %" in page
    assert "uncounted: no formula" in page


def test_a_memory_bound_operator_says_its_bandwidth(viewer_client: Client, db: None) -> None:
    trace = with_roofline(bound_of(bound="memory", efficiency=None))
    page = page_of(viewer_client, f"/traces/{trace.pk}/operators/")
    assert "2.02 TB/s" in page and "412" not in page


def test_without_a_peak_it_says_so_instead_of_an_empty_column(
    viewer_client: Client, db: None
) -> None:
    known = page_of(viewer_client, f"/traces/{with_roofline(bound_of()).pk}/operators/")
    assert "Of roofline" in known and "No peak is known" not in known
    trace = with_roofline(bound_of(efficiency=None))
    page = page_of(viewer_client, f"/traces/{trace.pk}/operators/")
    assert "No peak is known to hold these against." in page and "Of roofline" not in page


def test_it_says_nothing_of_a_roofline_it_does_not_know(viewer_client: Client, db: None) -> None:
    page = page_of(viewer_client, f"/traces/{make_ready_trace().pk}/operators/")
    assert "Of roofline" not in page and "Trend" not in page and ">Notes</th>" not in page


def test_it_shows_times_of_a_step(viewer_client: Client, db: None) -> None:
    page = page_of(viewer_client, f"/traces/{with_roofline(steps=2).pk}/operators/")
    assert "divided by its 2 steps" in page
    assert '<td class="num" title="3,000 ns in all">1.50 µs</td>' in page
    assert '<td class="num" title="8 in all">4</td>' in page


def test_it_shows_how_an_operator_did_before(viewer_client: Client, db: None) -> None:
    for _ in range(3):
        trace = make_ready_trace(run=make_run(RunState.SUCCEEDED))
    page = page_of(viewer_client, f"/traces/{trace.pk}/operators/")
    assert page.count('class="spark"') == 1
    assert 'href="/operators/?name=aten%3A%3Amm"' in page


def test_it_counts_the_notes_of_an_operator_on_its_platform(
    viewer_client: Client, db: None
) -> None:
    trace = make_ready_trace(run=make_run(RunState.SUCCEEDED))
    make_note()
    make_note(platform=make_platform("elsewhere"))
    page = page_of(viewer_client, f"/traces/{trace.pk}/operators/")
    assert '<a href="/operators/?name=aten%3A%3Amm#notes">1</a>' in page


def test_it_exports_operators_as_json(three: Trace, viewer_client: Client) -> None:
    answer = viewer_client.get(f"/traces/{three.pk}/operators.json?op=aten&sort=-calls")
    found = json_of(answer)
    assert [row["operator"] for row in found] == ["aten::linear", "aten::mm"]
    assert found[0]["calls"] == 9
