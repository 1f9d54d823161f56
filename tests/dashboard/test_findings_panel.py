"""What could be won, as a trace's page says it."""

from __future__ import annotations

import dataclasses

import pytest
from django.test import Client

from dashboard.models import NoteKind, Trace
from dashboard.panels.findings import SHOWN, findings_panel
from profiler.analysis.bounds import Pricing
from profiler.analysis.report import FindingRow
from tests.factories import (
    make_artifact,
    make_note,
    make_ready_trace,
    make_report,
    make_result,
    make_run,
)

pytestmark = pytest.mark.django_db

PRICING = Pricing(
    window="steps 1 to 3",
    steps=3,
    step_ns=40_000_000,
    joint_top_ns=3_000_000,
    joint_all_ns=3_000_000,
    exact=True,
    inferred_edges=0,
    dropped_edges=0,
    folded=0,
    fold_share=0.01,
)


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
    assert "<b>2.00 ms of each step (5.00 %) can be won</b> by the largest item" in shown
    panels = shown.partition('id="trace-panels"')[2]
    assert panels.index("can be won</b>") < panels.index("The largest operator is")
    assert shown.index("Tensors are copied") < shown.index("Smaller")
    assert "96 calls" in shown and "Confidence high" in shown


def test_the_sentence_of_a_run_says_what_can_be_won(viewer_client: Client) -> None:
    run = make_run("succeeded")
    make_result(run)
    report = make_report(findings=[finding(), finding()], pricing=PRICING)
    make_ready_trace(run=run, report=report)
    shown = viewer_client.get(f"/runs/{run.pk}/").content.decode()
    first = shown.partition('<section class="answer">')[2].partition("</p>")[0]
    assert "<b>7.50 % of a step can be won.</b> The largest item: Tensors are copied" in first
    assert "of each step" not in shown


@pytest.mark.parametrize(
    ("timed", "said"),
    [
        ({}, "Priced for the step as recorded, 40.0 ms."),
        (
            {"timed_step_ns": 40_000_000, "recorded_step_ns": 55_000_000, "record_ns": 1_500.0},
            "recorded it takes 55.0 ms; each record of an operator costs 1.50 µs",
        ),
        (
            {"timed_step_ns": 30_000_000, "recorded_step_ns": 55_000_000, "record_ns": 9_000.0},
            "Timed it takes 30.0 ms; recording does not explain the rest",
        ),
    ],
)
def test_it_says_which_step_was_priced(
    timed: dict[str, float], said: str, viewer_client: Client
) -> None:
    pricing = dataclasses.replace(PRICING, **timed)  # type: ignore[arg-type]
    trace = make_ready_trace(report=make_report(findings=[finding()], pricing=pricing))
    assert said in viewer_client.get(f"/traces/{trace.pk}/").content.decode()


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
    panel = findings_panel(report, make_ready_trace())
    assert (len(panel.lines), panel.more) == (SHOWN, 3)


def test_bars_are_relative_to_the_best() -> None:
    report = dataclasses.replace(make_report(), findings=[finding(), finding(500_000)])
    assert [line.width for line in findings_panel(report, make_ready_trace()).lines] == [1.0, 0.25]


def test_it_leads_to_flame_graph_rows_and_operator(viewer_client: Client) -> None:
    report = dataclasses.replace(make_report(), findings=[finding(subject="aten::mm")])
    trace = make_ready_trace(report=report)
    Trace.objects.filter(pk=trace.pk).update(graph=make_artifact())
    shown = viewer_client.get(f"/traces/{trace.pk}/").content.decode()
    assert f'href="/traces/{trace.pk}/flame/?flame=host&amp;find=aten%3A%3Amm"' in shown
    assert 'href="?op=aten%3A%3Amm#operators">Rows</a>' in shown
    assert 'href="/operators/?name=aten%3A%3Amm">Operator</a>' in shown


def test_a_module_has_no_rows_of_an_operator(viewer_client: Client) -> None:
    shown = page(viewer_client, finding(subject="model.layers"))
    assert ">Rows</a>" not in shown and "?name=model.layers" not in shown


def test_it_shows_the_notes_of_its_operator_and_of_itself(viewer_client: Client) -> None:
    make_note("Known of the operator.")
    about = {"kind": NoteKind.FINDING, "operator": "aten::mm"}
    make_note("Known of the finding.", finding="redundant_copy", **about)
    make_note("Of another finding.", finding="host_wait", **about)
    shown = page(viewer_client, finding(subject="aten::mm"))
    assert "2 notes" in shown
    assert "Known of the operator." in shown and "Known of the finding." in shown
    assert "Of another finding." not in shown


def test_only_who_may_write_is_asked_to(viewer_client: Client, operator_client: Client) -> None:
    assert "Write a note" not in page(viewer_client, finding())
    shown = page(operator_client, finding())
    assert "kind=finding&amp;operator=aten%3A%3Acontiguous&amp;finding=redundant_copy" in shown


@pytest.mark.parametrize(("count", "said"), [(1, False), (2, True)])
def test_it_says_what_the_first_three_bring_together(
    count: int, said: bool, viewer_client: Client
) -> None:
    report = make_report(findings=[finding()] * count, pricing=PRICING)
    trace = make_ready_trace(report=report)
    shown = viewer_client.get(f"/traces/{trace.pk}/").content.decode()
    assert ("the first three bring 3.00 ms together" in shown) == said
