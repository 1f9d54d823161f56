"""The flame graph of a trace: its panel, its page with the frames as a table, and its data."""

from __future__ import annotations

import gzip
import io
import json

import pytest
from django.http import FileResponse
from django.test import Client, RequestFactory

from dashboard.models import Trace
from dashboard.panels import flame
from dashboard.views.downloads import gzipped_json
from profiler.analysis.flame_document import CATEGORIES, FlameGraph, Fold, View, pack
from tests.dashboard.reading import HTMX, body_of, csv_of, page_of
from tests.dashboard.reports import quality_of
from tests.factories import make_ready_trace, make_report, store_artifact

MODULE, OPERATOR, COMPUTE = (CATEGORIES.index(name) for name in ("module", "operator", "compute"))
HOSTILE = '<img src=x onerror=alert(1)>"&\u202e'


def view(kind: str = "device", *, name: int = 2) -> View:
    return View(
        kind=kind,
        total_ns=1000,
        parent=[-1, 0, 1],
        name=[0, 1, name],
        category=[MODULE, OPERATOR, COMPUTE],
        self_ns=[0, 0, 900],
        calls=[1, 2, 4],
        folded=[Fold(at=0, frames=7, total_ns=100)],
    )


def graph(*views: View) -> FlameGraph:
    names = ["net.fc", "aten::mm", "gemm<4, float>", HOSTILE]
    return FlameGraph(steps=2, names=names, views=list(views or (view(), view("host"))))


def stored(found: FlameGraph, **quality: int) -> Trace:
    trace = make_ready_trace(report=make_report(quality=quality_of(**quality)))
    Trace.objects.filter(pk=trace.pk).update(graph=store_artifact(pack(found)))
    trace.refresh_from_db()
    return trace


@pytest.fixture
def trace(db: None) -> Trace:
    return stored(graph(), attributed_device_ns=750, unattributed_device_ns=250)


def rows(client: Client, trace: Trace, query: str = "") -> list[tuple[str, ...]]:
    table = client.get(f"/traces/{trace.pk}/flame/{query}").context["table"]
    return [tuple(cell.shown for cell in row) for row in table.rows]


def test_it_says_what_could_not_be_attributed(trace: Trace, viewer_client: Client) -> None:
    for address in (f"/traces/{trace.pk}/", f"/traces/{trace.pk}/flame/"):
        page = page_of(viewer_client, address)
        assert "25.0 % of device time" in page
        assert "could not be attributed to an operator" in page
        assert f'data-flamegraph="/traces/{trace.pk}/flame.json"' in page


def test_it_says_that_everything_was_attributed(viewer_client: Client, db: None) -> None:
    page = page_of(viewer_client, f"/traces/{stored(graph(), attributed_device_ns=5).pk}/")
    assert "0.00 % of device time" in page


def test_it_lists_the_frames_without_scripts(trace: Trace, viewer_client: Client) -> None:
    first = rows(viewer_client, trace)[0]
    assert first == (
        "gemm<4, float>",
        "net.fc › aten::mm",
        "compute",
        "4",
        "900 ns",
        "90.0 %",
        "900 ns",
    )
    assert rows(viewer_client, trace)[1][0] == "net.fc"
    assert rows(viewer_client, trace)[1][-1] == "1.00 µs"


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("?frames-sort=frame", "aten::mm"),
        ("?frames-q=NET", "net.fc"),
        ("?flame=host&frames-sort=-calls", "gemm<4, float>"),
        ("?flame=nonsense", "gemm<4, float>"),
    ],
)
def test_it_sorts_and_filters_the_frames(
    query: str, first: str, trace: Trace, viewer_client: Client
) -> None:
    assert rows(viewer_client, trace, query)[0][0] == first


def test_it_marks_the_view_that_is_shown(trace: Trace, viewer_client: Client) -> None:
    page = page_of(viewer_client, f"/traces/{trace.pk}/flame/?flame=host")
    assert 'data-flame-kind="host" data-reload aria-current="true"' in page
    assert page.count('data-reload aria-current="true"') == 1


