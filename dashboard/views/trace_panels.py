"""Panels of a trace under addresses of their own, and their tables as CSV."""

from __future__ import annotations

from typing import Literal

from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from dashboard.models import Trace
from dashboard.panels.asking import asked_at
from dashboard.panels.base import Panel
from dashboard.panels.registry import PANELS
from dashboard.panels.table import exported, table_view
from dashboard.queries.reports import read_report
from dashboard.views.downloads import csv_response, json_response
from dashboard.views.errors import refusal
from dashboard.views.found import ready_or_404
from dashboard.views.requests import SignedInRequest
from profiler.analysis.report import Report
from profiler.errors import UserError


def _panel_or_404(name: str) -> Panel:
    panel = PANELS.get(name)
    if panel is None:
        raise Http404("There is no such part of a trace.")
    return panel


def _report(trace: Trace) -> Report:
    assert trace.report is not None, "the database keeps a ready trace from having none"
    return read_report(trace.report.sha256)


@require_safe
@vary_on_headers("HX-Request")
def trace_panel(request: SignedInRequest, trace_id: int, name: str) -> HttpResponse:
    """One panel: alone for htmx, else on a page of its own."""
    trace, panel = ready_or_404(trace_id), _panel_or_404(name)
    try:
        report = _report(trace)
    except UserError as error:
        return refusal(request, error, status=410)
    reason = panel.why_empty(report)
    table = None if reason else panel.table(report)
    context = {
        "panel": panel,
        "row": trace,
        "reason": reason,
        "facts": None if reason else panel.facts(report),
        "table": table_view(table, request.GET, asked_at=asked_at(trace)) if table else None,
    }
    part = "dashboard/partials/panel.html" if request.htmx else "dashboard/trace_panel.html"
    return render(request, part, context)


@require_safe
def trace_panel_csv(request: SignedInRequest, trace_id: int, name: str) -> HttpResponseBase:
    return _exported(request, trace_id, name, "csv")


@require_safe
def trace_panel_json(request: SignedInRequest, trace_id: int, name: str) -> HttpResponseBase:
    return _exported(request, trace_id, name, "json")


def _exported(
    request: SignedInRequest, trace_id: int, name: str, ending: Literal["csv", "json"]
) -> HttpResponseBase:
    """The whole table of a panel as a file."""
    trace, panel = ready_or_404(trace_id), _panel_or_404(name)
    try:
        table = panel.table(_report(trace))
    except UserError as error:
        return refusal(request, error, status=410)
    if table is None:
        raise Http404(f"Trace {trace_id} has no table of it.")
    answer = csv_response if ending == "csv" else json_response
    header = [column.heading for column in table.columns]
    file = f"trace{trace.pk}_{panel.name}.{ending}"
    return answer(file, header, exported(table, request.GET))
