"""The first page: how every model stands, and what needs a look."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.panels.overview import answer
from dashboard.queries import overview as queries
from dashboard.views.requests import SignedInRequest


@require_safe
def overview(request: SignedInRequest) -> HttpResponse:
    found = queries.overview()
    context = {"overview": found, "answer": answer(found), "columns": queries.columns()}
    return render(request, "dashboard/overview.html", context)
