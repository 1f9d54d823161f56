"""What holds for every answer."""

from __future__ import annotations

from collections.abc import Callable

from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

BUSY = ("locked", "busy", "could not serialize", "deadlock")


class BusyDatabaseMiddleware:
    """A database that stays busy is 503 with Retry-After, not our error."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        text = str(error).lower()
        if not isinstance(error, OperationalError) or not any(word in text for word in BUSY):
            return None
        response = render(request, "dashboard/errors/busy.html", status=503)
        response["Retry-After"] = "5"
        return response
