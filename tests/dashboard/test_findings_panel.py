"""What could be won, as a trace's page says it."""

from __future__ import annotations

import dataclasses

import pytest
from django.test import Client

from dashboard.panels.findings import SHOWN, findings_panel
from profiler.analysis.report import FindingRow
from tests.factories import make_ready_trace, make_report

pytestmark = pytest.mark.django_db


def finding(gain: int | None = 2_000_000, **changes: object) -> FindingRow:
    plain = FindingRow(
        kind="redundant_copy",
        title="Tensors are copied into another layout: 2.00 ms a step",
        subject="aten::contiguous",
        recoverable_ns_per_step=gain,
        share=0.05,
        evidence={"confidence": "high", "calls": 96, "modules": ["layers.0", "layers.1"]},
        advice="Produce the layout that is needed.",
    )
    return dataclasses.replace(plain, **changes)  # type: ignore[arg-type]


def page(client: Client, *findings: FindingRow) -> str:
    report = dataclasses.replace(make_report(), findings=list(findings))
    trace = make_ready_trace(report=report)
    return client.get(f"/traces/{trace.pk}/").content.decode()


def test_the_first_sentence_names_the_largest_item(viewer_client: Client) -> None:
    shown = page(viewer_client, finding(), finding(1_000_000, title="Smaller"))
    assert "<b>2.00 ms of each step (5.00 %)</b>" in shown
    assert shown.index("Tensors are copied") < shown.index("Smaller")
    assert "96 calls" in shown and "Confidence high" in shown


def test_it_shows_a_finding_without_a_price_as_such(viewer_client: Client) -> None:
    shown = page(viewer_client, finding(None, title="Graphs hide their kernels"))
    assert "no price" in shown
    assert "of each step" not in shown


def test_nothing_found_is_a_result(viewer_client: Client) -> None:
    assert "That is a result" in page(viewer_client)


def test_it_escapes_what_a_trace_says(viewer_client: Client) -> None:
    shown = page(viewer_client, finding(title="<script>alert(1)</script>", advice="a\u202eb"))
    assert "<script>alert(1)" not in shown
    assert "\u202e" not in shown


def test_it_leaves_the_small_ones_to_the_report() -> None:
    report = dataclasses.replace(make_report(), findings=[finding()] * (SHOWN + 3))
    panel = findings_panel(report)
    assert (len(panel.lines), panel.more) == (SHOWN, 3)


def test_bars_are_relative_to_the_best() -> None:
    report = dataclasses.replace(make_report(), findings=[finding(), finding(500_000)])
    assert [line.width for line in findings_panel(report).lines] == [1.0, 0.25]
