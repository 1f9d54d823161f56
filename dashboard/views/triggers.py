"""What operators do to runs: start, cancel, run again. Reading never writes."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from dashboard.forms.new_run import COMPILE_MODES, NewRunForm, initial_of
from dashboard.forms.runs import LikeForm, NonceForm
from dashboard.models import Run, User
from dashboard.queries.run_detail import get_run
from dashboard.services.catalog import ensure_platform
from dashboard.services.runs import cancel_run, create_runs, rerun
from dashboard.views.requests import SignedInRequest, may_cancel, operators_only, post_only
from profiler.catalog import BUILTIN
from profiler.errors import UserError


@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def run_new(request: SignedInRequest) -> HttpResponse:
    if request.method != "POST":
        return _form_page(request, _blank(request), 200)
    form = NewRunForm(request.POST, request.FILES)
    if form.is_valid():
        try:
            runs = _queue(form, request.user)
        except UserError as error:
            form.add_error(None, error.line())
        else:
            messages.success(request, f"{len(runs)} run{'s' if len(runs) > 1 else ''} queued.")
            return redirect("run-detail", runs[0].pk) if len(runs) == 1 else redirect("run-list")
    return _form_page(request, form, 422)


def _queue(form: NewRunForm, user: User) -> list[Run]:
    data = form.cleaned_data
    return create_runs(
        form.specs(),
        platform=ensure_platform(data["platform"]),
        user=user,
        key=data["nonce"],
        commit=form.commit_chosen(),
    )


def _form_page(request: SignedInRequest, form: NewRunForm, status: int) -> HttpResponse:
    context = {"form": form, "models": BUILTIN.values(), "compile_modes": COMPILE_MODES}
    return render(request, "dashboard/run_new.html", context, status=status)


def _blank(request: SignedInRequest) -> NewRunForm:
    """The form, starting from run `?like=` when that is given."""
    like = LikeForm(request.GET).chosen()
    run = get_run(like) if like else None
    return NewRunForm(initial=initial_of(run) if run else None)


@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def run_cancel(request: SignedInRequest, run_id: int) -> HttpResponse:
    """GET asks for confirmation; the run's page asks in a dialog and sends the same POST."""
    run = get_run(run_id)
    if run is None:
        raise Http404(f"There is no run {run_id}.")
    if not may_cancel(request.user, run):
        raise PermissionDenied("Only the person who started a run, or an admin, may cancel it.")
    if request.method != "POST":
        return render(request, "dashboard/run_cancel.html", {"run": run})
    try:
        run = cancel_run(run_id, request.user)
    except UserError as error:
        messages.error(request, error.line())
    else:
        done = "Cancelled." if run.is_terminal else "Cancelling: the worker stops at its next beat."
        messages.success(request, done)
    return redirect("run-detail", run_id)


@post_only
@operators_only
def run_again(request: SignedInRequest, run_id: int) -> HttpResponse:
    if get_run(run_id) is None:
        raise Http404(f"There is no run {run_id}.")
    try:
        run = rerun(run_id, request.user, key=NonceForm(request.POST).key())
    except UserError as error:
        messages.error(request, error.line())
        return redirect("run-detail", run_id)
    messages.success(request, f"Queued as run {run.pk}, a repetition of run {run_id}.")
    return redirect("run-detail", run.pk)
