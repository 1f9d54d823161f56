"""The memory panel of a trace: the curve, what the peak was for, who allocated it."""

from __future__ import annotations

import dataclasses

from django.test import Client

from profiler.analysis.report import MemoryCurve, MemoryOwner, MemoryPoint, MemoryShare
from tests.dashboard.reading import csv_of, page_of
from tests.factories import make_ready_trace, make_report


def panel_page(client: Client, curve: MemoryCurve) -> str:
    trace = make_ready_trace(report=make_report(memory=[curve]))
    return page_of(client, f"/traces/{trace.pk}/panels/memory/")


def test_it_draws_memory_with_its_table_and_csv(viewer_client: Client) -> None:
    points = [
        MemoryPoint(at_ns=0, allocated_bytes=1 << 20, reserved_bytes=2 << 20),
        MemoryPoint(at_ns=5000, allocated_bytes=3 << 20, reserved_bytes=4 << 20),
    ]
    curve = MemoryCurve(
        device="cuda:0",
        records=9,
        peak_allocated_bytes=3 << 20,
        peak_reserved_bytes=4 << 20,
        peak_at_ns=5000,
        points=points,
    )
    trace = make_ready_trace(report=make_report(memory=[curve]))
    page = page_of(viewer_client, f"/traces/{trace.pk}/panels/memory/")
    assert 'data-figure="memory-figure-0"' in page
    assert "2 of 9 records are drawn" in page
    rows = csv_of(viewer_client.get(f"/traces/{trace.pk}/panels/memory.csv"))
    assert [row["allocated_bytes"] for row in rows] == [str(1 << 20), str(3 << 20)]


def test_it_says_what_the_peak_was_for_and_who_allocated_it(viewer_client: Client) -> None:
    curve = MemoryCurve(
        device="cuda:0",
        records=2,
        peak_allocated_bytes=4 << 20,
        peak_reserved_bytes=None,
        peak_at_ns=5,
        points=[MemoryPoint(at_ns=5, allocated_bytes=4 << 20, reserved_bytes=None)],
        shares=[MemoryShare(category="activations", bytes=3 << 20, allocations=7)],
        owners=[
            MemoryOwner(
                module="layers.*.mlp",
                operator="<b>mm</b>",
                category="activations",
                bytes=1 << 20,
                allocations=2,
            )
        ],
    )
    page = panel_page(viewer_client, curve)
    assert "75.0 %" in page
    assert "layers.*.mlp" in page
    assert "&lt;b&gt;mm&lt;/b&gt;" in page
    bare = panel_page(viewer_client, dataclasses.replace(curve, shares=[]))
    assert "carry no addresses" in bare
