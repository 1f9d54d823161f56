"""Secrets of webhooks and what is signed with them: HMAC-SHA-256, as GitHub does it.

A secret is derived from this installation's key, so a copy of the database
holds none. A new generation, or another `SECRET_KEY`, ends it.
"""

from __future__ import annotations

import hashlib
import hmac

from django.conf import settings

PREFIX = "sha256="


def derived_secret(purpose: str, subject_id: int, generation: int) -> str:
    """64 hex digits that only this installation can tell."""
    text = f"daybreak {purpose} {subject_id} {generation}"
    return hmac.new(settings.SECRET_KEY.encode(), text.encode(), hashlib.sha256).hexdigest()


def signature(secret: str, body: bytes) -> str:
    """`sha256=` and the HMAC of `body`, in hex."""
    return PREFIX + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def is_signed(secret: str, body: bytes, given: str) -> bool:
    """Whether `given` is the signature of `body`; a near miss takes as long as a far one."""
    return hmac.compare_digest(signature(secret, body).encode(), given.encode())


def is_secret(secret: str, given: str) -> bool:
    """Whether `given` is the secret itself, as GitLab sends it."""
    return hmac.compare_digest(secret.encode(), given.encode())
