"""The page of retention, the buttons that pin, and the table of what fills the disk."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe
from django.views.decorators.vary import vary_on_headers

from dashboard.forms.retention import PinForm, PolicyForm
from dashboard.models import Run, Trace
from dashboard.queries.retention import EXPORT_ROWS, disk_use, plan, retention_view
from dashboard.queries.run_detail import get_run
from dashboard.services.retention import pin, set_policy, unpin
from dashboard.views.downloads import csv_response
from dashboard.views.found import trace_or_404
from dashboard.views.requests import SignedInRequest, operators_only, post_only
from profiler.errors import UserError

PLAN_COLUMNS = ("kind", "file", "bytes", "trace", "run", "recorded_at")
DISK_COLUMNS = (
    "model",
    "raw_bytes",
    "columns_bytes",
    "summaries_bytes",
    "results_bytes",
    "all_bytes",
)


@require_safe
def retention(request: SignedInRequest) -> HttpResponse:
    view = retention_view()
    context = {"view": view, "form": PolicyForm.showing(view.plan.policy)}
    return render(request, "dashboard/retention.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def retention_policy(request: SignedInRequest) -> HttpResponse:
    """Set the policy; the form stands on the page of retention too."""
    if not request.user.may_admin:
        raise PermissionDenied("Only admins say how long files are kept: what is removed is gone.")
    view = retention_view()
    posted = request.method == "POST"
    form = PolicyForm(request.POST) if posted else PolicyForm.showing(view.plan.policy)
    if posted and form.is_valid():
        days = form.cleaned_data
        try:
            set_policy(days["raw_days"], days["columns_days"], request.user)
        except UserError as error:
            form.add_error(None, error.line())
        else:
            messages.success(request, "The policy is set; below is what the next pass removes.")
            return redirect("retention")
    context = {"view": view, "form": form, "editing": True}
    return render(request, "dashboard/retention.html", context, status=422 if posted else 200)


@require_safe
def retention_plan_csv(request: SignedInRequest) -> HttpResponseBase:
    """The dry run: every file that the next pass would remove."""
    rows = (
        (row.kind, row.title, row.size_bytes, row.trace_id, row.run_id, row.recorded_at.isoformat())
        for row in plan(EXPORT_ROWS).rows
    )
    return csv_response("retention_plan.csv", PLAN_COLUMNS, rows)


@require_safe
@vary_on_headers("HX-Request")
def retention_disk(request: SignedInRequest) -> HttpResponse:
    """Disk use by model and kind: alone for htmx, else on a page of its own."""
    part = "partials/retention_disk.html" if request.htmx else "retention_disk.html"
    return render(request, f"dashboard/{part}", {"disk": disk_use()})


@require_safe
def retention_disk_csv(request: SignedInRequest) -> HttpResponseBase:
    rows = (
        (row.model, row.raw, row.columns, row.summaries, row.results, row.total)
        for row in disk_use().rows
    )
    return csv_response("disk_use.csv", DISK_COLUMNS, rows)


@post_only
@operators_only
def run_pin(request: SignedInRequest, run_id: int) -> HttpResponse:
    return _pin(request, _run_or_404(run_id))


@post_only
@operators_only
def run_unpin(request: SignedInRequest, run_id: int) -> HttpResponse:
    return _unpin(request, _run_or_404(run_id))


@post_only
@operators_only
def trace_pin(request: SignedInRequest, trace_id: int) -> HttpResponse:
    return _pin(request, trace_or_404(trace_id))


@post_only
@operators_only
def trace_unpin(request: SignedInRequest, trace_id: int) -> HttpResponse:
    return _unpin(request, trace_or_404(trace_id))


def _pin(request: SignedInRequest, subject: Run | Trace) -> HttpResponse:
    form = PinForm(request.POST)
    try:
        if not form.is_valid():
            raise UserError(" ".join(map(str, form.errors["reason"])).rstrip("."))
        pin(subject, form.cleaned_data["reason"], request.user)
    except UserError as error:
        messages.error(request, error.line())
    else:
        messages.success(request, "Pinned: no policy removes its files.")
    return redirect(_address(subject))


def _unpin(request: SignedInRequest, subject: Run | Trace) -> HttpResponse:
    try:
        unpin(subject, request.user)
    except UserError as error:
        messages.error(request, error.line())
    else:
        messages.success(request, "The pin is off: the policy decides again.")
    return redirect(_address(subject))


def _address(subject: Run | Trace) -> str:
    name = "run-detail" if isinstance(subject, Run) else "trace-detail"
    return reverse(name, args=[subject.pk])


def _run_or_404(run_id: int) -> Run:
    run = get_run(run_id)
    if run is None:
        raise Http404(f"There is no run {run_id}.")
    return run
