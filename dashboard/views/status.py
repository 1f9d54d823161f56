"""The page that says what is up, what waits and what broke."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from dashboard.queries import status as queries
from dashboard.views.requests import SignedInRequest


@require_safe
@vary_on_headers("HX-Request")
def status(request: SignedInRequest) -> HttpResponse:
    """The page; for its poll only the cells."""
    part = "dashboard/_status_cells.html" if request.htmx else "dashboard/status.html"
    return render(request, part, {"status": queries.status()})
