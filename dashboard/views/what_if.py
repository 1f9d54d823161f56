"""A reader's own "what if" about a trace."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from dashboard.panels.what_if import what_if_panel
from dashboard.views.errors import refusal
from dashboard.views.found import ready_or_404
from dashboard.views.requests import SignedInRequest
from profiler.errors import UserError


@require_safe
@vary_on_headers("HX-Request")
def trace_what_if(request: SignedInRequest, trace_id: int) -> HttpResponse:
    """The box with the answer: alone for htmx, else on a page of its own."""
    try:
        box = what_if_panel(ready_or_404(trace_id), request.GET.dict())
    except UserError as error:
        return refusal(request, error, status=410)
    part = "dashboard/partials/what_if.html" if request.htmx else "dashboard/trace_what_if.html"
    return render(request, part, {"box": box, "row": box.row})
