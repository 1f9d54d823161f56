"""Pages of runs: the list and one run with its log, files and numbers."""

from __future__ import annotations

from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from dashboard.forms.runs import FileForm, MetricForm, RunFilterForm, new_nonce
from dashboard.forms.traces import OperatorFilterForm
from dashboard.models import Run
from dashboard.panels.contamination import disturbed, other_warnings
from dashboard.panels.samples import samples_panel
from dashboard.panels.trace import trace_panels
from dashboard.queries.platforms import floor_for
from dashboard.queries.run_detail import get_run, result_view, run_view
from dashboard.queries.run_detail import run_file as find_file
from dashboard.queries.run_log import log_tail
from dashboard.queries.run_status import run_status as status_of
from dashboard.queries.runs import PAGE_SIZE, run_export, run_page
from dashboard.views import exports
from dashboard.views.downloads import csv_response, download
from dashboard.views.requests import SignedInRequest, may_cancel


def _run_or_404(run_id: int) -> Run:
    run = get_run(run_id)
    if run is None:
        raise Http404(f"There is no run {run_id}.")
    return run


@require_safe
def run_list(request: SignedInRequest) -> HttpResponse:
    form = RunFilterForm(request.GET)
    wanted = form.wanted()
    context = {"form": form, "wanted": wanted, "page": run_page(wanted), "size": PAGE_SIZE}
    return render(request, "dashboard/run_list.html", context)


@require_safe
def run_list_csv(request: SignedInRequest) -> HttpResponseBase:
    rows = run_export(RunFilterForm(request.GET).wanted())
    return csv_response("runs.csv", exports.RUN_COLUMNS, map(exports.run_cells, rows))


@require_safe
@vary_on_headers("HX-Request")
def run_detail(request: SignedInRequest, run_id: int) -> HttpResponse:
    """The page; for htmx only the parts that change when the run ends."""
    run = _run_or_404(run_id)
    view = run_view(run)
    operators = OperatorFilterForm(request.GET)
    metric = MetricForm(request.GET).chosen()
    context = {
        "view": view,
        "run": run,
        "status": status_of(run),
        "log": log_tail(run),
        "trace": trace_panels(view.trace, operators) if view.trace else None,
        "floor": floor_for(run) if view.result else None,
        "disturbed": disturbed(view.result) if view.result else None,
        "warnings": other_warnings(view.result) if view.result else (),
        "samples": samples_panel(view.result, metric) if view.result else None,
        "nonce": new_nonce(),
        "may_cancel": may_cancel(request.user, run),
    }
    part = "dashboard/partials/run_ended.html" if request.htmx else "dashboard/run_detail.html"
    return render(request, part, context)


@require_safe
def run_status(request: SignedInRequest, run_id: int) -> HttpResponse:
    """The polled cell alone: it comes back without its poll once the run has ended."""
    run = _run_or_404(run_id)
    context = {"run": run, "status": status_of(run), "polled": True}
    return render(request, "dashboard/partials/run_status.html", context)


@require_safe
@vary_on_headers("HX-Request")
def run_log(request: SignedInRequest, run_id: int) -> HttpResponse:
    run = _run_or_404(run_id)
    part = "dashboard/partials/run_log_lines.html" if request.htmx else "dashboard/run_log.html"
    return render(request, part, {"run": run, "log": log_tail(run)})


@require_safe
def run_metrics_csv(request: SignedInRequest, run_id: int) -> HttpResponseBase:
    """Every metric of the run; with `?metric=` the samples of that one."""
    run = _run_or_404(run_id)
    result = result_view(run)
    if result is None:
        raise Http404(f"Run {run_id} has no result.")
    metric = result.metric(MetricForm(request.GET).chosen())
    name = f"{run.workload.model.name}_{run.platform.slug}_run{run.pk}"
    if metric is None:
        rows = (exports.metric_cells(value) for value in result.metrics)
        return csv_response(f"{name}_metrics.csv", exports.METRIC_COLUMNS, rows)
    samples = exports.sample_rows(metric)
    return csv_response(f"{name}_{metric.name}.csv", exports.SAMPLE_COLUMNS, samples)


@require_safe
def run_file(request: SignedInRequest, run_id: int, name: str) -> HttpResponseBase:
    run = _run_or_404(run_id)
    found = find_file(run, name, FileForm(request.GET).chosen())
    if found is None:
        raise Http404(f"Run {run_id} has no such file.")
    return download(request, found.artifact, f"run{run.pk}-{found.name}")
