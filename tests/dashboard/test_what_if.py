"""The question box of a trace: what a change of the reader's own would bring."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from django.test import Client

from dashboard.models import Trace
from dashboard.panels.asking import question_address
from profiler.analysis.ingest import ingest
from profiler.analysis.questions import NAME_CHARS
from tests.dashboard.ranks import recorded
from tests.dashboard.reading import HTMX, page_of
from tests.factories import make_ready_trace, make_report, store_artifact
from tests.profiler.trace.build import TraceBuilder, busy

HOSTILE = '<img src=x onerror=alert(1)>"&'
ASK = {"if_subject": "operator", "if_name": "aten::addmm", "if_change": "faster", "if_times": "4"}


def made_of(path: Path, out: Path) -> Trace:
    report = ingest([path], out)
    made = make_ready_trace(report=report)
    steps = store_artifact((out / "replay.bin").read_bytes())
    Trace.objects.filter(pk=made.pk).update(replay=steps)
    made.refresh_from_db()
    return made


@pytest.fixture
def trace(db: None, tmp_path: Path) -> Trace:
    """A trace as ingest leaves it: report and replayed steps are real."""
    return made_of(busy().write(tmp_path / "t.json"), tmp_path / "out")


def asked(client: Client, trace: Trace, **fields: str) -> str:
    response = client.get(f"/traces/{trace.pk}/what-if/", ASK | fields)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def test_it_answers_in_a_sentence(trace: Trace, viewer_client: Client) -> None:
    page = asked(viewer_client, trace)
    assert "aten::addmm is 4 times as fast" in page
    assert "36 calls in these steps" in page
    assert "Confidence" in page


def test_it_says_when_nothing_is_won(trace: Trace, viewer_client: Client) -> None:
    page = asked(viewer_client, trace, if_times="1")
    assert "as long as before" in page


def test_it_says_when_a_step_takes_longer(trace: Trace, viewer_client: Client) -> None:
    page = asked(viewer_client, trace, if_subject="kernel", if_name="gemm_grad", if_times="0.1")
    assert "more</b>" in page


def test_it_asks_nothing_before_it_is_asked(trace: Trace, viewer_client: Client) -> None:
    page = page_of(viewer_client, f"/traces/{trace.pk}/what-if/")
    assert "Price it" in page
    assert "Confidence" not in page
    assert '<option value="model.layers.*">' in page


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("if_name", "aten::nothing", "there is no operator"),
        ("if_times", "fast", "no factor"),
        ("if_change", "teleported", "is no change"),
        ("if_subject", "collective", "there is no collective"),
    ],
)
def test_it_says_what_cannot_be_priced(
    trace: Trace, viewer_client: Client, field: str, value: str, said: str
) -> None:
    page = asked(viewer_client, trace, **{field: value})
    assert "That cannot be priced." in page
    assert said in page


@pytest.mark.parametrize("field", ["if_name", "if_times", "if_change", "if_subject"])
def test_it_escapes_what_was_asked(trace: Trace, viewer_client: Client, field: str) -> None:
    assert "<img" not in asked(viewer_client, trace, **{field: HOSTILE})


def test_it_is_a_part_of_the_page_and_renews_alone(trace: Trace, viewer_client: Client) -> None:
    whole = page_of(viewer_client, f"/traces/{trace.pk}/")
    assert f'hx-get="/traces/{trace.pk}/what-if/' in whole
    part = viewer_client.get(f"/traces/{trace.pk}/what-if/", ASK, headers=HTMX).content.decode()
    assert "<html" not in part
    assert 'data-params="if_change if_subject if_name if_times"' in part


@pytest.mark.django_db
def test_it_says_why_a_trace_of_before_answers_none(viewer_client: Client) -> None:
    made = make_ready_trace(report=make_report())
    page = page_of(viewer_client, f"/traces/{made.pk}/what-if/")
    assert "This trace answers no questions" in page


def test_steps_that_are_gone_are_said_so(trace: Trace, viewer_client: Client) -> None:
    Trace.objects.filter(pk=trace.pk).update(replay=store_artifact(b"damaged\n"))
    response = viewer_client.get(f"/traces/{trace.pk}/what-if/")
    assert response.status_code == 410
    assert b"the stored steps are damaged" in response.content


def questions(client: Client, address: str) -> list[str]:
    """The addresses behind the rows of a table."""
    page = client.get(address, headers=HTMX).content.decode()
    return [unescape(href) for href in re.findall(r'<a href="([^"]+)" data-asks', page)]


@pytest.mark.parametrize("table", ["operators", "panels/modules", "panels/kernels"])
def test_every_row_of_a_table_can_be_asked_about(
    trace: Trace, viewer_client: Client, table: str
) -> None:
    found = questions(viewer_client, f"/traces/{trace.pk}/{table}/")
    assert len(found) > 1
    for address in found:
        page = page_of(viewer_client, address)
        assert "2 times as fast" in page, address
        assert "Confidence" in page, address


def test_no_row_asks_where_nothing_can_be_answered(trace: Trace, viewer_client: Client) -> None:
    Trace.objects.filter(pk=trace.pk).update(replay=None)
    for table in ("operators", "panels/modules"):
        page = page_of(viewer_client, f"/traces/{trace.pk}/{table}/")
        assert "data-asks" not in page
        assert ">What if</th>" not in page


def test_a_name_too_long_to_ask_about_has_no_address() -> None:
    assert question_address("/traces/1/what-if/", "kernel", "x" * NAME_CHARS)
    assert not question_address("/traces/1/what-if/", "kernel", "x" * (NAME_CHARS + 1))


def test_collectives_are_asked_about_where_a_device_runs_them(
    db: None, tmp_path: Path, viewer_client: Client
) -> None:
    (tmp_path / "t.json").write_bytes(recorded(late_us=0))
    trace = made_of(tmp_path / "t.json", tmp_path / "out")
    (address,) = questions(viewer_client, f"/traces/{trace.pk}/panels/collectives/")
    page = page_of(viewer_client, address)
    assert "all_reduce is 2 times as fast" in page
    assert "4 calls in these steps" in page


def test_collectives_of_the_host_are_not_asked_about(
    db: None, tmp_path: Path, viewer_client: Client
) -> None:
    made = TraceBuilder()
    made.mark("ProfilerStep#0", 1000, 1000)
    made.op("aten::mm", 1000, 300)
    made.op("gloo:all_reduce", 1300, 100, tid=2)
    trace = made_of(made.write(tmp_path / "t.json"), tmp_path / "out")
    page = page_of(viewer_client, f"/traces/{trace.pk}/panels/collectives/")
    assert "all reduce" in page
    assert "data-asks" not in page
