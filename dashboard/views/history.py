"""Pages of models on platforms: their histories, operators over commits, annotations."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.forms.history import (
    AnnotationForm,
    HistoryForm,
    ModelListForm,
    RemoveForm,
    WorkloadForm,
    with_sources,
)
from dashboard.models import Annotation
from dashboard.panels import history as panels
from dashboard.panels import operator_history
from dashboard.panels.model import model_answer
from dashboard.queries import overview
from dashboard.queries.history import ModelHistory, launches, model_history, model_rows
from dashboard.queries.standings import StandingDetail, standings_of
from dashboard.services.annotations import delete_annotation, write_annotation
from dashboard.views.downloads import csv_response
from dashboard.views.requests import SignedInRequest, may_remove, operators_only, post_only


def _history_or_404(form: HistoryForm, name: str, platform: str) -> ModelHistory:
    found = model_history(name, platform, form.wanted())
    if found is None:
        raise Http404(f"There is no model {name} on a platform {platform}.")
    return found


def _standing_or_404(
    form: WorkloadForm, name: str, platform: str, *, traced: bool = False
) -> StandingDetail:
    """The workload asked for, else the one whose run is the newest, if asked one with a trace."""
    found = [one for one in standings_of(name, platform) if one.measure]
    if traced:
        found.sort(key=lambda one: one.trace_id is None)
    number = form.number()
    chosen = (one for one in found if number is None or one.workload_id == number)
    standing = next(chosen, None)
    if standing is None:
        raise Http404(f"No such workload of {name} was measured on {platform}.")
    return standing


@require_safe
def model_list(request: SignedInRequest) -> HttpResponse:
    form = ModelListForm(request.GET)
    context = {
        "form": form,
        "text": form.text(),
        "page": overview.model_page(form.text(), form.number()),
        "size": overview.ROWS,
        "columns": overview.columns(),
    }
    return render(request, "dashboard/model_list.html", context)


@require_safe
def model_detail(request: SignedInRequest, name: str, platform: str) -> HttpResponse:
    form = HistoryForm(request.GET)
    view = _history_or_404(form, name, platform)
    shown = panels.history_panels(view.histories, request.GET)
    context = {
        "view": view,
        "form": with_sources(form, view.sources),
        "answer": model_answer(view),
        "panels": shown,
        "annotate": AnnotationForm(),
    }
    return render(request, "dashboard/model_detail.html", context)


@require_safe
def model_history_csv(request: SignedInRequest, name: str, platform: str) -> HttpResponseBase:
    """Every launch of one workload, oldest place first."""
    form = WorkloadForm(request.GET)
    standing = _standing_or_404(form, name, platform)
    rows = map(panels.csv_cells, launches(standing, form.source_wanted()))
    file = f"{standing.model}_{standing.platform}_{standing.scenario}_history.csv"
    return csv_response(file, panels.CSV_COLUMNS, rows)


@require_safe
def model_operators(request: SignedInRequest, name: str, platform: str) -> HttpResponse:
    """Time per step of one operator over the commits of a workload."""
    form = WorkloadForm(request.GET)
    standing = _standing_or_404(form, name, platform, traced=True)
    panel = operator_history.operator_panel(standing, form, request.GET)
    context = {"standing": standing, "panel": panel, "form": form}
    return render(request, "dashboard/model_operators.html", context)


@require_safe
def model_operators_csv(request: SignedInRequest, name: str, platform: str) -> HttpResponseBase:
    form = WorkloadForm(request.GET)
    standing = _standing_or_404(form, name, platform, traced=True)
    rows = operator_history.csv_rows(operator_history.track_of(standing, form))
    file = f"{standing.model}_{standing.platform}_{standing.scenario}_operator.csv"
    return csv_response(file, operator_history.CSV_COLUMNS, rows)


@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def model_annotate(request: SignedInRequest, name: str, platform: str) -> HttpResponse:
    """A remark on the charts; the form stands on the model's page too."""
    model, where = model_rows(name, platform)
    if model is None or where is None:
        raise Http404(f"There is no model {name} on a platform {platform}.")
    posted = request.method == "POST"
    form = AnnotationForm(request.POST if posted else None)
    if form.is_valid():
        place = form.place(model, where)
        if place is not None:
            write_annotation(request.user, place, form.cleaned_data["text"])
            messages.success(request, "The annotation stands on the charts.")
            return redirect("model-detail", name, platform)
    context = {"annotate": form, "name": name, "platform": platform}
    return render(request, "dashboard/model_annotate.html", context, status=422 if posted else 200)


@post_only
@operators_only
def model_unannotate(request: SignedInRequest, name: str, platform: str) -> HttpResponse:
    row = Annotation.objects.filter(pk=RemoveForm(request.POST).number() or 0).first()
    if row is None:
        messages.error(request, "That annotation is gone already.")
    elif not may_remove(request.user, row):
        messages.error(request, "Only its author or an admin may remove an annotation.")
    else:
        delete_annotation(row.pk, request.user)
        messages.success(request, "The annotation is removed.")
    return redirect("model-detail", name, platform)
