"""Pages of groups: the runs of one request and how far they are."""

from __future__ import annotations

import dataclasses

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.forms.runs import RunFilterForm
from dashboard.models import RunGroup
from dashboard.queries.groups import floors_in, get_group, group_status
from dashboard.queries.runs import PAGE_SIZE, run_page
from dashboard.views.requests import SignedInRequest


def _group_or_404(group_id: int) -> RunGroup:
    group = get_group(group_id)
    if group is None:
        raise Http404(f"There is no group {group_id}.")
    return group


@require_safe
def group_detail(request: SignedInRequest, group_id: int) -> HttpResponse:
    group = _group_or_404(group_id)
    form = RunFilterForm(request.GET)
    wanted = dataclasses.replace(form.wanted(), group=group.pk)
    context = {
        "group": group,
        "status": group_status(group),
        "floors": floors_in(group),
        "form": form,
        "wanted": wanted,
        "page": run_page(wanted),
        "size": PAGE_SIZE,
    }
    return render(request, "dashboard/group_detail.html", context)


@require_safe
def group_state(request: SignedInRequest, group_id: int) -> HttpResponse:
    """The polled cell alone: it comes back without its poll once every run has ended."""
    group = _group_or_404(group_id)
    context = {"group": group, "status": group_status(group)}
    return render(request, "dashboard/partials/group_status.html", context)
