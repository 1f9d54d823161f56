"""The mail server as one setting: `smtp://user:password@host:25`; none is no e-mail."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

SMTP = "django.core.mail.backends.smtp.EmailBackend"
CONSOLE = "django.core.mail.backends.console.EmailBackend"
NOWHERE = "django.core.mail.backends.dummy.EmailBackend"
PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}
"""Scheme -> usual port: without encryption, by STARTTLS, encrypted from the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """What Django's mail needs to know; `on` is whether mails leave at all."""

    backend: str = NOWHERE
    host: str = ""
    port: int = 25
    user: str = ""
    password: str = ""
    starttls: bool = False
    tls: bool = False

    @property
    def on(self) -> bool:
        return self.backend != NOWHERE


def parse_mail_url(url: str) -> MailServer:
    """The server that `url` names; `console:` prints mails, nothing sends none."""
    if not url:
        return MailServer()
    if url == "console:":
        return MailServer(backend=CONSOLE)
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname or ""
    except ValueError:
        port, host, parts = None, "", urlsplit("")
    if parts.scheme not in PORTS or not host:
        # The whole value may hold a password, so it is not repeated.
        raise ImproperlyConfigured(
            "EMAIL_URL cannot be read; use smtp://host, smtp+tls://user:password@host, "
            "smtps://user:password@host or console:"
        )
    return MailServer(
        backend=SMTP,
        host=host,
        port=port or PORTS[parts.scheme],
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        starttls=parts.scheme == "smtp+tls",
        tls=parts.scheme == "smtps",
    )
