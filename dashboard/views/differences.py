"""Where the difference of a workload comes from: waterfall, operators, diff flame graph."""

from __future__ import annotations

from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from dashboard.figures.diff_flame import flame_view
from dashboard.figures.waterfall import waterfall_view
from dashboard.forms.comparisons import FlameForm
from dashboard.models import ComparedWorkload
from dashboard.panels.difference import Traces, operator_table
from dashboard.panels.table import exported, table_view
from dashboard.queries.differences import difference_of, get_compared, ready_traces, step_change
from dashboard.services.difference import Difference
from dashboard.views.downloads import csv_response
from dashboard.views.errors import refusal
from dashboard.views.requests import SignedInRequest
from profiler.errors import UserError


def _compared_or_404(comparison_id: int, position: int) -> ComparedWorkload:
    compared = get_compared(comparison_id, position)
    if compared is None:
        raise Http404(f"Comparison {comparison_id} has no workload {position}.")
    return compared


@require_safe
@vary_on_headers("HX-Request")
def comparison_difference(
    request: SignedInRequest, comparison_id: int, position: int
) -> HttpResponse:
    """The page; for htmx the waterfall alone, which the comparison's page shows."""
    compared = _compared_or_404(comparison_id, position)
    context: dict[str, object] = {"compared": compared, "row": compared.comparison}
    try:
        report = difference_of(compared)
    except UserError as error:
        return refusal(request, error, status=410)
    if report is not None:
        context |= explained(request, report, ready_traces(compared))
    part = "partials/comparison_leading.html" if request.htmx else "comparison_difference.html"
    return render(request, f"dashboard/{part}", context)


def explained(request: SignedInRequest, report: Difference, traces: Traces) -> dict[str, object]:
    """What the parts of a page need that show a difference, as the address asks for them."""
    wish = FlameForm(request.GET).wish()
    return {
        "report": report,
        "step_change": step_change(report.diff),
        "wish": wish,
        "waterfall": waterfall_view(report.waterfall),
        "table": table_view(operator_table(report.diff, traces), request.GET),
        "flame": flame_view(report.flame, wish),
        "unmatched": report.flame.unmatched,
    }


@require_safe
def comparison_operators_csv(
    request: SignedInRequest, comparison_id: int, position: int
) -> HttpResponseBase:
    compared = _compared_or_404(comparison_id, position)
    report = difference_of(compared)
    if report is None:
        raise Http404("The profiled launches were not compared.")
    table = operator_table(report.diff)
    name = f"comparison{comparison_id}_{position}_operators.csv"
    header = [column.heading for column in table.columns]
    return csv_response(name, header, exported(table, request.GET))
