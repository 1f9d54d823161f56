"""Pages of changes: the inbox, one change, and what may be done with it."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from dashboard.figures.change import change_figure
from dashboard.forms.changes import AcknowledgeForm, ChangeFilterForm
from dashboard.models import Change
from dashboard.queries.changes import (
    PAGE_SIZE,
    change_page,
    change_view,
    exported_changes,
    get_change,
)
from dashboard.services.changes import acknowledge_change, confirm_change
from dashboard.views.change_exports import (
    CHANGE_COLUMNS,
    POINT_COLUMNS,
    change_cells,
    point_cells,
)
from dashboard.views.downloads import csv_response
from dashboard.views.requests import SignedInRequest, operators_only, post_only
from profiler.errors import UserError


def _change_or_404(change_id: int) -> Change:
    row = get_change(change_id)
    if row is None:
        raise Http404(f"There is no change {change_id}.")
    return row


@require_safe
def change_list(request: SignedInRequest) -> HttpResponse:
    form = ChangeFilterForm(request.GET)
    wanted = form.wanted()
    context = {"form": form, "wanted": wanted, "page": change_page(wanted), "size": PAGE_SIZE}
    context["by_policy"] = settings.CONFIRM_CHANGES
    return render(request, "dashboard/change_list.html", context)


@require_safe
def change_list_csv(request: SignedInRequest) -> HttpResponseBase:
    rows = exported_changes(ChangeFilterForm(request.GET).wanted())
    return csv_response("changes.csv", CHANGE_COLUMNS, map(change_cells, rows))


@require_safe
def change_detail(request: SignedInRequest, change_id: int) -> HttpResponse:
    row = _change_or_404(change_id)
    view = change_view(row)
    context = {
        "row": row,
        "view": view,
        "figure": change_figure(view),
        "form": AcknowledgeForm(),
        "by_policy": settings.CONFIRM_CHANGES,
    }
    return render(request, "dashboard/change_detail.html", context)


@require_safe
def change_points_csv(request: SignedInRequest, change_id: int) -> HttpResponseBase:
    view = change_view(_change_or_404(change_id))
    name = f"change{change_id}_points.csv"
    return csv_response(name, POINT_COLUMNS, point_cells(view))


@post_only
@operators_only
def change_confirm(request: SignedInRequest, change_id: int) -> HttpResponse:
    _change_or_404(change_id)
    try:
        confirm_change(change_id, request.user)
    except UserError as error:
        messages.error(request, error.line())
    else:
        messages.success(request, "The two commits are queued to be measured in pairs.")
    return redirect("change-detail", change_id)


@post_only
@operators_only
def change_acknowledge(request: SignedInRequest, change_id: int) -> HttpResponse:
    _change_or_404(change_id)
    try:
        acknowledge_change(change_id, request.user, AcknowledgeForm(request.POST).reason_given())
    except UserError as error:
        messages.error(request, error.line())
    else:
        messages.success(request, "The change is acknowledged and leaves the inbox.")
    return redirect("change-detail", change_id)
