"""What every view knows of a request, and who may act."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase, HttpResponseNotAllowed
from django.shortcuts import render
from django_htmx.middleware import HtmxDetails

from dashboard.models import Annotation, Note, Run, User

P = ParamSpec("P")


class SignedInRequest(HttpRequest):
    """A request behind the sign-in: its user is a person."""

    user: User
    htmx: HtmxDetails


def operators_only(
    view: Callable[Concatenate[SignedInRequest, P], HttpResponseBase],
) -> Callable[Concatenate[SignedInRequest, P], HttpResponseBase]:
    """Viewers read; only operators and admins trigger, cancel and upload."""

    @wraps(view)
    def checked(request: SignedInRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not request.user.may_operate:
            raise PermissionDenied("Your role may only read; ask an admin to make you an operator.")
        return view(request, *args, **kwargs)

    return checked


def post_only(
    view: Callable[Concatenate[SignedInRequest, P], HttpResponseBase],
) -> Callable[Concatenate[SignedInRequest, P], HttpResponseBase]:
    """Only a form's button comes here. Who comes by the address gets 405 with a way back:
    after a sign-in that interrupted the form, for example."""

    @wraps(view)
    def checked(request: SignedInRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if request.method == "POST":
            return view(request, *args, **kwargs)
        # The last word of such an address is the deed, the rest is the page with its button.
        back = request.path.rstrip("/").rsplit("/", 1)[0] + "/"
        page = render(request, "dashboard/errors/405.html", {"back": back})
        return HttpResponseNotAllowed(["POST"], page.content)

    return checked


def may_change(user: User, note: Note) -> bool:
    """A note is its author's; admins may change anybody's."""
    return user.may_admin or (user.may_operate and note.author_id == user.pk)


def may_remove(user: User, annotation: Annotation) -> bool:
    """An annotation is its author's; admins may remove anybody's."""
    return user.may_admin or (user.may_operate and annotation.author_id == user.pk)


def may_cancel(user: User, run: Run) -> bool:
    """Operators cancel their own runs, admins anybody's."""
    return user.may_admin or (user.may_operate and run.created_by_id == user.pk)
