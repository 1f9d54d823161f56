"""Pages of schedules: what is queued by itself, what waits, and what limits it."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.forms.automation import (
    ActionForm,
    BudgetForm,
    NewScheduleForm,
    PageForm,
    StartForm,
)
from dashboard.models import Budget, Platform, Schedule
from dashboard.queries import automation as queries
from dashboard.services import automation
from dashboard.services.clock import db_now
from dashboard.views.downloads import csv_response
from dashboard.views.requests import SignedInRequest, operators_only, post_only
from profiler.errors import UserError


def _schedule_or_404(schedule_id: int) -> Schedule:
    row = queries.get_schedule(schedule_id)
    if row is None:
        raise Http404(f"There is no schedule {schedule_id}.")
    return row


@require_safe
def automation_list(request: SignedInRequest) -> HttpResponse:
    """Schedules, the forecast of every queue, and what was fired last."""
    now = db_now()
    context = {
        "rows": queries.schedule_rows(now),
        "forecasts": queries.forecasts(now),
        "page": queries.firing_page(page=PageForm(request.GET).number()),
        "size": queries.PAGE_SIZE,
    }
    return render(request, "dashboard/automation_list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def schedule_new(request: SignedInRequest) -> HttpResponse:
    if request.method != "POST":
        form = NewScheduleForm(initial=StartForm(request.GET).initial_values())
        return render(request, "dashboard/schedule_new.html", {"form": form})
    form = NewScheduleForm(request.POST)
    if form.is_valid():
        try:
            row = automation.create_schedule(form.wanted(), request.user)
        except UserError as error:
            form.add_error(None, error.line())
        else:
            messages.success(request, f"{row.name} is on; a keeper looks at it now.")
            return redirect("schedule-detail", row.pk)
    return render(request, "dashboard/schedule_new.html", {"form": form}, status=422)


@require_safe
def schedule_detail(request: SignedInRequest, schedule_id: int) -> HttpResponse:
    row = _schedule_or_404(schedule_id)
    context = {
        "row": row,
        "when": queries.when_words(row),
        "page": queries.firing_page(row, PageForm(request.GET).number()),
        "size": queries.PAGE_SIZE,
        "form": ActionForm(),
    }
    return render(request, "dashboard/schedule_detail.html", context)


@require_safe
def schedule_firings_csv(request: SignedInRequest, schedule_id: int) -> HttpResponseBase:
    row = _schedule_or_404(schedule_id)
    name = f"schedule{row.pk}_firings.csv"
    return csv_response(name, queries.FIRING_COLUMNS, queries.firing_cells(row))


@post_only
@operators_only
def schedule_change(request: SignedInRequest, schedule_id: int) -> HttpResponse:
    """Switch it, fire it, or forget it."""
    row = _schedule_or_404(schedule_id)
    form = ActionForm(request.POST)
    action = form.cleaned_data["action"] if form.is_valid() else ""
    if action == "delete":
        automation.delete_schedule(row.pk, request.user)
        messages.success(request, f"{row.name} is forgotten; the runs it queued stay.")
        return redirect("automation-list")
    if action == "fire":
        automation.fire_now(row.pk, request.user, key=form.cleaned_data["nonce"])
        messages.success(request, "It is queued as soon as the budget allows.")
    elif action:
        automation.switch_schedule(row.pk, request.user, enabled=action == "on")
        messages.success(request, f"{row.name} is {action}.")
    else:
        messages.error(request, "Nothing was changed: press a button of the page.")
    return redirect("schedule-detail", row.pk)


@post_only
@operators_only
def firing_drop(request: SignedInRequest, firing_id: int) -> HttpResponse:
    row = queries.get_firing(firing_id)
    if row is None:
        raise Http404(f"There is no firing {firing_id}.")
    try:
        automation.drop_firing(firing_id, request.user)
    except UserError as error:
        messages.error(request, error.line())
    else:
        messages.success(request, "Dropped: it is not queued.")
    return redirect("schedule-detail", row.schedule_id)


@require_http_methods(["GET", "HEAD", "POST"])
@operators_only
def platform_budget(request: SignedInRequest, slug: str) -> HttpResponse:
    """What schedules may use of a platform a day."""
    platform = Platform.objects.filter(slug=slug).first()
    if platform is None:
        raise Http404(f"There is no platform {slug}.")
    limit = Budget.objects.filter(platform=platform).first()
    if request.method != "POST":
        form = BudgetForm(initial={"minutes": limit.minutes_per_day if limit else None})
        return render(request, "dashboard/budget.html", {"form": form, "platform": platform})
    form = BudgetForm(request.POST)
    if not form.is_valid():
        context = {"form": form, "platform": platform}
        return render(request, "dashboard/budget.html", context, status=422)
    automation.set_budget(slug, form.cleaned_data["minutes"], request.user)
    messages.success(request, f"The budget of {slug} is changed.")
    return redirect("automation-list")
