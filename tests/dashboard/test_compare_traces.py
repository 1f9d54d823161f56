"""Two traces side by side: every nanosecond is matched, listed or named, whoever recorded them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.models import Run, RunState, Trace, TraceState
from dashboard.panels.unmatched import unmatched
from dashboard.queries.compare_traces import TracesView, coverage, traces_view
from dashboard.queries.side_by_side import SideBySide
from profiler.analysis.changes import measured_ns
from profiler.analysis.stepprofile import dump_profile, profile_of_trace
from tests.dashboard.reading import csv_of, page_of
from tests.factories import make_result, make_run, make_trace, store_artifact
from tests.profiler.analysis.layered import Layered
from tests.profiler.trace.shared import TRACES, needs_traces

pytestmark = pytest.mark.django_db

FUSED = Layered(operators=("aten::linear>aten::addmm", "my::fused<b"), graph=True)


def stored(folder: Path, made: Layered, run: Run | None = None) -> Trace:
    """A trace that was read, with its step profile."""
    path = made.build().write(folder / f"{len(list(folder.iterdir()))}.json")
    profile = store_artifact(dump_profile(profile_of_trace(path)))
    return make_trace(TraceState.READY, profile=profile, run=run)


def view_of(*traces: Trace, **changes: int) -> TracesView:
    found = traces_view(SideBySide(numbers=tuple(trace.pk for trace in traces), **changes))
    assert found is not None
    return found


def address(*traces: Trace, extra: str = "") -> str:
    return f"/compare/traces/?{'&'.join(f'trace={trace.pk}' for trace in traces)}{extra}"


def check_sums(view: TracesView) -> None:
    """The parts make the total, and the listed operators the unmatched part, on both sides."""
    found = view.difference
    assert found is not None
    *parts, total = coverage(found)
    assert sum(part.baseline_ns for part in parts) == total.baseline_ns > 0
    assert sum(part.candidate_ns for part in parts) == total.candidate_ns > 0
    for side in ("baseline", "candidate"):
        listed = sum(
            measured_ns(getattr(row, side), found.diff.measure) for row in unmatched(found.diff)
        )
        assert listed == getattr(found.diff, side).unmatched_ns


def test_it_says_what_a_step_takes_and_no_verdict(tmp_path: Path, viewer_client: Client) -> None:
    one, two = stored(tmp_path, Layered()), stored(tmp_path, FUSED)
    page = page_of(viewer_client, address(one, two))
    assert re.search(r"A recorded step takes \S+ \S+ instead of \S+ \S+, [+−]\d", page)
    assert "One recording a side, so no verdict." in page
    assert "Where the difference comes from" in page and "Diff flame graph" in page
    assert "my::fused&lt;b" in page and "my::fused<b" not in page
    check_sums(view_of(one, two))


def test_it_lists_what_one_side_alone_has(tmp_path: Path, viewer_client: Client) -> None:
    one, two = stored(tmp_path, Layered()), stored(tmp_path, FUSED)
    page = page_of(viewer_client, address(one, two))
    listed = page.partition("operators on one side only")[2].partition("</table>")[0]
    assert "aten::silu" in listed and "my::fused" in listed
    opaque = page.partition("inside graph launches, opaque")[2][:400]
    assert "50.0 µs" in opaque


def test_its_times_lead_to_the_operator_in_its_trace(tmp_path: Path, viewer_client: Client) -> None:
    one, two = stored(tmp_path, Layered()), stored(tmp_path, Layered(layers=3))
    page = page_of(viewer_client, address(one, two))
    assert f'href="/traces/{one.pk}/operators/?op=aten%3A%3Asilu"' in page
    assert f'href="/traces/{two.pk}/operators/?op=aten%3A%3Asilu"' in page


def test_the_oldest_is_the_baseline_unless_the_address_says_otherwise(tmp_path: Path) -> None:
    one, two, three = (stored(tmp_path, Layered(layers=n)) for n in (1, 2, 3))
    plain = view_of(three, one, two)
    assert (plain.baseline, plain.candidate, plain.others) == (one, three, (two,))
    other = view_of(three, one, two, baseline=two.pk, candidate=one.pk)
    assert (other.baseline, other.candidate, other.others) == (two, one, (three,))


def test_its_address_holds_the_whole_view(tmp_path: Path, viewer_client: Client) -> None:
    one, two = stored(tmp_path, Layered()), stored(tmp_path, FUSED)
    page = page_of(viewer_client, address(one, two, extra="&width=baseline&by=share"))
    assert "width is the baseline" in page and "the share of the step" in page
    link = f'href="?trace={one.pk}&amp;trace={two.pk}&amp;width=baseline&amp;by=share&amp;root='
    assert link in page


def test_it_says_that_a_trace_was_read_before(tmp_path: Path, viewer_client: Client) -> None:
    one, two = stored(tmp_path, Layered()), make_trace(TraceState.READY, name="old<i>.json")
    page = page_of(viewer_client, address(one, two))
    assert "old&lt;i&gt;.json was read before its time per step was kept: read the trace" in page
    assert viewer_client.get(address(one, two).replace("?", "operators.csv?")).status_code == 404


def test_it_says_that_a_trace_waits(tmp_path: Path, viewer_client: Client) -> None:
    one, two = stored(tmp_path, Layered()), make_trace(TraceState.PENDING)
    assert "is pending: wait until it has been read" in page_of(viewer_client, address(one, two))


def test_it_shows_the_environments_of_the_runs(tmp_path: Path, viewer_client: Client) -> None:
    runs = [make_run(RunState.SUCCEEDED) for _ in range(2)]
    for run, torch in zip(runs, ("2.12.0", "2.13.0"), strict=True):
        make_result(run, environment={"fields": {"torch": torch, "cpu": "x"}})
    one, two = (stored(tmp_path, Layered(), run=run) for run in runs)
    assert [(row.name, row.values) for row in view_of(one, two).environment] == [
        ("torch", ("2.12.0", "2.13.0"))
    ]
    page = page_of(viewer_client, address(one, two))
    assert "2.12.0" in page.partition("Environment of the runs")[2]


@pytest.mark.parametrize(
    ("query", "words"),
    [("", "No traces chosen yet"), ("trace=1&trace=2", "Fewer than two of these traces exist")],
)
def test_it_says_what_to_do_without_traces(viewer_client: Client, query: str, words: str) -> None:
    page = page_of(viewer_client, f"/compare/traces/?{query}")
    assert words in page and 'href="/traces/"' in page


def test_it_is_a_csv_and_markdown(tmp_path: Path, viewer_client: Client) -> None:
    one, two = stored(tmp_path, Layered()), stored(tmp_path, FUSED)
    query = address(one, two).partition("?")[2]
    rows = csv_of(viewer_client.get(f"/compare/traces/operators.csv?{query}"))
    assert {row["how"] for row in rows} >= {"vanished", "new", "same"}
    text = viewer_client.get(f"/compare/traces/report.md?{query}").content.decode()
    assert "| in operators that both have |" in text
    assert "my::fused\\<b" in text


def test_the_list_of_traces_has_ticks_on_what_was_read(viewer_client: Client) -> None:
    one, two = make_trace(TraceState.READY), make_trace(TraceState.PENDING)
    page = page_of(viewer_client, "/traces/")
    assert f'name="trace" value="{one.pk}" form="pick"' in page
    assert f'value="{two.pk}" form="pick"' not in page


def test_it_needs_few_queries(tmp_path: Path, viewer_client: Client) -> None:
    one, two = stored(tmp_path, Layered()), stored(tmp_path, FUSED)
    with CaptureQueriesContext(connection) as queries:
        page_of(viewer_client, address(one, two))
    assert len(queries) <= 12


@cache
def profile(name: str) -> bytes:
    return dump_profile(profile_of_trace(TRACES / f"{name}.json.gz"))


@needs_traces
@pytest.mark.parametrize(
    "names", [("diff-control-a100", "diff-test-v100"), ("qwen-h100", "qwen-mi300x")]
)
def test_it_compares_what_different_machines_recorded(
    names: tuple[str, str], viewer_client: Client
) -> None:
    one, two = (
        make_trace(TraceState.READY, name=f"{name}.json.gz", profile=store_artifact(profile(name)))
        for name in names
    )
    view = view_of(one, two)
    check_sums(view)
    assert view.difference is not None
    for side in (view.difference.diff.baseline, view.difference.diff.candidate):
        assert side.matched_share is not None and side.matched_share >= 0.9
    page = page_of(viewer_client, address(one, two))
    assert "launch not in the file, unlinked" in page and "Unmatched:" in page
