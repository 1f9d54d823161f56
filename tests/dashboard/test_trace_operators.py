"""The operator table of a trace, and the files a trace hands out."""

from __future__ import annotations

import gzip
import json

import pytest
from django.test import Client

from dashboard.models import Operator, Trace, TraceState
from dashboard.queries.traces import OPERATORS_SIZE
from tests.dashboard.reading import HTMX, body_of, csv_of, page_of
from tests.factories import make_operator, make_ready_trace, make_trace

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
