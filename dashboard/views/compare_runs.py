"""Pages that lay runs or traces side by side: no verdict, and what stands in its way."""

from __future__ import annotations

from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.forms.compare_runs import MOST, SideBySideForm
from dashboard.panels.difference import operator_table
from dashboard.panels.table import exported, table_view
from dashboard.panels.unmatched import unmatched_table
from dashboard.queries.compare_runs import RunsView, runs_view
from dashboard.queries.compare_traces import TracesView, traces_view
from dashboard.services.difference import Difference
from dashboard.views import compare_exports as exports
from dashboard.views.differences import explained
from dashboard.views.downloads import csv_response
from dashboard.views.requests import SignedInRequest


def _runs_or_404(request: SignedInRequest) -> RunsView:
    view = runs_view(SideBySideForm(request.GET).wanted("run"))
    if view is None:
        raise Http404("Name two runs that exist: ?run=1&run=2.")
    return view


def _difference_or_404(request: SignedInRequest) -> tuple[TracesView, Difference]:
    view = traces_view(SideBySideForm(request.GET).wanted("trace"))
    if view is None or view.difference is None:
        raise Http404("Name two traces that have been read: ?trace=1&trace=2.")
    return view, view.difference


@require_safe
def comparison_runs(request: SignedInRequest) -> HttpResponse:
    form = SideBySideForm(request.GET)
    wanted = form.wanted("run")
    context = {"form": form, "wanted": wanted, "view": runs_view(wanted), "most": MOST}
    return render(request, "dashboard/compare_runs.html", context)


@require_safe
def comparison_runs_csv(request: SignedInRequest) -> HttpResponseBase:
    view = _runs_or_404(request)
    return csv_response("runs.csv", exports.RUN_COLUMNS, exports.run_cells(view))


@require_safe
def comparison_runs_markdown(request: SignedInRequest) -> HttpResponse:
    address = request.build_absolute_uri().replace("/report.md", "/", 1)
    return exports.markdown_file("runs.md", exports.runs_markdown(_runs_or_404(request), address))


@require_safe
def comparison_traces(request: SignedInRequest) -> HttpResponse:
    form = SideBySideForm(request.GET)
    wanted = form.wanted("trace")
    view = traces_view(wanted)
    context: dict[str, object] = {"form": form, "wanted": wanted, "view": view, "most": MOST}
    report = view.difference if view else None
    if report is not None:
        assert view is not None
        sides = (view.baseline.pk, view.candidate.pk)
        context |= explained(request, report, sides)
        context["alone"] = table_view(unmatched_table(report.diff), request.GET)
    return render(request, "dashboard/compare_traces.html", context)


@require_safe
def comparison_traces_csv(request: SignedInRequest) -> HttpResponseBase:
    """Every operator of both sides, those of one side only included."""
    _, report = _difference_or_404(request)
    table = operator_table(report.diff)
    header = [column.heading for column in table.columns]
    return csv_response("traces_operators.csv", header, exported(table, request.GET))


@require_safe
def comparison_traces_markdown(request: SignedInRequest) -> HttpResponse:
    address = request.build_absolute_uri().replace("/report.md", "/", 1)
    text = exports.traces_markdown(*_difference_or_404(request), address)
    return exports.markdown_file("traces.md", text)
