"""Pages of several traces that belong together: a set that was uploaded, or the ranks of a run."""

from __future__ import annotations

from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from dashboard.models import Run, TraceSet
from dashboard.panels.ranks import ranks_table
from dashboard.panels.table import exported, table_view
from dashboard.queries.run_detail import get_run
from dashboard.queries.trace_sets import RanksView, get_set, rank_traces, ranks_view
from dashboard.views.downloads import csv_response
from dashboard.views.requests import SignedInRequest


def _set_or_404(set_id: int) -> TraceSet:
    found = get_set(set_id)
    if found is None:
        raise Http404(f"There is no set {set_id}.")
    return found


def _run_or_404(run_id: int) -> Run:
    run = get_run(run_id)
    if run is None or not run.traces.exists():
        raise Http404(f"There is no run {run_id} with traces.")
    return run


Context = dict[str, object]


def _context(request: SignedInRequest, ranks: RanksView, name: str, number: int) -> Context:
    """What the comparison shows; `name` and `number` are those of its address."""
    return {
        "ranks": ranks,
        "table": table_view(ranks_table(ranks), request.GET),
        "address": reverse(name, args=[number]),
        "csv": reverse(f"{name}-csv", args=[number]),
    }


def _csv(request: SignedInRequest, ranks: RanksView, name: str) -> HttpResponseBase:
    table = ranks_table(ranks)
    header = [column.heading for column in table.columns]
    return csv_response(name, header, exported(table, request.GET))


@require_safe
@vary_on_headers("HX-Request")
def trace_set(request: SignedInRequest, set_id: int) -> HttpResponse:
    """The ranks of a set; for htmx the comparison alone."""
    found = _set_or_404(set_id)
    context = _context(request, ranks_view(rank_traces(found)), "trace-set", set_id)
    part = "dashboard/partials/ranks.html" if request.htmx else "dashboard/trace_set.html"
    return render(request, part, {**context, "set": found})


@require_safe
def trace_set_status(request: SignedInRequest, set_id: int) -> HttpResponse:
    """The polled cell alone: it comes back without its poll once every rank is read."""
    found = _set_or_404(set_id)
    context = {"set": found, "ranks": ranks_view(rank_traces(found)), "polled": True}
    return render(request, "dashboard/partials/ranks_status.html", context)


@require_safe
def trace_set_csv(request: SignedInRequest, set_id: int) -> HttpResponseBase:
    ranks = ranks_view(rank_traces(_set_or_404(set_id)))
    return _csv(request, ranks, f"set{set_id}_ranks.csv")


@require_safe
@vary_on_headers("HX-Request")
def run_ranks(request: SignedInRequest, run_id: int) -> HttpResponse:
    """The ranks of a run; for htmx the comparison alone."""
    run = _run_or_404(run_id)
    context = _context(request, ranks_view(rank_traces(run)), "run-ranks", run_id)
    part = "dashboard/partials/ranks.html" if request.htmx else "dashboard/run_ranks.html"
    return render(request, part, {**context, "run": run})


@require_safe
def run_ranks_csv(request: SignedInRequest, run_id: int) -> HttpResponseBase:
    ranks = ranks_view(rank_traces(_run_or_404(run_id)))
    return _csv(request, ranks, f"run{run_id}_ranks.csv")
