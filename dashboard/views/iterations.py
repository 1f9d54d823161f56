"""Pages of iterations: a new one, one with its verdict, measuring, attaching, deciding."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.forms.tuning import (
    AttachForm,
    DecisionForm,
    MeasureForm,
    NewIterationForm,
    StartForm,
)
from dashboard.models import Iteration, Tuning
from dashboard.queries.iterations import get_iteration, iteration_page
from dashboard.queries.tuning_calibration import calibration
from dashboard.queries.tuning_start import StartWish, finding_ref, hint_of, iteration_initial
from dashboard.services.tuning import (
    Decision,
    NewIteration,
    add_iteration,
    attach_comparison,
    decide_iteration,
    measure_iteration,
)
from dashboard.services.tuning_ladder import effect_of_gain
from dashboard.views.requests import SignedInRequest, operators_only, post_only
from dashboard.views.tuning import tuning_or_404
from profiler.errors import UserError
from profiler.metrics import METRICS


def _iteration_or_404(iteration_id: int) -> Iteration:
    row = get_iteration(iteration_id)
    if row is None:
        raise Http404(f"There is no iteration {iteration_id}.")
    return row


@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def iteration_new(request: SignedInRequest, tuning_id: int) -> HttpResponse:
    """Filled from the finding or the change that the address names."""
    row = tuning_or_404(tuning_id)
    wish = StartForm(request.GET).wish()
    posted = request.method == "POST"
    form = NewIterationForm(request.POST if posted else None, initial=iteration_initial(wish))
    if posted and form.is_valid():
        try:
            made = _add(row, wish, form, request)
        except UserError as error:
            form.add_error(None, error.line())
        else:
            return redirect("iteration-detail", made.pk)
    context = {"row": row, "form": form, "wish": wish, "hint": hint_of(wish, calibration())}
    status = 422 if posted else 200
    return render(request, "dashboard/iteration_new.html", context, status=status)


def _add(
    row: Tuning, wish: StartWish, form: NewIterationForm, request: SignedInRequest
) -> Iteration:
    data = form.cleaned_data
    gain = data["gain"]
    direction = METRICS[row.metric].direction
    wanted = NewIteration(
        hypothesis=data["hypothesis"],
        finding=finding_ref(wish),
        predicted_effect=None if gain is None else effect_of_gain(gain / 100, direction),
    )
    made = add_iteration(row, wanted, request.user, change=wish.change)
    if data["candidate"]:
        try:
            measure_iteration(made.pk, data["candidate"], request.user)
        except UserError as error:
            messages.error(request, f"The idea is kept, but not measured: {error.line()}")
    return made


@require_safe
def iteration_detail(request: SignedInRequest, iteration_id: int) -> HttpResponse:
    return _page(request, _iteration_or_404(iteration_id), DecisionForm(), 200)


def _page(
    request: SignedInRequest, row: Iteration, decision: DecisionForm, status: int
) -> HttpResponse:
    context = {
        "page": iteration_page(row),
        "row": row,
        "tuning": row.tuning,
        "measure": MeasureForm(initial={"candidate": row.candidate_ref}),
        "attach": AttachForm(),
        "decision": decision,
    }
    return render(request, "dashboard/iteration_detail.html", context, status=status)


@post_only
@operators_only
def iteration_measure(request: SignedInRequest, iteration_id: int) -> HttpResponse:
    _iteration_or_404(iteration_id)
    form = MeasureForm(request.POST)
    if not form.is_valid():
        messages.error(request, _first(form.errors.values()))
        return redirect("iteration-detail", iteration_id)
    try:
        made = measure_iteration(iteration_id, form.cleaned_data["candidate"], request.user)
    except UserError as error:
        messages.error(request, error.line())
    else:
        messages.success(request, f"Comparison {made.pk} measures it, pair by pair.")
    return redirect("iteration-detail", iteration_id)


@post_only
@operators_only
def iteration_attach(request: SignedInRequest, iteration_id: int) -> HttpResponse:
    _iteration_or_404(iteration_id)
    form = AttachForm(request.POST)
    if not form.is_valid():
        messages.error(request, _first(form.errors.values()))
        return redirect("iteration-detail", iteration_id)
    try:
        attach_comparison(iteration_id, form.cleaned_data["comparison"], request.user)
    except UserError as error:
        messages.error(request, error.line())
    else:
        messages.success(request, "The comparison speaks for this iteration.")
    return redirect("iteration-detail", iteration_id)


def _first(errors: object) -> str:
    """The first error of a form with one field."""
    return next((str(found[0]) for found in errors), "")  # type: ignore[attr-defined]


def _decide(request: SignedInRequest, row: Iteration) -> HttpResponse:
    form = DecisionForm(request.POST)
    if not form.is_valid():
        return _page(request, row, form, 422)
    data = form.cleaned_data
    decision = Decision(
        keep=data["decision"] == "keep",
        reason=data["reason"],
        despite=data["despite"],
        commit=data["commit"],
    )
    try:
        decided = decide_iteration(row.pk, decision, request.user)
    except UserError as error:
        form.add_error(None, error.line())
        return _page(request, row, form, 422)
    messages.success(request, f"Iteration {decided.number} is {decided.state}.")
    return redirect("tuning-detail", decided.tuning_id)


@post_only
@operators_only
def iteration_decide(request: SignedInRequest, iteration_id: int) -> HttpResponse:
    """Keep or revert; what is wrong is said beside the form."""
    return _decide(request, _iteration_or_404(iteration_id))
