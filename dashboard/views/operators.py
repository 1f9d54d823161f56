"""Operators across traces: their list, and the page of one with its history and notes."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.forms.operators import OperatorForm
from dashboard.models import NoteKind
from dashboard.queries.notes import notes_of_operators, query_of
from dashboard.queries.operators import LIST_SIZE, operator_history, operator_list
from dashboard.services.notes import NoteTarget
from dashboard.views.requests import SignedInRequest


@require_safe
def operator(request: SignedInRequest) -> HttpResponse:
    """One operator by its name in the address, which may hold anything; without one the list."""
    form = OperatorForm(request.GET)
    name = form.name_wanted()
    if not name:
        context = {"form": form, "text": form.text(), "size": LIST_SIZE}
        context["operators"] = operator_list(form.text())
        return render(request, "dashboard/operator_list.html", context)
    target = NoteTarget(kind=NoteKind.OPERATOR, operator=name)
    context = {
        "name": name,
        "history": operator_history(name),
        "notes": notes_of_operators([name]).get(name, ()),
        "query": query_of(target),
        "about": name,
    }
    return render(request, "dashboard/operator.html", context)
