"""Pages of tunings: the list, a new one, one with its ladder, closing, and its exports."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.forms.tuning import CloseForm, ListForm, NewTuningForm, StartForm
from dashboard.models import Repository, Tuning
from dashboard.panels.ladder import calibration_panel, ladder_panel
from dashboard.queries.tuning import PAGE_SIZE, get_tuning, tuning_page, tuning_view
from dashboard.queries.tuning_calibration import calibration
from dashboard.queries.tuning_next import next_of
from dashboard.queries.tuning_start import start_address, tuning_initial
from dashboard.services.tuning import close_tuning, open_tuning
from dashboard.views import tuning_exports as exports
from dashboard.views.downloads import csv_response
from dashboard.views.requests import SignedInRequest, operators_only
from profiler.errors import UserError


def tuning_or_404(tuning_id: int) -> Tuning:
    """The tuning with everything its pages name."""
    row = get_tuning(tuning_id)
    if row is None:
        raise Http404(f"There is no tuning {tuning_id}.")
    return row


@require_safe
def tuning_list(request: SignedInRequest) -> HttpResponse:
    form = ListForm(request.GET)
    wanted = form.wanted()
    page = tuning_page(wanted.page, wanted.state)
    context = {"form": form, "wanted": wanted, "page": page, "size": PAGE_SIZE}
    return render(request, "dashboard/tuning_list.html", context)


@require_safe
@operators_only
def tuning_start(request: SignedInRequest) -> HttpResponse:
    """From a finding, a change or a run to the form of the next iteration."""
    return redirect(start_address(StartForm(request.GET).wish()))


@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def tuning_new(request: SignedInRequest) -> HttpResponse:
    if request.method != "POST":
        form = NewTuningForm(initial=tuning_initial(StartForm(request.GET).wish()))
        return _form_page(request, form, 200)
    form = NewTuningForm(request.POST)
    if form.is_valid():
        try:
            made = open_tuning(form.wanted(), request.user)
        except UserError as error:
            form.add_error(None, error.line())
        else:
            origin = form.origin()
            if origin:
                address = reverse("iteration-new", args=[made.pk])
                return redirect(f"{address}?{urlencode(origin)}")
            return redirect("tuning-detail", made.pk)
    return _form_page(request, form, 422)


def _form_page(request: SignedInRequest, form: NewTuningForm, status: int) -> HttpResponse:
    context = {"form": form, "has_repositories": Repository.objects.exists()}
    return render(request, "dashboard/tuning_new.html", context, status=status)


@require_safe
def tuning_detail(request: SignedInRequest, tuning_id: int) -> HttpResponse:
    row = tuning_or_404(tuning_id)
    view = tuning_view(row)
    known = calibration()
    context = {
        "row": row,
        "view": view,
        "ladder": ladder_panel(view),
        "calibration": calibration_panel(known),
        "next": next_of(row, list(row.iterations.all()), known),
    }
    return render(request, "dashboard/tuning_detail.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def tuning_close(request: SignedInRequest, tuning_id: int) -> HttpResponse:
    row = tuning_or_404(tuning_id)
    form = CloseForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            close_tuning(tuning_id, form.cleaned_data["reason"], request.user)
        except UserError as error:
            form.add_error(None, error.line())
        else:
            messages.success(request, "The tuning is closed; its ladder stays.")
            return redirect("tuning-detail", tuning_id)
    status = 422 if request.method == "POST" else 200
    context = {"row": row, "view": tuning_view(row), "form": form}
    return render(request, "dashboard/tuning_close.html", context, status=status)


@require_safe
def tuning_iterations_csv(request: SignedInRequest, tuning_id: int) -> HttpResponseBase:
    view = tuning_view(tuning_or_404(tuning_id))
    rows = map(exports.iteration_cells, view.tried)
    return csv_response(f"tuning{tuning_id}_iterations.csv", exports.ITERATION_COLUMNS, rows)


@require_safe
def tuning_ladder_csv(request: SignedInRequest, tuning_id: int) -> HttpResponseBase:
    view = tuning_view(tuning_or_404(tuning_id))
    name = f"tuning{tuning_id}_ladder.csv"
    return csv_response(name, exports.LADDER_COLUMNS, exports.ladder_cells(view))


@require_safe
def tuning_calibration_csv(request: SignedInRequest) -> HttpResponseBase:
    rows = map(exports.prediction_cells, calibration().rows)
    return csv_response("predictions.csv", exports.PREDICTION_COLUMNS, rows)


@require_safe
def tuning_markdown(request: SignedInRequest, tuning_id: int) -> HttpResponse:
    view = tuning_view(tuning_or_404(tuning_id))
    address = request.build_absolute_uri(reverse("tuning-detail", args=[tuning_id]))
    response = HttpResponse(
        exports.markdown(view, address), content_type="text/markdown; charset=utf-8"
    )
    response["Content-Disposition"] = f'attachment; filename="tuning{tuning_id}.md"'
    return response


@require_safe
def tuning_report(request: SignedInRequest, tuning_id: int) -> HttpResponse:
    """One HTML file without anything from outside, to be saved and sent."""
    view = tuning_view(tuning_or_404(tuning_id))
    known = calibration()
    context = {
        "row": view.row,
        "view": view,
        "ladder": ladder_panel(view),
        "next": next_of(view.row, list(view.row.iterations.all()), known),
    }
    response = render(request, "dashboard/tuning_report.html", context)
    response["Content-Disposition"] = f'attachment; filename="tuning{tuning_id}.html"'
    return response
