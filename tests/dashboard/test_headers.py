"""Policies and cookies that every answer carries."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from dashboard import assets
from dashboard.models import User
from tests.factories import PASSWORD, make_user

PAGES = ("/", "/status/", "/glossary/", "/runs/", "/traces/", "/account/", "/nothing/")


def policy(value: str) -> dict[str, set[str]]:
    parts = (part.split() for part in value.split(";") if part.strip())
    return {part[0]: set(part[1:]) for part in parts}


@pytest.mark.parametrize("path", PAGES)
def test_it_allows_no_foreign_and_no_inline_script(viewer_client: Client, path: str) -> None:
    rules = policy(viewer_client.get(path).headers["Content-Security-Policy"])
    assert rules["script-src"] == {"'self'"}
    assert rules["default-src"] == rules["object-src"] == rules["base-uri"] == {"'none'"}
    assert rules["connect-src"] == rules["form-action"] == {"'self'"}
    assert rules["frame-ancestors"] == {"'none'"}


@pytest.mark.parametrize("path", ["/", "/sign-in/", "/healthz", "/nothing/"])
def test_it_refuses_frames_sniffing_and_foreign_referrers(
    db: None, client: Client, path: str
) -> None:
    headers = client.get(path).headers
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"


def test_it_gives_the_viewer_a_policy_of_its_own(db: None, settings: Settings) -> None:
    page = Path(settings.STATIC_ROOT) / assets.SPEEDSCOPE
    page.parent.mkdir(parents=True)
    page.write_text("<!DOCTYPE html>")
    response = Client().get(f"/static/{assets.SPEEDSCOPE}")
    rules = policy(response.headers["Content-Security-Policy"])
    response.close()
    assert rules["connect-src"] == {"'self'"}, "a foreign profile address is refused"
    assert rules["frame-ancestors"] == {"'self'"}
    assert not {"'unsafe-inline'", "'unsafe-eval'"} & rules["script-src"]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "[::ffff:7f00:1]"])
def test_it_answers_only_to_its_own_names(client: Client, settings: Settings, host: str) -> None:
    settings.ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]"]
    assert client.get("/sign-in/", HTTP_HOST=host).status_code == 400
    assert client.get("/healthz", HTTP_HOST=host).status_code in {400}


def test_it_hides_the_session_from_scripts_and_other_sites(db: None, client: Client) -> None:
    make_user("ada", password=PASSWORD)
    client.post("/sign-in/", {"username": "ada", "password": PASSWORD})
    cookie = client.cookies["daybreak_session"]
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Lax")
    assert 0 < int(cookie["max-age"]) <= 12 * 3600


def test_it_sends_cookies_over_tls_only_behind_tls(
    db: None, client: Client, settings: Settings
) -> None:
    settings.SESSION_COOKIE_SECURE = settings.CSRF_COOKIE_SECURE = True
    make_user("ada", password=PASSWORD)
    client.get("/sign-in/")
    client.post("/sign-in/", {"username": "ada", "password": PASSWORD})
    assert all(client.cookies[name]["secure"] for name in ("daybreak_session", "daybreak_csrf"))


def test_it_sets_no_cookie_for_a_probe(db: None, client: Client) -> None:
    client.get("/healthz")
    assert not client.cookies


@pytest.mark.parametrize("path", ["/account/", "/sign-in/", "/users/new/"])
def test_it_keeps_pages_about_secrets_out_of_caches(admin: User, path: str) -> None:
    client = Client()
    if path != "/sign-in/":
        client.force_login(admin)
    assert "no-store" in client.get(path).headers["Cache-Control"]
