"""Verbs on people: let them in, slow down guessing, make, change and disable accounts."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth import authenticate
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from dashboard.models import Role, SignInFailure, SignInLink, User
from dashboard.services import audit
from dashboard.services.clock import db_now
from profiler.errors import UserError, printable

LINK_LIFE = timedelta(hours=24)
FAILURE_WINDOW = timedelta(minutes=15)
ACCOUNT_FAILURES = 5
ADDRESS_FAILURES = 20
NAME_LIMIT = 150


class SignInError(UserError):
    """Name and password do not let anybody in; never says which of the two is wrong."""

    kind = "sign_in"


class ThrottledError(UserError):
    """Too many failures of this account or from this address."""

    kind = "throttled"

    def __init__(self, wait_s: int) -> None:
        super().__init__("Too many failed sign-ins", f"Try again in {-(-wait_s // 60)} min")
        self.wait_s = wait_s


class LinkError(UserError):
    """A sign-in link that is unknown, used or too old; all three look the same."""

    kind = "sign_in_link"


class AccountError(UserError):
    """A change of an account that cannot be made."""

    kind = "account"


def new_sign_in_link(user: User, *, by: User | None = None) -> str:
    """The token of a new one-time link for `user`, valid for a day; earlier ones end.

    Only its SHA-256 is kept, so the token can be shown this one time only.
    """
    token = secrets.token_urlsafe(32)
    now = db_now()
    with transaction.atomic():
        SignInLink.objects.filter(user=user, used_at__isnull=True).delete()
        SignInLink.objects.create(
            user=user, token_hash=_hash(token), created_at=now, expires_at=now + LINK_LIFE
        )
        audit.note(by, "user.link", f"user {user.username}")
    return token


def use_sign_in_link(token: str, *, address: str = "") -> User:
    """The user whose link this is, which is used up by this; raises `LinkError`."""
    now = db_now()
    live = SignInLink.objects.filter(
        token_hash=_hash(token), used_at__isnull=True, expires_at__gt=now, user__is_active=True
    )
    with transaction.atomic():
        if not live.update(used_at=now):
            raise LinkError(
                "This sign-in link is not valid any more",
                "A link works once and for a day; ask an admin for another, or start Daybreak "
                "again to get one for the first admin",
            )
        user = User.objects.get(signinlink__token_hash=_hash(token))
        audit.note(user, "sign_in.link", f"user {user.username}", _from(address))
    return user


def sign_in(username: str, password: str, *, address: str) -> User:
    """The user of that name and password.

    Raises `ThrottledError` after too many failures, else `SignInError`. The
    attempt is noted as a failure before the password is looked at, so that
    many guesses at the same time count one by one.
    """
    account = username.casefold()[:NAME_LIMIT]
    guess = SignInFailure.objects.create(account=account, address=address, at=db_now())
    wait_s = _wait_s(guess)
    if wait_s:
        guess.delete()
        raise ThrottledError(wait_s)
    user = authenticate(username=username, password=password)
    if not isinstance(user, User):
        audit.note(None, "sign_in.failed", f"user {printable(username, 100)}", _from(address))
        raise SignInError("Name and password do not match", "Check both and try again")
    with transaction.atomic():
        SignInFailure.objects.filter(account=account, address=address).delete()
        audit.note(user, "sign_in", f"user {user.username}", _from(address))
    return user


def sign_out(user: User) -> None:
    """Note that `user` left; the session itself ends with the request."""
    audit.note(user, "sign_out", f"user {user.username}")


def create_user(username: str, role: str, *, by: User | None = None) -> User:
    """A user without a password, who gets in by a link; raises `AccountError`."""
    try:
        UnicodeUsernameValidator()(username)
        with transaction.atomic():
            user = User(username=username, role=Role(role))
            user.set_unusable_password()
            user.save()
            audit.note(by, "user.create", f"user {username}", {"role": str(role)})
    except ValidationError:
        raise AccountError(
            f"{username!r} is no user name", "Use letters, digits and @ . + - _"
        ) from None
    except IntegrityError:
        raise AccountError(f"The name {username} is taken", "Choose another") from None
    return user


def change_role(user_id: int, role: str, *, by: User) -> User:
    """Give another role; the last active admin stays one."""
    with transaction.atomic():
        user = User.objects.select_for_update().get(pk=user_id)
        if role != Role.ADMIN:
            _keep_an_admin(user)
        change = {"before": user.role, "after": str(role)}
        User.objects.filter(pk=user_id).update(role=Role(role))
        audit.note(by, "user.role", f"user {user.username}", change)
    user.refresh_from_db()
    return user


def disable_user(user_id: int, *, by: User) -> User:
    """Lock an account out: its sessions and links end with this."""
    with transaction.atomic():
        user = User.objects.select_for_update().get(pk=user_id)
        _keep_an_admin(user)
        User.objects.filter(pk=user_id).update(is_active=False)
        SignInLink.objects.filter(user=user, used_at__isnull=True).delete()
        ended = end_sessions(user)
        audit.note(by, "user.disable", f"user {user.username}", {"sessions": ended})
    user.refresh_from_db()
    return user


def enable_user(user_id: int, *, by: User) -> User:
    """Let an account in again; it signs in anew."""
    with transaction.atomic():
        user = User.objects.select_for_update().get(pk=user_id)
        User.objects.filter(pk=user_id).update(is_active=True)
        audit.note(by, "user.enable", f"user {user.username}")
    user.refresh_from_db()
    return user


def set_password(user: User, password: str) -> None:
    """Change the password; every session of the user ends, the caller renews its own.

    Raises `ValidationError` for a password that is too easy.
    """
    validate_password(password, user)
    with transaction.atomic():
        user.set_password(password)
        user.save(update_fields=["password"])
        SignInLink.objects.filter(user=user, used_at__isnull=True).delete()
        audit.note(user, "user.password", f"user {user.username}", {"sessions": end_sessions(user)})


def sign_out_elsewhere(user: User, *, keep: str | None) -> int:
    """End all sessions of the user but the one with key `keep`; how many ended."""
    with transaction.atomic():
        ended = end_sessions(user, keep=keep)
        audit.note(user, "sign_out.elsewhere", f"user {user.username}", {"sessions": ended})
    return ended


def end_sessions(user: User, *, keep: str | None = None) -> int:
    """Delete the live sessions of `user`; how many. The table is small: one row per sign-in."""
    live = Session.objects.filter(expire_date__gt=db_now())
    theirs = [
        row.pk
        for row in live.iterator()
        if row.get_decoded().get("_auth_user_id") == str(user.pk) and row.pk != keep
    ]
    return Session.objects.filter(pk__in=theirs).delete()[0]


def _keep_an_admin(user: User) -> None:
    """Raise `AccountError` when `user` is the only admin who can still sign in."""
    others = User.objects.filter(role=Role.ADMIN, is_active=True).exclude(pk=user.pk)
    if user.role == Role.ADMIN and user.is_active and not others.exists():
        raise AccountError(f"{user.username} is the last admin", "Make another user admin first")


def _wait_s(guess: SignInFailure) -> int:
    """Seconds until another guess is allowed; 0 when this one is."""
    since = guess.at - FAILURE_WINDOW
    recent = SignInFailure.objects.filter(at__gt=since, pk__lt=guess.pk).order_by("-pk")
    ends = [
        at + FAILURE_WINDOW
        for failures, limit in (
            (recent.filter(account=guess.account), ACCOUNT_FAILURES),
            (recent.filter(address=guess.address), ADDRESS_FAILURES),
        )
        for at in failures.values_list("at", flat=True)[limit - 1 : limit]
    ]
    return max((int((end - guess.at).total_seconds()) + 1 for end in ends), default=0)


def _from(address: str) -> dict[str, str | int]:
    return {"address": address} if address else {}


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
