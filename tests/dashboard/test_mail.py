"""The mail server as one setting."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from dashboard.mail import CONSOLE, SMTP, MailServer, parse_mail_url


def test_without_one_no_mail_leaves() -> None:
    assert parse_mail_url("").on is False


def test_the_console_counts_as_one() -> None:
    server = parse_mail_url("console:")
    assert (server.backend, server.on) == (CONSOLE, True)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("smtp://mail", MailServer(backend=SMTP, host="mail", port=25)),
        ("smtp://mail:2525", MailServer(backend=SMTP, host="mail", port=2525)),
        (
            "smtp+tls://a%40b:p%3Aq@mail",
            MailServer(
                backend=SMTP, host="mail", port=587, user="a@b", password="p:q", starttls=True
            ),
        ),
        ("smtps://mail", MailServer(backend=SMTP, host="mail", port=465, tls=True)),
    ],
)
def test_it_reads(url: str, expected: MailServer) -> None:
    assert parse_mail_url(url) == expected


@pytest.mark.parametrize(
    "url", ["mail", "http://mail", "smtp://", "smtp://mail:port", "smtp://a:hidden@[mail"]
)
def test_it_refuses_without_repeating_a_password(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="EMAIL_URL cannot be read") as wrong:
        parse_mail_url(url)
    assert "hidden" not in str(wrong.value)
