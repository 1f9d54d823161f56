"""Pages of traces: the list, uploads, one trace with its panels, and its files."""

from __future__ import annotations

from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods, require_safe
from django.views.decorators.vary import vary_on_headers

from dashboard.forms.traces import OperatorFilterForm, TraceFilterForm, UploadForm
from dashboard.panels.operators import operators_panel
from dashboard.panels.trace import trace_panels
from dashboard.queries.traces import PAGE_SIZE, operator_export, trace_page
from dashboard.services.traces import TooLargeError, add_upload, add_uploads, redact, reingest
from dashboard.views import exports
from dashboard.views.downloads import (
    csv_response,
    download,
    gzipped_json,
    json_file,
    json_response,
)
from dashboard.views.found import ready_or_404, trace_or_404
from dashboard.views.requests import SignedInRequest, operators_only, post_only
from dashboard.views.uploads import limited_upload
from profiler.errors import UserError


@require_safe
def trace_list(request: SignedInRequest) -> HttpResponse:
    form = TraceFilterForm(request.GET)
    wanted = form.wanted()
    context = {"form": form, "wanted": wanted, "page": trace_page(wanted), "size": PAGE_SIZE}
    return render(request, "dashboard/trace_list.html", {**context, "upload": UploadForm()})


# The size is checked before anything reads the body; the token is checked right after.
@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
@limited_upload
@csrf_protect
def trace_upload(request: SignedInRequest) -> HttpResponse:
    if request.method != "POST":
        return render(request, "dashboard/trace_upload.html", {"upload": UploadForm()})
    form = UploadForm(request.POST, request.FILES)
    status = 422
    if form.is_valid():
        try:
            return _stored(request, form.cleaned_data["file"])
        except UserError as error:
            form.add_error("file", error.line())
            status = 413 if isinstance(error, TooLargeError) else 422
    return render(request, "dashboard/trace_upload.html", {"upload": form}, status=status)


def _stored(request: SignedInRequest, files: list[UploadedFile[bytes]]) -> HttpResponse:
    """One file is a trace; several are the ranks of one job."""
    if len(files) == 1:
        trace = add_upload(files[0], request.user)
        messages.success(request, f"Stored as trace {trace.pk}; it is being read.")
        return redirect("trace-detail", trace.pk)
    whole = add_uploads(files, request.user)
    messages.success(request, f"Stored {len(files)} traces as set {whole.pk}; they are being read.")
    return redirect("trace-set", whole.pk)


@require_safe
@vary_on_headers("HX-Request")
def trace_detail(request: SignedInRequest, trace_id: int) -> HttpResponse:
    """The page; for htmx only the panels, which appear once the trace is read."""
    trace = trace_or_404(trace_id)
    context = {"trace": trace_panels(trace, OperatorFilterForm(request.GET))}
    part = "dashboard/partials/trace_panels.html" if request.htmx else "dashboard/trace_detail.html"
    return render(request, part, context)


@require_safe
def trace_status(request: SignedInRequest, trace_id: int) -> HttpResponse:
    """The polled cell alone: it comes back without its poll once the trace is read."""
    trace = trace_or_404(trace_id)
    return render(request, "dashboard/partials/trace_status.html", {"row": trace, "polled": True})


@require_safe
@vary_on_headers("HX-Request")
def trace_operators(request: SignedInRequest, trace_id: int) -> HttpResponse:
    trace = ready_or_404(trace_id)
    context = {"operators": operators_panel(trace, OperatorFilterForm(request.GET)), "row": trace}
    part = "dashboard/partials/operators.html" if request.htmx else "dashboard/trace_operators.html"
    return render(request, part, context)


@require_safe
def trace_operators_csv(request: SignedInRequest, trace_id: int) -> HttpResponseBase:
    trace = ready_or_404(trace_id)
    rows = operator_export(trace, OperatorFilterForm(request.GET).wanted())
    cells = map(exports.operator_cells, rows.iterator())
    return csv_response(f"trace{trace.pk}_operators.csv", exports.OPERATOR_COLUMNS, cells)


@require_safe
def trace_operators_json(request: SignedInRequest, trace_id: int) -> HttpResponseBase:
    trace = ready_or_404(trace_id)
    rows = operator_export(trace, OperatorFilterForm(request.GET).wanted())
    cells = map(exports.operator_cells, rows.iterator())
    return json_response(f"trace{trace.pk}_operators.json", exports.OPERATOR_COLUMNS, cells)


@require_safe
def trace_flame(request: SignedInRequest, trace_id: int) -> HttpResponseBase:
    trace = ready_or_404(trace_id)
    assert trace.flame is not None, "the database keeps a ready trace from having none"
    return gzipped_json(request, trace.flame)


@require_safe
def trace_report(request: SignedInRequest, trace_id: int) -> HttpResponseBase:
    trace = ready_or_404(trace_id)
    assert trace.report is not None, "the database keeps a ready trace from having none"
    return json_file(request, trace.report)


@require_safe
def trace_raw(request: SignedInRequest, trace_id: int) -> HttpResponseBase:
    trace = trace_or_404(trace_id)
    return download(request, trace.raw, trace.name)


@require_safe
def trace_redacted(request: SignedInRequest, trace_id: int) -> HttpResponseBase:
    """The copy without credentials, environment, home folders, host and user names."""
    trace = trace_or_404(trace_id)
    if trace.redacted is None:
        raise Http404(f"Trace {trace_id} has no copy without personal details.")
    return download(request, trace.redacted, f"trace{trace.pk}-without-personal-details.json.gz")


@post_only
@operators_only
def trace_redact(request: SignedInRequest, trace_id: int) -> HttpResponse:
    trace_or_404(trace_id)
    try:
        redact(trace_id, request.user)
    except UserError as error:
        messages.error(request, error.line())
    else:
        messages.success(request, "The trace is read again; then the copy can be downloaded.")
    return redirect("trace-detail", trace_id)


@post_only
@operators_only
def trace_again(request: SignedInRequest, trace_id: int) -> HttpResponse:
    trace_or_404(trace_id)
    try:
        reingest(trace_id, request.user)
    except UserError as error:
        messages.error(request, error.line())
    else:
        messages.success(request, "The trace is being read again.")
    return redirect("trace-detail", trace_id)
