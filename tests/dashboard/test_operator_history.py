"""One operator over the history of a workload."""

from __future__ import annotations

import json
import re

import pytest
from django.test import Client

from dashboard.models import Standing
from dashboard.queries.operator_history import operator_choices, operator_track
from dashboard.queries.standings import StandingDetail, standings_of
from dashboard.services import history
from tests.dashboard.histories import commits, measured, traced
from tests.dashboard.reading import csv_of, page_of
from tests.factories import make_operator, make_report

pytestmark = pytest.mark.django_db

PAGE = "/models/llama-tiny/cpu/operators/"


def seen() -> None:
    """Three commits, the last one measured first; each trace has two steps."""
    first, second, third = commits(3)
    for commit, self_ns in ((third, 3000), (first, 1000), (second, 2000)):
        trace = traced(measured(5e6, commit), self_ns)
        history.note_trace(trace, make_report())


def facts() -> StandingDetail:
    (found,) = standings_of("llama-tiny", "cpu")
    return found


def test_it_follows_the_commits_in_time_per_step() -> None:
    seen()
    track = operator_track(facts(), "aten::mm", source="models", runs=200)
    assert [place.point.value for place in track.places] == [500.0, 1000.0, 1500.0]
    assert [place.calls for place in track.places] == [2.0, 2.0, 2.0]
    assert (track.per_step, track.on_device, track.without) == (True, False, 0)


def test_it_adds_what_vendors_call_otherwise() -> None:
    run = measured(5e6)
    trace = traced(run, 1000)
    make_operator(trace, "npu_mm", canonical="aten::mm", host_self_ns=500)
    (place,) = operator_track(facts(), "aten::mm", source="", runs=200).places
    assert place.point.value == 750.0


def test_it_counts_traces_that_do_not_name_it() -> None:
    traced(measured(5e6), 1000)
    trace = traced(measured(5e6), 1000)
    trace.operators.filter(canonical="aten::mm").delete()
    track = operator_track(facts(), "aten::mm", source="", runs=200)
    assert (len(track.places), track.traces, track.without) == (1, 2, 1)


def test_traces_without_steps_are_compared_as_wholes() -> None:
    traced(measured(5e6), 1000, steps=0)
    traced(measured(5e6), 1200, steps=2)
    track = operator_track(facts(), "aten::mm", source="", runs=200)
    assert not track.per_step
    assert [place.point.value for place in track.places] == [1000.0, 1200.0]


def test_it_offers_what_takes_most_time_in_the_newest_trace() -> None:
    seen()
    assert [(one.name, one.self_ns) for one in operator_choices(facts())] == [
        ("aten::mm", 1000.0),
        ("aten::add", 500.0),
    ]


def test_the_page_draws_the_first_choice(viewer_client: Client) -> None:
    seen()
    page = page_of(viewer_client, PAGE)
    found = re.search(r'<script id="operator-figure" type="application/json">(.*?)</script>', page)
    assert found is not None
    (line,) = (one for one in json.loads(found[1])["data"] if one["mode"] == "lines+markers")
    assert len(line["y"]) == 3
    assert "<b>+200.0 %</b>" in page
    assert 'href="?op=aten%3A%3Aadd"' in page


def test_it_says_when_no_trace_names_it(viewer_client: Client) -> None:
    seen()
    page = page_of(viewer_client, f"{PAGE}?op=%3Ci%3Ex")
    assert "None of the 3 traces names it" in page
    assert "<i>" not in page


def test_it_says_when_there_is_no_trace(viewer_client: Client) -> None:
    measured(5e6)
    assert "No trace of this workload was read" in page_of(viewer_client, PAGE)


def test_its_csv_has_every_place(viewer_client: Client) -> None:
    seen()
    workload = Standing.objects.get().workload_id
    rows = csv_of(viewer_client.get(f"{PAGE[:-1]}.csv?workload={workload}&op=aten::mm"))
    assert [row["self_ns"] for row in rows] == ["500.0", "1000.0", "1500.0"]


def test_an_unknown_workload_is_not_found(viewer_client: Client) -> None:
    seen()
    assert viewer_client.get(f"{PAGE}?workload=999").status_code == 404
