"""Pages of repositories: the list, one with its commits, registering, asking for a fetch."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe
from django.views.decorators.vary import vary_on_headers

from dashboard.forms.repositories import CommitFilterForm, NewRepositoryForm
from dashboard.models import Repository
from dashboard.queries.repositories import (
    PAGE_SIZE,
    get_repository,
    is_waiting,
    repositories,
    repository_view,
)
from dashboard.services.repositories import register_repository, request_fetch
from dashboard.views.requests import SignedInRequest, operators_only, post_only
from profiler.errors import UserError


def _repository_or_404(repository_id: int) -> Repository:
    row = get_repository(repository_id)
    if row is None:
        raise Http404(f"There is no repository {repository_id}.")
    return row


@require_safe
def repository_list(request: SignedInRequest) -> HttpResponse:
    return render(request, "dashboard/repository_list.html", {"rows": repositories()})


@require_http_methods(["GET", "HEAD", "POST"])
def repository_new(request: SignedInRequest) -> HttpResponse:
    if not request.user.may_admin:
        raise PermissionDenied("Only admins register repositories: their code runs on the workers.")
    form = NewRepositoryForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            row = register_repository(form.wanted(), request.user)
        except UserError as error:
            form.add_error(None, error.line())
        else:
            messages.success(request, f"{row.slug} is registered; a keeper fetches it now.")
            return redirect("repository-detail", row.pk)
    status = 422 if form.is_bound else 200
    return render(request, "dashboard/repository_new.html", {"form": form}, status=status)


@require_safe
@vary_on_headers("HX-Request")
def repository_detail(request: SignedInRequest, repository_id: int) -> HttpResponse:
    """The page; for htmx only what a fetch changes."""
    form = CommitFilterForm(request.GET)
    row = _repository_or_404(repository_id)
    view = repository_view(row, text=form.text(), page=form.number())
    part = "partials/repository_body.html" if request.htmx else "repository_detail.html"
    context = {
        "view": view,
        "row": row,
        "form": form,
        "size": PAGE_SIZE,
        "waiting": is_waiting(row),
    }
    return render(request, f"dashboard/{part}", context)


@require_safe
def repository_status(request: SignedInRequest, repository_id: int) -> HttpResponse:
    """The polled cell alone: it comes back without its poll once the fetch has ended."""
    row = _repository_or_404(repository_id)
    context = {"row": row, "waiting": is_waiting(row), "polled": True}
    return render(request, "dashboard/partials/repository_status.html", context)


@post_only
@operators_only
def repository_fetch(request: SignedInRequest, repository_id: int) -> HttpResponse:
    row = _repository_or_404(repository_id)
    request_fetch(row.pk, request.user)
    messages.success(request, "A keeper fetches it as soon as it can.")
    return redirect("repository-detail", row.pk)