def test_it_says_when_a_view_has_nothing(trace: Trace, viewer_client: Client) -> None:
    page = page_of(viewer_client, f"/traces/{trace.pk}/flame/?flame=idle")
    assert "This trace has nothing for this view" in page
    assert viewer_client.get(f"/traces/{trace.pk}/flame.csv?flame=idle").status_code == 404


def test_it_shows_names_as_text(viewer_client: Client, db: None) -> None:
    page = page_of(viewer_client, f"/traces/{stored(graph(view(name=3))).pk}/flame/")
    assert "&lt;img src=x onerror=alert(1)&gt;&quot;&amp;\\u202e" in page
    assert "<img" not in page


def test_it_answers_htmx_with_the_table_alone(trace: Trace, viewer_client: Client) -> None:
    response = viewer_client.get(f"/traces/{trace.pk}/flame/", headers=HTMX)
    text = response.content.decode()
    assert 'id="frames"' in text
    assert "<html" not in text and "data-flamegraph" not in text
    assert "HX-Request" in response["Vary"]


def test_it_exports_the_frames(trace: Trace, viewer_client: Client) -> None:
    found = csv_of(viewer_client.get(f"/traces/{trace.pk}/flame.csv?frames-q=gemm"))
    assert [row["self_ns"] for row in found] == ["900"]
    assert found[0]["inside"] == "net.fc › aten::mm"


def test_it_lists_only_the_largest_frames(
    trace: Trace, viewer_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flame, "TABLE_FRAMES", 2)
    flame.frame_rows.cache_clear()
    assert len(rows(viewer_client, trace)) == 2
    page = page_of(viewer_client, f"/traces/{trace.pk}/flame/")
    assert "The 2 with the most self time of 3 frames" in page
    flame.frame_rows.cache_clear()


def test_it_hands_out_the_data_packed_or_not(trace: Trace, viewer_client: Client) -> None:
    address = f"/traces/{trace.pk}/flame.json"
    packed = viewer_client.get(address, headers={"Accept-Encoding": "gzip"})
    plain = body_of(viewer_client.get(address))
    assert packed["Content-Encoding"] == "gzip"
    assert gzip.decompress(body_of(packed)) == plain
    assert json.loads(plain)["views"][0]["self_ns"] == [0, 0, 900]


def test_a_server_cannot_send_the_packed_bytes_as_if_unpacked(trace: Trace) -> None:
    assert trace.graph is not None
    response = gzipped_json(RequestFactory().get("/"), trace.graph)
    assert isinstance(response, FileResponse)
    assert response.file_to_stream is not None
    with pytest.raises(io.UnsupportedOperation):
        response.file_to_stream.fileno()
    response.close()


def test_it_sends_the_data_once(trace: Trace, viewer_client: Client) -> None:
    address = f"/traces/{trace.pk}/flame.json"
    first = viewer_client.get(address)
    first.close()
    assert first["Cache-Control"] == "private, no-cache"
    again = viewer_client.get(address, headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = viewer_client.get(address, headers={"If-None-Match": '"else"'})
    assert other.status_code == 200
    other.close()


def test_it_asks_to_read_older_traces_again(viewer_client: Client, db: None) -> None:
    trace = make_ready_trace()
    for address in (f"/traces/{trace.pk}/", f"/traces/{trace.pk}/flame/"):
        page = page_of(viewer_client, address)
        assert "Read it again to get it" in page
        assert "data-flamegraph" not in page
    assert viewer_client.get(f"/traces/{trace.pk}/flame.json").status_code == 404
    assert viewer_client.get(f"/traces/{trace.pk}/flame.csv").status_code == 404


def test_it_says_when_the_stored_graph_is_damaged(viewer_client: Client, db: None) -> None:
    trace = make_ready_trace()
    Trace.objects.filter(pk=trace.pk).update(graph=store_artifact(b"no gzip"))
    response = viewer_client.get(f"/traces/{trace.pk}/flame/")
    assert response.status_code == 410
    assert "damaged" in response.content.decode()


def test_it_asks_the_database_little(
    trace: Trace, viewer_client: Client, django_assert_max_num_queries: pytest.FixtureRequest
) -> None:
    with django_assert_max_num_queries(6):  # type: ignore[operator]
        viewer_client.get(f"/traces/{trace.pk}/flame/")
