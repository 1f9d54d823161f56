"""Where steps and phases go, as a trace's page says it."""

from __future__ import annotations

import pytest
from django.test import Client

from dashboard.panels.base import device_title
from dashboard.panels.splits import PANEL
from profiler.analysis.bounds import SplitRow
from tests.dashboard.reading import csv_of, page_of
from tests.factories import make_ready_trace, make_report


def split(kind: str, name: str, idle: dict[str, int], *, device: str = "0") -> SplitRow:
    return SplitRow(
        kind=kind,
        name=name,
        device=device,
        count=2 if kind == "phase" else 1,
        span_ns=100_000,
        compute_ns=60_000,
        exposed_comm_ns=10_000,
        exposed_copy_ns=0,
        idle=idle,
    )


def test_it_shows_the_parts_of_steps_and_phases(viewer_client: Client) -> None:
    rows = [
        split("step", "ProfilerStep#1", {"host": 20_000, "edge": 10_000}),
        split("phase", "backward", {"host": 30_000}),
    ]
    trace = make_ready_trace(report=make_report(splits=rows))
    page = page_of(viewer_client, f"/traces/{trace.pk}/panels/splits/")
    assert "Idle: host" in page and "Idle: edge" in page
    assert "Idle: sync" not in page
    assert page.index("backward") < page.index("ProfilerStep#1")
    found = csv_of(viewer_client.get(f"/traces/{trace.pk}/panels/splits.csv"))
    for row in found:
        parts = ("compute_ns", "comm_ns", "copy_ns", "host_ns", "edge_ns")
        assert sum(int(row[part] or 0) for part in parts) == int(row["span_ns"])


def test_it_says_why_there_is_none() -> None:
    assert PANEL.why_empty(make_report()).startswith("Nothing marks steps or phases")


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("0", "Device 0"),
        ("15", "Device 15"),
        ("3170820512", "Device of process 3170820512"),
        ("cuda:0", "cuda:0"),
    ],
)
def test_it_calls_no_process_a_device_number(name: str, title: str) -> None:
    assert device_title(name) == title
