"""Webhooks in: the address that a repository's host calls, and the page an admin sets it up on."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.forms.hooks import HookForm
from dashboard.models import Hook, Repository
from dashboard.services import hooks
from dashboard.views.accounts import admins_only
from dashboard.views.requests import SignedInRequest

SHOWN_PUSHES = 20


@never_cache
@login_not_required
@csrf_exempt  # a signature stands in for the token: no cookie is looked at
@require_POST
def hook_push(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask for a fetch; answers alike for a wrong signature and for a repository there is not."""
    body = request.read(hooks.BODY_LIMIT_BYTES + 1)
    if len(body) > hooks.BODY_LIMIT_BYTES:
        return JsonResponse({"error": "the body is larger than 4 MiB"}, status=413)
    headers = {name.lower(): value for name, value in request.headers.items()}
    try:
        fresh = hooks.receive(hooks.Call(slug=slug, body=body, headers=headers))
    except hooks.HookError as error:
        return JsonResponse({"error": error.message}, status=403)
    said = "a keeper fetches the repository" if fresh else "this call came before"
    return JsonResponse({"accepted": fresh, "text": said}, status=202)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@admins_only
def repository_hook(request: SignedInRequest, repository_id: int) -> HttpResponse:
    """Open and close the webhook of a repository; the answer to opening shows its secret."""
    row = Repository.objects.filter(pk=repository_id).first()
    if row is None:
        raise Http404(f"There is no repository {repository_id}.")
    form = HookForm(request.POST if request.method == "POST" else None)
    secret = ""
    if form.is_valid():
        if form.cleaned_data["action"] == "close":
            hooks.close_hook(row.pk, request.user)
            messages.success(request, "Calls are refused from now on.")
            return redirect("repository-hook", row.pk)
        secret = hooks.secret_of(hooks.open_hook(row.pk, request.user))
    hook = Hook.objects.filter(repository=row).first()
    context = {
        "row": row,
        "hook": hook,
        "pushes": hook.pushes.all()[:SHOWN_PUSHES] if hook else (),
        "secret": secret,
        "address": request.build_absolute_uri(f"/hooks/push/{row.slug}/"),
    }
    status = 422 if form.is_bound and not form.is_valid() else 200
    return render(request, "dashboard/repository_hook.html", context, status=status)
