"""Pages of webhooks out; only admins, as an address may hold a secret."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.forms.announcements import EndpointActionForm, EndpointForm
from dashboard.models import Endpoint
from dashboard.queries import announcements as queries
from dashboard.services import endpoints
from dashboard.views.accounts import admins_only
from dashboard.views.requests import SignedInRequest
from profiler.errors import UserError


def _endpoint_or_404(endpoint_id: int) -> Endpoint:
    row = queries.get_endpoint(endpoint_id)
    if row is None:
        raise Http404(f"There is no webhook {endpoint_id}.")
    return row


@require_safe
@admins_only
def endpoint_list(request: SignedInRequest) -> HttpResponse:
    return render(request, "dashboard/endpoint_list.html", {"rows": queries.endpoint_rows()})


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@admins_only
def endpoint_new(request: SignedInRequest) -> HttpResponse:
    """The answer shows the secret; it can be shown again only by making another."""
    form = EndpointForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            row = endpoints.create_endpoint(form.wanted(), request.user)
        except UserError as error:
            form.add_error("url" if error.kind == "endpoint" else None, error.line())
        else:
            return _page(request, row, secret=endpoints.secret_of(row))
    status = 422 if form.is_bound else 200
    return render(request, "dashboard/endpoint_new.html", {"form": form}, status=status)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@admins_only
def endpoint_detail(request: SignedInRequest, endpoint_id: int) -> HttpResponse:
    """One webhook with its log; a button of it at a time."""
    row = _endpoint_or_404(endpoint_id)
    form = EndpointActionForm(request.POST if request.method == "POST" else None)
    if not form.is_bound:
        return _page(request, row)
    action = form.cleaned_data["action"] if form.is_valid() else ""
    if action == "secret":
        row = endpoints.new_secret(row.pk, request.user)
        return _page(request, row, secret=endpoints.secret_of(row))
    if action == "delete":
        endpoints.delete_endpoint(row.pk, request.user)
        messages.success(request, f"{row.name} is forgotten.")
        return redirect("endpoint-list")
    if not action:
        return _page(request, row, status=422)
    if action == "test":
        endpoints.send_test(row.pk, request.user)
        messages.success(request, "A keeper calls it now; reload to see what it answered.")
    else:
        endpoints.switch_endpoint(row.pk, request.user, enabled=action == "on")
        messages.success(request, f"{row.name} is {action}.")
    return redirect("endpoint-detail", row.pk)


def _page(
    request: SignedInRequest, row: Endpoint, *, secret: str = "", status: int = 200
) -> HttpResponse:
    context = {"row": row, "log": queries.endpoint_log(row), "secret": secret}
    return render(request, "dashboard/endpoint_detail.html", context, status=status)
