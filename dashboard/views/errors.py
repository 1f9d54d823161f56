"""Pages for what went wrong. They read no row, so they work when the database does not."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from profiler.errors import UserError, printable


@login_not_required
def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """400: a request that cannot be understood, such as one with an unknown host name."""
    return render(request, "dashboard/errors/400.html", status=400)


@login_not_required
def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """403: signed in, but not allowed to; our own reason is shown."""
    context = {"reason": printable(str(exception or ""), 200)}
    return render(request, "dashboard/errors/403.html", context, status=403)


@login_not_required
def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """404."""
    return render(request, "dashboard/errors/404.html", status=404)


@login_not_required
def server_error(request: HttpRequest) -> HttpResponse:
    """500: our fault."""
    return render(request, "dashboard/errors/500.html", status=500)


@login_not_required
def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403 for a form without a valid token: an old page, or a foreign one."""
    return render(request, "dashboard/errors/csrf.html", status=403)


def refusal(request: HttpRequest, error: UserError, *, status: int = 400) -> HttpResponse:
    """A person's mistake outside a form: what is wrong and the next step."""
    return render(request, "dashboard/errors/refusal.html", {"error": error}, status=status)
