"""The address a repository's host calls, over HTTP, and the page an admin sets it up on."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from pytest_django import Settings

from dashboard.models import Hook, Push, Repository
from dashboard.services import hooks
from dashboard.services.signatures import signature
from tests.dashboard.template_text import HOSTILE
from tests.factories import make_user
from tests.sources import make_repository

pytestmark = pytest.mark.django_db
ADDRESS = "/hooks/push/models/"
BODY = json.dumps({"ref": f"refs/heads/{HOSTILE}", "after": "5" * 40}).encode()


@pytest.fixture
def secret() -> str:
    return hooks.secret_of(hooks.open_hook(make_repository().pk, make_user()))


def push(client: Client, body: bytes = BODY, /, **headers: str) -> tuple[int, str]:
    response = client.post(ADDRESS, body, content_type="application/json", headers=headers)
    return response.status_code, response.content.decode()


def test_it_takes_a_signed_push_without_session_or_token(secret: str) -> None:
    client = Client(enforce_csrf_checks=True)
    right = {"X-Hub-Signature-256": signature(secret, BODY), "X-GitHub-Event": "push"}
    assert push(client, **right) == (
        202,
        '{"accepted": true, "text": "a keeper fetches the repository"}',
    )
    assert Repository.objects.get().wanted_at is not None
    assert push(client, **right)[1] == '{"accepted": false, "text": "this call came before"}'


def test_it_takes_the_token_of_gitlab(secret: str) -> None:
    assert push(Client(), **{"X-Gitlab-Token": secret})[0] == 202


def test_it_refuses_alike_whatever_is_wrong(secret: str, admin_client: Client) -> None:
    told = {
        push(admin_client),
        push(Client(), **{"X-Hub-Signature-256": signature("wrong", BODY)}),
        push(Client(), **{"X-Gitlab-Token": "wrong"}),
    }
    Hook.objects.update(enabled=False)
    told.add(push(Client(), **{"X-Gitlab-Token": secret}))
    Repository.objects.update(slug="renamed")
    told.add(push(Client(), **{"X-Gitlab-Token": secret}))
    assert told == {(403, '{"error": "This call is not accepted"}')}
    assert not Push.objects.exists()


@pytest.mark.parametrize("extra", [0, 1])
def test_it_reads_no_more_than_it_allows(
    secret: str, monkeypatch: pytest.MonkeyPatch, extra: int
) -> None:
    monkeypatch.setattr(hooks, "BODY_LIMIT_BYTES", 2048)
    body = b"x" * (2048 + extra)
    status, _ = push(Client(), body, **{"X-Hub-Signature-256": signature(secret, body)})
    assert status == (413 if extra else 202)


def test_it_takes_bodies_larger_than_forms_may_be(secret: str, settings: Settings) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1024
    body = b"x" * 4096
    assert push(Client(), body, **{"X-Hub-Signature-256": signature(secret, body)})[0] == 202


def test_an_admin_opens_it_and_sees_the_secret_once(admin_client: Client) -> None:
    address = f"/repositories/{make_repository().pk}/webhook/"
    assert "closed" in admin_client.get(address).content.decode()
    page = admin_client.post(address, {"action": "open"}).content.decode()
    secret = hooks.secret_of(Hook.objects.get())
    assert secret in page and "http://testserver/hooks/push/models/" in page
    assert secret not in admin_client.get(address).content.decode()
    admin_client.post(address, {"action": "close"})
    assert Hook.objects.get().enabled is False
    assert admin_client.post(address, {"action": "explode"}).status_code == 422


def test_its_page_shows_calls_and_why_one_was_refused(secret: str, admin_client: Client) -> None:
    push(Client())
    push(Client(), **{"X-Gitlab-Token": secret})
    row = Repository.objects.get()
    page = admin_client.get(f"/repositories/{row.pk}/webhook/").content.decode()
    assert "neither X-Hub-Signature-256 nor X-Gitlab-Token came with it" in page
    assert "<img src=x" not in page and "&lt;img src=x" in page
