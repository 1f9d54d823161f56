"""Webhooks in: the host of a repository says that something was pushed.

What it says is believed as far as "look again": commits come from our own
fetch alone. So a call that is replayed or made up by somebody who has the
secret can bring a fetch, never a run of something that is not there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

import msgspec
from django.db import transaction
from django.db.models import Q

from dashboard.models import Hook, Push, Repository, User
from dashboard.services import audit, signatures
from dashboard.services.addresses import SHA
from dashboard.services.clock import db_now
from profiler.errors import UserError, printable

BODY_LIMIT_BYTES = 4 << 20
KEPT_PUSHES = 1_000
"""Newest calls that are remembered; a replay of an older one brings one more fetch."""

_REFUSALS_NOTED = timedelta(minutes=1)
_PURPOSE = "webhook in"


class HookError(UserError):
    """A call that is not from the repository's host, or not for us; all of them look the same."""

    kind = "hook"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call as it came in; names of headers in lower case."""

    slug: str
    body: bytes
    headers: Mapping[str, str]


class _Payload(msgspec.Struct):
    """The fields of a push that are shown; every other one is left alone."""

    ref: str = ""
    after: str = ""


def secret_of(hook: Hook) -> str:
    """What the repository's host signs with."""
    return signatures.derived_secret(_PURPOSE, hook.repository_id, hook.generation)


def open_hook(repository_id: int, user: User) -> Hook:
    """Let the host of a repository call, with a new secret if it had one before."""
    with transaction.atomic():
        row, made = Hook.objects.select_for_update().get_or_create(repository_id=repository_id)
        if not made:
            row.generation, row.enabled = row.generation + 1, True
            row.save(update_fields=["generation", "enabled"])
        audit.note(user, "hook.secret", row.repository.slug, {"generation": row.generation})
    return row


def close_hook(repository_id: int, user: User) -> None:
    """Refuse further calls; opening it again makes a new secret."""
    with transaction.atomic():
        changed = Hook.objects.filter(repository=repository_id, enabled=True).update(enabled=False)
        if changed:
            slug = Repository.objects.get(pk=repository_id).slug
            audit.note(user, "hook.close", slug)


def receive(call: Call) -> bool:
    """Have the repository fetched; False when the very same call came before.

    Raises `HookError` unless it is signed with the secret of an open hook.
    """
    hook = Hook.objects.select_related("repository").filter(repository__slug=call.slug).first()
    why = _refusal(hook, call)
    if hook is None or why:
        if hook is not None:
            _note_refusal(hook, why)
        raise HookError("This call is not accepted", "check the address and the secret")
    payload = _payload(call.body)
    event = call.headers.get("x-github-event") or call.headers.get("x-gitlab-event") or ""
    now = db_now()
    with transaction.atomic():
        push, made = Push.objects.get_or_create(
            hook=hook,
            digest=hashlib.sha256(call.body).hexdigest(),
            defaults={
                "event": printable(event, 40),
                "ref": printable(payload.ref, 200),
                "head_sha": payload.after if SHA.fullmatch(payload.after) else "",
                "at": now,
            },
        )
        if made:
            Hook.objects.filter(pk=hook.pk).update(accepted_at=now)
            Repository.objects.filter(pk=hook.repository_id).update(wanted_at=now)
            Push.objects.filter(hook=hook, pk__lte=push.pk - KEPT_PUSHES).delete()
    return made


def _refusal(hook: Hook | None, call: Call) -> str:
    """Why a call is refused; an unknown repository takes the same work as a wrong secret."""
    secret = secret_of(hook) if hook else signatures.derived_secret(_PURPOSE, 0, 0)
    signed = call.headers.get("x-hub-signature-256", "")
    token = call.headers.get("x-gitlab-token", "")
    right = signatures.is_signed(secret, call.body, signed)
    right |= signatures.is_secret(secret, token)
    if hook is None or not hook.enabled:
        return "it is closed"
    if not signed and not token:
        return "neither X-Hub-Signature-256 nor X-Gitlab-Token came with it"
    return "" if right else "signature or token is wrong"


def _note_refusal(hook: Hook, why: str) -> None:
    """At most once a minute: strangers must not keep the database busy."""
    now = db_now()
    long_ago = Q(refused_at__isnull=True) | Q(refused_at__lt=now - _REFUSALS_NOTED)
    Hook.objects.filter(long_ago, pk=hook.pk).update(refused_at=now, refused_why=why)


def _payload(body: bytes) -> _Payload:
    """What the body says; hosts differ, and a body that says nothing readable still counts."""
    try:
        return msgspec.json.decode(body, type=_Payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Payload()
