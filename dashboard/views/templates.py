"""Pages of templates: the list, one version, editing it, and queueing what it expands to."""

from __future__ import annotations

import secrets

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.forms.runs import new_nonce
from dashboard.forms.templates import (
    MatrixForm,
    NewTemplateForm,
    PlanForm,
    QueueForm,
    TextForm,
    VersionForm,
)
from dashboard.models import Run, TemplateVersion
from dashboard.panels.table import table_view
from dashboard.panels.workloads import workload_table
from dashboard.queries import templates as queries
from dashboard.queries.run_status import workers_up
from dashboard.services import templates as services
from dashboard.services.catalog import device_of, ensure_platform
from dashboard.services.template_text import write
from dashboard.services.templates import SEED_BITS
from dashboard.views.requests import SignedInRequest, operators_only
from profiler.errors import UserError

PAGE = ["GET", "HEAD", "POST"]


def _version_or_404(name: str, number: int | None) -> TemplateVersion:
    version = queries.get_version(name, number)
    if version is None:
        raise Http404(f"There is no template {name} of that version.")
    return version


@require_safe
def template_list(request: SignedInRequest) -> HttpResponse:
    context = {"rows": queries.template_rows()}
    return render(request, "dashboard/template_list.html", context)


@require_safe
def template_detail(request: SignedInRequest, name: str) -> HttpResponse:
    version = _version_or_404(name, VersionForm(request.GET).chosen())
    matrix = services.matrix_of(version)
    context = {
        "stored": version,
        "versions": queries.versions_of(version),
        "groups": queries.groups_of(version),
        "axes": matrix.axes,
        "table": None,
    }
    try:
        plan = queries.plan(services.runs_of(version))
        context["table"] = table_view(workload_table(plan.rows, timed=False), request.GET)
    except UserError as error:
        context["problem"] = error.line()
    return render(request, "dashboard/template_detail.html", context)


@require_safe
def template_file(request: SignedInRequest, name: str) -> HttpResponse:
    """The matrix as TOML, to be saved; `template-new` reads it back."""
    version = _version_or_404(name, VersionForm(request.GET).chosen())
    response = HttpResponse(version.text, content_type="application/toml; charset=utf-8")
    saved = f"{version.template.name}-v{version.number}.toml"
    response["Content-Disposition"] = f'attachment; filename="{saved}"'
    return response


@require_http_methods(PAGE)
@operators_only
def template_new(request: SignedInRequest) -> HttpResponse:
    if request.method != "POST":
        return render(request, "dashboard/template_new.html", {"form": NewTemplateForm()})
    form = NewTemplateForm(request.POST, request.FILES)
    if form.is_valid():
        try:
            return _saved(request, form.cleaned_data["text"], base=None)
        except UserError as error:
            form.add_error("file" if form.cleaned_data["file"] else "text", error.line())
    return render(request, "dashboard/template_new.html", {"form": form}, status=422)


@require_http_methods(PAGE)
@operators_only
def template_edit(request: SignedInRequest, name: str) -> HttpResponse:
    """The matrix field by field, or its text; whichever is sent becomes the next version."""
    version = _version_or_404(name, VersionForm(request.GET).chosen())
    number, stored = version.number, services.matrix_of(version)
    text = TextForm(initial={"text": version.text, "base": number})
    matrix = MatrixForm(stored, base=number)
    if request.method != "POST":
        return _edit_page(request, version, matrix, text)
    as_text = "text" in request.POST
    text = TextForm(request.POST) if as_text else text
    matrix = matrix if as_text else MatrixForm(stored, request.POST, base=number)
    if (text if as_text else matrix).is_valid():
        form = text if as_text else matrix
        try:
            new = text.cleaned_data["text"] if as_text else write(matrix.matrix())
            return _saved(request, new, base=form.cleaned_data["base"], name=name)
        except UserError as error:
            text.add_error("text", error.line()) if as_text else matrix.place_error(error.line())
    return _edit_page(request, version, matrix, text, status=422)


def _edit_page(
    request: SignedInRequest,
    version: TemplateVersion,
    matrix: MatrixForm,
    text: TextForm,
    *,
    status: int = 200,
) -> HttpResponse:
    context = {"stored": version, "matrix": matrix, "text": text}
    return render(request, "dashboard/template_edit.html", context, status=status)


def _saved(
    request: SignedInRequest, text: str, *, base: int | None, name: str = ""
) -> HttpResponse:
    row = services.save_template(text, request.user, base=base, name=name)
    said = f"Stored as version {row.number} of {row.template.name}: {row.runs} runs."
    messages.success(request, said)
    return redirect("template-detail", row.template.name)


@require_http_methods(PAGE)
@operators_only
def template_run(request: SignedInRequest, name: str) -> HttpResponse:
    """GET shows what would be queued and how long it usually takes; POST queues it."""
    asked = request.POST if request.method == "POST" else request.GET
    version = _version_or_404(name, VersionForm(asked).chosen())
    own = services.models_of(services.matrix_of(version))
    if request.method != "POST":
        return _plan_page(request, version, PlanForm.of(request.GET, models=own))
    form = QueueForm(request.POST, models=own)
    if form.is_valid():
        try:
            runs = _queue(request, version, form)
        except UserError as error:
            form.add_error(None, error.line())
        else:
            messages.success(request, f"{len(runs)} runs queued in random order.")
            return redirect("group-detail", runs[0].group_id)
    return _plan_page(request, version, form, status=422)


def _queue(request: SignedInRequest, version: TemplateVersion, form: QueueForm) -> list[Run]:
    data = form.cleaned_data
    platform = ensure_platform(data["platform"])
    wanted = services.runs_of(version, models=form.wanted_models(), device=platform.device)
    return services.queue_template(
        version,
        wanted,
        platform=platform,
        user=request.user,
        seed=data["seed"],
        key=data["nonce"],
    )


def _plan_page(
    request: SignedInRequest, version: TemplateVersion, form: PlanForm, *, status: int = 200
) -> HttpResponse:
    context: dict[str, object] = {"stored": version, "form": form}
    if form.is_valid():
        slug = form.cleaned_data["platform"]
        try:
            wanted = services.runs_of(version, models=form.wanted_models(), device=device_of(slug))
            plan = queries.plan(wanted, slug)
            context |= {"plan": plan, "workers": workers_up(slug), "nonce": new_nonce()}
            context["seed"] = secrets.randbits(SEED_BITS)
            context["table"] = table_view(workload_table(plan.rows, timed=True), request.GET)
        except UserError as error:
            form.add_error(None, error.line())
            status = 422
    return render(request, "dashboard/template_run.html", context, status=status)
