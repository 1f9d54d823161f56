"""Operators across traces: the list, and the page of one with its history and notes."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from django.test import Client

from dashboard.models import Run, RunState, Trace, TraceState
from dashboard.queries.operators import operator_history, trends
from tests.dashboard.reading import page_of
from tests.factories import make_note, make_operator, make_run, make_spec, make_trace

pytestmark = pytest.mark.django_db


def reading(run: Run | None, self_ns: int, *, steps: int = 2, name: str = "aten::mm") -> Trace:
    trace = make_trace(TraceState.READY, run=run, steps=steps)
    make_operator(trace, name, canonical="aten::mm", host_self_ns=self_ns)
    make_operator(trace, "aten::add", host_self_ns=1000)
    return trace


def run(**fields: object) -> Run:
    return make_run(RunState.SUCCEEDED, spec=make_spec(**fields))


def test_it_gathers_runs_of_a_workload_oldest_first() -> None:
    for self_ns in (1000, 3000, 1500):
        reading(run(), self_ns)
    reading(run(batch=4), 500)
    series = operator_history("aten::mm").series
    assert sorted(one.values for one in series) == [[250.0], [500.0, 1500.0, 750.0]]
    longest = max(series, key=lambda one: len(one.values))
    assert longest.change == pytest.approx(-0.5)
    assert longest.last.share == pytest.approx(0.6)


def test_it_gathers_the_names_of_other_vendors() -> None:
    reading(None, 1000, name="npu_mm")
    reading(None, 1000)
    history = operator_history("aten::mm")
    assert history.names == ("npu_mm",)
    assert [one.trace.pk for one in history.uploads] == sorted(
        (one.trace.pk for one in history.uploads), reverse=True
    )


def test_it_speaks_of_device_time_where_there_is_any() -> None:
    trace = make_trace(TraceState.READY, steps=0)
    make_operator(trace, device_self_ns=300)
    make_operator(trace, "aten::add", device_self_ns=100)
    (found,) = operator_history("aten::mm").uploads
    assert (found.on_device, found.self_ns, found.per_step) == (True, 300.0, False)
    assert found.share == pytest.approx(0.75)


def test_it_shows_history_and_notes(viewer_client: Client) -> None:
    for self_ns in (1000, 3000):
        reading(run(), self_ns)
    make_note("Pad to 64.")
    page = page_of(viewer_client, "/operators/?name=aten%3A%3Amm")
    assert "Pad to 64." in page
    assert 'class="spark"' in page and "+200.0 %" in page
    assert "1.50 µs" in page
    assert 'href="/models/llama-tiny/cpu/operators/?workload=' in page


def test_it_says_when_nobody_used_it(viewer_client: Client) -> None:
    page = page_of(viewer_client, "/operators/?" + urlencode({"name": "<i>nobody"}))
    assert "No run of this server used it" in page
    assert "<i>" not in page


@pytest.mark.parametrize(("query", "count"), [("", 2), ("?q=MM", 1), ("?q=none", 0)])
def test_it_lists_operators(query: str, count: int, viewer_client: Client) -> None:
    reading(None, 1000)
    found = viewer_client.get(f"/operators/{query}").context["operators"]
    assert (len(found.rows), found.total) == (count, count)


def test_it_says_that_there_are_none(viewer_client: Client) -> None:
    assert "No operators yet" in page_of(viewer_client, "/operators/")


@pytest.mark.parametrize("runs", [1, 5])
def test_it_asks_the_database_little(
    runs: int, viewer_client: Client, django_assert_max_num_queries: Callable[[int], object]
) -> None:
    for _ in range(runs):
        reading(run(), 1000)
        make_note()
    with django_assert_max_num_queries(6):  # type: ignore[attr-defined]
        viewer_client.get("/operators/?name=aten::mm")


def test_a_trend_ends_with_its_own_trace() -> None:
    first, second = reading(run(), 1000), reading(run(), 3000)
    reading(run(batch=4), 77)
    assert trends(first, ["aten::mm"]) == {"aten::mm": (500.0,)}
    assert trends(second, ["aten::mm", "none"]) == {"aten::mm": (500.0, 1500.0)}


def test_an_upload_has_no_trend() -> None:
    assert trends(reading(None, 1000), ["aten::mm"]) == {}
