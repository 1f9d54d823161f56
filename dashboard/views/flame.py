"""The flame graph of a trace: its page, data and table; and one step cut out for other viewers."""

from __future__ import annotations

from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.cache import patch_cache_control
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from dashboard.forms.flame import FlameForm
from dashboard.models import Artifact, Trace
from dashboard.panels.flame import frame_rows, frame_table, graph_panel, shown_view
from dashboard.panels.table import exported, table_view
from dashboard.queries.cuts import step_cut
from dashboard.queries.reports import read_graph, read_report
from dashboard.views.downloads import csv_response, gzipped_json, unchanged
from dashboard.views.errors import refusal
from dashboard.views.found import ready_or_404
from dashboard.views.requests import SignedInRequest
from profiler.errors import UserError


@require_safe
@vary_on_headers("HX-Request")
def trace_graph(request: SignedInRequest, trace_id: int) -> HttpResponse:
    """The graph with its frames as a table; for htmx the table alone."""
    trace = ready_or_404(trace_id)
    assert trace.report is not None, "the database keeps a ready trace from having none"
    form = FlameForm(request.GET)
    try:
        quality = read_report(trace.report.sha256).quality
        graph = read_graph(trace.graph.sha256) if trace.graph else None
        view = shown_view(graph, form.wanted()) if graph else None
        rows = frame_rows(trace.graph.sha256, view.kind) if trace.graph and view else ()
    except UserError as error:
        return refusal(request, error, status=410)
    panel = graph_panel(trace, quality, view.kind if view else form.wanted())
    table = table_view(frame_table(rows, len(view.parent)), request.GET) if view else None
    context = {"row": trace, "graph": panel, "table": table, "form": form, "on_page": True}
    part = "dashboard/partials/frames.html" if request.htmx else "dashboard/trace_graph.html"
    return render(request, part, context)


@require_safe
def trace_graph_data(request: SignedInRequest, trace_id: int) -> HttpResponseBase:
    """The data of all views; asked for again it is not sent again unless the trace was reread."""
    artifact = _graph_or_404(ready_or_404(trace_id))
    response = unchanged(request, artifact) or gzipped_json(request, artifact)
    patch_cache_control(response, private=True, no_cache=True)
    return response


@require_safe
def trace_graph_csv(request: SignedInRequest, trace_id: int) -> HttpResponseBase:
    trace = ready_or_404(trace_id)
    artifact = _graph_or_404(trace)
    try:
        view = shown_view(read_graph(artifact.sha256), FlameForm(request.GET).wanted())
        rows = frame_rows(artifact.sha256, view.kind) if view else ()
    except UserError as error:
        return refusal(request, error, status=410)
    if view is None:
        raise Http404(f"Trace {trace_id} has nothing for this view.")
    table = frame_table(rows, len(view.parent))
    header = [column.heading for column in table.columns]
    name = f"trace{trace.pk}_flame_{view.kind}.csv"
    return csv_response(name, header, exported(table, request.GET))


def _graph_or_404(trace: Trace) -> Artifact:
    if trace.graph is None:
        raise Http404(f"Trace {trace.pk} was read before flame graphs were kept: read it again.")
    return trace.graph


@require_safe
def trace_step(request: SignedInRequest, trace_id: int, number: int) -> HttpResponse:
    """One step, counted from 1, as a small trace without arguments, for Perfetto."""
    trace = ready_or_404(trace_id)
    assert trace.report is not None, "the database keeps a ready trace from having none"
    try:
        steps = read_report(trace.report.sha256).steps
        if not 1 <= number <= len(steps) or trace.columns is None:
            raise Http404(f"Trace {trace_id} has no events of a step {number}.")
        cut = step_cut(trace.columns, steps[number - 1], trace.rank)
    except UserError as error:
        return refusal(request, error, status=410)
    response = HttpResponse(cut.content, content_type="application/gzip")
    name = f"trace{trace.pk}_rank{trace.rank}_step{number}.json.gz"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
