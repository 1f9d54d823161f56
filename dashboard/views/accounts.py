"""Sign-in and out, one's own account, and the people an admin manages."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from dashboard.forms.accounts import (
    AccountForm,
    NewUserForm,
    SignInForm,
    UserChangeForm,
    password_form,
)
from dashboard.models import User
from dashboard.queries import accounts as queries
from dashboard.services import accounts
from dashboard.views.errors import refusal
from dashboard.views.requests import SignedInRequest, post_only
from profiler.errors import UserError

P = ParamSpec("P")


class MaybeSignedIn(HttpRequest):
    """A request in front of the sign-in."""

    htmx: HtmxDetails


PAGE = ["GET", "HEAD", "POST"]
BACKEND = "django.contrib.auth.backends.ModelBackend"


def admins_only(
    view: Callable[Concatenate[SignedInRequest, P], HttpResponse],
) -> Callable[Concatenate[SignedInRequest, P], HttpResponse]:
    """Only admins manage people."""

    @wraps(view)
    def checked(request: SignedInRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not request.user.may_admin:
            raise PermissionDenied("Only admins manage people.")
        return view(request, *args, **kwargs)

    return checked


def client_address(request: HttpRequest) -> str:
    """Who asks: the peer, or behind our own TLS proxy the address that proxy saw."""
    if settings.SECURE_PROXY_SSL_HEADER:
        forwarded = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
        if forwarded:
            return forwarded[:45]
    return str(request.META.get("REMOTE_ADDR", ""))[:45]


@never_cache
@login_not_required
@sensitive_post_parameters("password")
@require_http_methods(PAGE)
def sign_in(request: MaybeSignedIn) -> HttpResponse:
    if request.htmx:
        # A poll of a page whose session has ended: leave the page, do not fill its cell.
        return HttpResponseClientRedirect(_with_next(request))
    if request.method != "POST":
        if request.user.is_authenticated:
            return redirect("overview")
        form = SignInForm(initial={"next": request.GET.get("next", "")})
        return render(request, "dashboard/sign_in.html", {"form": form})
    form = SignInForm(request.POST)
    return _try_sign_in(request, form) if form.is_valid() else _again(request, form, 422)


def _try_sign_in(request: HttpRequest, form: SignInForm) -> HttpResponse:
    data = form.cleaned_data
    try:
        user = accounts.sign_in(data["username"], data["password"], address=client_address(request))
    except accounts.ThrottledError as error:
        form.add_error(None, error.line())
        response = _again(request, form, 429)
        response["Retry-After"] = str(error.wait_s)
        return response
    except accounts.SignInError as error:
        form.add_error(None, error.line())
        return _again(request, form, 422)
    login(request, user, backend=BACKEND)
    return redirect(_safe_next(request, data["next"]))


def _again(request: HttpRequest, form: SignInForm, status: int) -> HttpResponse:
    return render(request, "dashboard/sign_in.html", {"form": form}, status=status)


def _safe_next(request: HttpRequest, url: str) -> str:
    """`url` when it stays on this host, else the overview."""
    host = {request.get_host()}
    safe = url_has_allowed_host_and_scheme(url, host, require_https=request.is_secure())
    return url if safe else settings.LOGIN_REDIRECT_URL


def _with_next(request: MaybeSignedIn) -> str:
    """The sign-in with the page the reader is on as the way back."""
    shown = request.htmx.current_url_abs_path
    return f"{request.path}?{urlencode({'next': shown})}" if shown else request.path


@never_cache
@login_not_required
@require_http_methods(PAGE)
def sign_in_link(request: HttpRequest, token: str) -> HttpResponse:
    """GET shows a button and uses nothing up: previews and scanners follow links, people press."""
    if request.method != "POST":
        return render(request, "dashboard/sign_in_link.html")
    try:
        user = accounts.use_sign_in_link(token, address=client_address(request))
    except accounts.LinkError as error:
        return refusal(request, error, status=403)
    login(request, user, backend=BACKEND)
    if not user.has_usable_password():
        messages.info(request, "You are signed in by a link. Set a password to come back later.")
    return redirect("overview" if user.has_usable_password() else "account")


@post_only
def sign_out(request: SignedInRequest) -> HttpResponse:
    accounts.sign_out(request.user)
    logout(request)
    messages.success(request, "You are signed out.")
    return redirect(settings.LOGOUT_REDIRECT_URL)


@never_cache
@sensitive_post_parameters()
@require_http_methods(PAGE)
def account(request: SignedInRequest) -> HttpResponse:
    asked = AccountForm(request.POST)
    if request.method == "POST" and asked.is_valid():
        if asked.cleaned_data["action"] == "elsewhere":
            ended = accounts.sign_out_elsewhere(request.user, keep=request.session.session_key)
            messages.success(request, f"Other sessions ended: {ended}.")
            return redirect("account")
        form = password_form(request.user, request.POST)
        if form.is_valid():
            accounts.set_password(request.user, form.cleaned_data["new_password1"])
            login(request, request.user, backend=BACKEND)
            messages.success(request, "Password changed; your other sessions have ended.")
            return redirect("account")
        return render(request, "dashboard/account.html", {"form": form}, status=422)
    form = password_form(request.user)
    status = 422 if request.method == "POST" else 200
    return render(request, "dashboard/account.html", {"form": form}, status=status)


@require_safe
@admins_only
def user_list(request: SignedInRequest) -> HttpResponse:
    return render(request, "dashboard/user_list.html", {"users": queries.users()})


@never_cache
@require_http_methods(PAGE)
@admins_only
def user_new(request: SignedInRequest) -> HttpResponse:
    form = NewUserForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        data = form.cleaned_data
        try:
            user = accounts.create_user(data["username"], data["role"], by=request.user)
        except UserError as error:
            form.add_error("username", error.line())
        else:
            return _show_link(request, user)
    status = 422 if form.is_bound else 200
    return render(request, "dashboard/user_new.html", {"form": form}, status=status)


@never_cache
@require_http_methods(PAGE)
@admins_only
def user_detail(request: SignedInRequest, user_id: int) -> HttpResponse:
    row = queries.user_row(user_id)
    if row is None:
        raise Http404(f"There is no user {user_id}.")
    form = UserChangeForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            return _change(request, user_id, form.cleaned_data)
        except UserError as error:
            form.add_error(None, error.line())
    context = {"row": row, "form": form, "deeds": queries.deeds(row.name)}
    status = 422 if form.is_bound else 200
    return render(request, "dashboard/user_detail.html", context, status=status)


def _change(request: SignedInRequest, user_id: int, data: dict[str, str]) -> HttpResponse:
    action, by = data["action"], request.user
    if action == "link":
        return _show_link(request, User.objects.get(pk=user_id))
    if action == "role":
        user = accounts.change_role(user_id, data["role"], by=by)
        messages.success(request, f"{user.username} is now {user.role}.")
    elif action == "disable":
        user = accounts.disable_user(user_id, by=by)
        messages.success(request, f"{user.username} is disabled; every session has ended.")
    else:
        user = accounts.enable_user(user_id, by=by)
        messages.success(request, f"{user.username} may sign in again.")
    return redirect("user-detail", user_id)


def _show_link(request: SignedInRequest, user: User) -> HttpResponse:
    """The one answer that holds the link; no redirect, as the token is kept nowhere."""
    token = accounts.new_sign_in_link(user, by=request.user)
    context = {"person": user, "token": token}
    return render(request, "dashboard/user_link.html", context)
