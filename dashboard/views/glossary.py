"""The page of words."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.queries.glossary import sections


@require_safe
def glossary(request: HttpRequest) -> HttpResponse:
    return render(request, "dashboard/glossary.html", {"sections": sections()})
