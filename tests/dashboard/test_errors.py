"""Pages for what went wrong: each names the next step and none needs the database."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.core.exceptions import PermissionDenied
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.urls import path
from pytest_django import Settings

from dashboard.urls import handler400, handler403, handler404, handler500
from dashboard.urls import urlpatterns as real_patterns
from dashboard.views import errors
from profiler.errors import UserError

__all__ = ["handler400", "handler403", "handler404", "handler500"]


def crash(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("secret detail")


def busy(request: HttpRequest) -> HttpResponse:
    raise OperationalError("database is locked")


def broken(request: HttpRequest) -> HttpResponse:
    raise OperationalError("no such table: dashboard_run")


def hostile(request: HttpRequest) -> HttpResponse:
    raise PermissionDenied("<script>alert(1)</script>\u202egnp.exe")


urlpatterns = [
    *real_patterns,
    path("crash/", crash),
    path("busy/", busy),
    path("broken/", broken),
    path("hostile/", hostile),
]


@pytest.fixture
def ask(viewer_client: Client, settings: Settings) -> Callable[[str], HttpResponse]:
    """A signed-in client against the real addresses and four that fail."""
    settings.ROOT_URLCONF = "tests.dashboard.test_errors"
    viewer_client.raise_request_exception = False
    return viewer_client.get  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("address", "status", "said"),
    [
        ("/nothing/", 404, "There is no such page"),
        ("/crash/", 500, "our fault"),
        ("/broken/", 500, "our fault"),
        ("/busy/", 503, "try again in a few seconds"),
        ("/users/", 403, "Only admins manage people"),
    ],
)
def test_it_names_the_next_step(
    ask: Callable[[str], HttpResponse], address: str, status: int, said: str
) -> None:
    response = ask(address)
    assert response.status_code == status
    assert said in response.content.decode()
    assert "secret detail" not in response.content.decode()


def test_it_says_when_to_come_back_to_a_busy_database(
    ask: Callable[[str], HttpResponse],
) -> None:
    assert ask("/busy/").headers["Retry-After"] == "5"


def test_it_shows_a_reason_as_text(ask: Callable[[str], HttpResponse]) -> None:
    page = ask("/hostile/").content.decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u202egnp.exe" in page
    assert "<script>alert" not in page


def test_it_answers_an_unknown_host_with_a_page(db: None, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["localhost"]
    response = Client().get("/", HTTP_HOST="evil.example")
    assert response.status_code == 400
    assert "ALLOWED_HOSTS" in response.content.decode()


@pytest.mark.parametrize(
    "view", [errors.bad_request, errors.not_found, errors.server_error, errors.forbidden]
)
def test_it_reads_no_row(view: Callable[[HttpRequest], HttpResponse]) -> None:
    # Without the `db` fixture every query is refused.
    response = view(RequestFactory().get("/"))
    assert "<h1>" in response.content.decode()


def test_it_shows_a_mistake_with_its_hint() -> None:
    error = UserError("Trace 7 is being read already", "wait for it to end")
    response = errors.refusal(RequestFactory().get("/"), error, status=409)
    page = response.content.decode()
    assert response.status_code == 409
    assert "Trace 7 is being read already." in page
    assert "Wait for it to end." in page


@pytest.mark.parametrize("deed", ["/runs/7/again/", "/traces/7/again/", "/traces/7/redact/"])
def test_it_shows_the_way_back_from_an_address_that_only_takes_a_form(
    deed: str, viewer_client: Client
) -> None:
    answer = viewer_client.get(deed)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
    assert f'href="{deed.rsplit("/", 2)[0]}/"' in answer.content.decode()
    assert "Nothing was done" in answer.content.decode()
