"""The size limit of uploads, kept on the bytes that arrive."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.conf import settings
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render

from dashboard.forms.traces import CountingUploadHandler, UploadForm, UploadTooLargeError
from dashboard.views.requests import SignedInRequest
from profiler import units

P = ParamSpec("P")
SLACK_BYTES = 64 * 1024
"""What the other fields and the boundaries of a form may add to the file's own bytes."""


def limited_upload(
    view: Callable[Concatenate[SignedInRequest, P], HttpResponseBase],
) -> Callable[Concatenate[SignedInRequest, P], HttpResponseBase]:
    """411 without a length, 413 over the limit: announced or counted while it arrives."""

    @wraps(view)
    def checked(request: SignedInRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if request.method != "POST":
            return view(request, *args, **kwargs)
        if "chunked" in request.headers.get("Transfer-Encoding", "").lower():
            return _refused(request, "The upload does not say how long it is.", 411)
        if _announced(request) > settings.UPLOAD_LIMIT_BYTES + SLACK_BYTES:
            return _too_large(request)
        request.upload_handlers.insert(0, CountingUploadHandler())
        try:
            return view(request, *args, **kwargs)
        except UploadTooLargeError:
            return _too_large(request)

    return checked


def _announced(request: SignedInRequest) -> int:
    text = request.headers.get("Content-Length", "0")
    return int(text) if text.isascii() and text.isdigit() else 0


def _too_large(request: SignedInRequest) -> HttpResponse:
    limit = units.size(settings.UPLOAD_LIMIT_BYTES)
    return _refused(request, f"The upload is larger than {limit}, the limit of this server.", 413)


def _refused(request: SignedInRequest, reason: str, status: int) -> HttpResponse:
    context = {"upload": UploadForm(), "reason": reason}
    return render(request, "dashboard/trace_upload.html", context, status=status)
