"""Calls of a repository's host: signed right they bring a fetch, once; others are refused."""

from __future__ import annotations

import json

import pytest
from pytest_django import Settings

from dashboard.models import Audit, Hook, Push, Repository
from dashboard.services import hooks
from dashboard.services.hooks import Call, HookError
from dashboard.services.signatures import signature
from tests.dashboard.services.scene import Clock
from tests.factories import make_user
from tests.sources import make_repository

pytestmark = pytest.mark.django_db
SHA = "5" * 40
BODY = json.dumps({"ref": "refs/heads/main", "after": SHA, "commits": [{"id": SHA}]}).encode()


@pytest.fixture
def hook(clock: Clock) -> Hook:
    return hooks.open_hook(make_repository().pk, make_user())


def call(hook: Hook, body: bytes = BODY, /, **headers: str) -> Call:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Call(slug=hook.repository.slug, body=body, headers=named)


def signed(hook: Hook, body: bytes = BODY) -> Call:
    return call(
        hook,
        body,
        x_hub_signature_256=signature(hooks.secret_of(hook), body),
        x_github_event="push",
    )


def wanted() -> bool:
    return Repository.objects.get().wanted_at is not None


def test_it_asks_for_a_fetch(hook: Hook) -> None:
    assert hooks.receive(signed(hook)) is True
    push = Push.objects.get()
    assert (push.event, push.ref, push.head_sha) == ("push", "refs/heads/main", SHA)
    assert wanted()


def test_it_takes_the_token_of_gitlab(hook: Hook) -> None:
    headers = {"x_gitlab_token": hooks.secret_of(hook), "x_gitlab_event": "Push Hook"}
    assert hooks.receive(call(hook, **headers)) is True
    assert Push.objects.get().event == "Push Hook"


def test_a_replayed_call_does_nothing(hook: Hook) -> None:
    hooks.receive(signed(hook))
    Repository.objects.update(wanted_at=None)
    assert hooks.receive(signed(hook)) is False
    assert not wanted() and Push.objects.count() == 1


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x_hub_signature_256": ""},
        {"x_hub_signature_256": "sha256=" + "0" * 64},
        {"x_hub_signature_256": "sha256=é"},
        {"x_hub_signature_256": signature("another secret", BODY)},
        {"x_hub_signature": signature("", BODY).replace("sha256", "sha1")},
        {"x_gitlab_token": "wrong"},
        {"x_gitlab_token": ""},
    ],
)
def test_it_refuses_what_is_not_signed_right(hook: Hook, headers: dict[str, str]) -> None:
    with pytest.raises(HookError, match="not accepted"):
        hooks.receive(call(hook, **headers))
    hook.refresh_from_db()
    assert hook.refused_at is not None and hook.refused_why
    assert not wanted() and not Push.objects.exists()


def test_it_refuses_another_body_with_the_same_signature(hook: Hook) -> None:
    good = signed(hook)
    with pytest.raises(HookError):
        hooks.receive(Call(slug=good.slug, body=BODY + b" ", headers=good.headers))


def test_an_unknown_repository_reads_like_a_wrong_secret(hook: Hook) -> None:
    with pytest.raises(HookError) as unknown:
        hooks.receive(Call(slug="nobody", body=BODY, headers={"x-gitlab-token": "x"}))
    with pytest.raises(HookError) as wrong:
        hooks.receive(call(hook, x_gitlab_token="x"))
    assert unknown.value.line() == wrong.value.line()


def test_the_secret_for_nobody_opens_nothing(hook: Hook, settings: Settings) -> None:
    from dashboard.services.signatures import derived_secret

    nobody = derived_secret("webhook in", 0, 0)
    with pytest.raises(HookError):
        hooks.receive(Call(slug="nobody", body=BODY, headers={"x-gitlab-token": nobody}))


def test_a_new_secret_and_closing_end_the_old_one(hook: Hook) -> None:
    old = signed(hook)
    newer = hooks.open_hook(hook.repository_id, make_user())
    with pytest.raises(HookError):
        hooks.receive(old)
    assert hooks.receive(signed(newer)) is True
    hooks.close_hook(hook.repository_id, make_user())
    with pytest.raises(HookError):
        hooks.receive(signed(newer, b"{}"))
    actions = set(Audit.objects.values_list("action", flat=True))
    assert {"hook.secret", "hook.close"} <= actions


def test_another_key_of_the_installation_is_another_secret(hook: Hook, settings: Settings) -> None:
    before = hooks.secret_of(hook)
    settings.SECRET_KEY = "another"
    assert hooks.secret_of(hook) != before and len(before) == 64


@pytest.mark.parametrize(
    "body", [b"", b"payload=%7B%7D", b"[1]", b'{"ref": 5}', b"\xff", b'{"after": "--evil"}']
)
def test_a_signed_body_of_any_shape_brings_a_fetch(hook: Hook, body: bytes) -> None:
    assert hooks.receive(signed(hook, body)) is True
    assert Push.objects.get().head_sha == "" and wanted()


def test_refusals_are_noted_once_a_minute(hook: Hook, clock: Clock) -> None:
    first = clock.now
    for _ in range(3):
        with pytest.raises(HookError):
            hooks.receive(call(hook))
        clock.advance(25)
    hook.refresh_from_db()
    assert hook.refused_at == first
