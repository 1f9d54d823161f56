"""Signed calls to other programs: to the address that was judged, once, without redirects."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Callable

from dashboard.services.deliveries import Post
from dashboard.services.endpoints import Target, parse_target
from profiler.errors import UserError, printable
from workers.hosts import look_up

TIMEOUT_S = 10.0
ANSWER_BYTES = 200
"""So much of an answer is kept for the log."""

Resolver = Callable[[Target], str]


class NotDeliveredError(UserError):
    """The other side could not be reached, or did not take it."""

    kind = "not_delivered"


def judged_address(target: Target) -> str:
    """The IP address of a target; raises `UserError` where it must not be reached."""
    return look_up(target.host, target.port, private_network=target.private_network)


def send(post: Post, resolve: Resolver = judged_address, *, timeout_s: float = TIMEOUT_S) -> str:
    """Make the call; what the other side answered, or raises `UserError` saying what went wrong.

    The address is checked again: rows may have changed behind our back. A
    redirect is no success, as it would lead where nobody judged.
    """
    target = parse_target(post.url, private_network=post.private_network)
    connection = _connect(target, resolve(target), timeout_s)
    try:
        connection.request(
            "POST",
            target.path,
            body=post.body,
            headers={**dict(post.headers), "Connection": "close"},
        )
        answer = connection.getresponse()
        said = answer.read(ANSWER_BYTES).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        raise NotDeliveredError(f"{target.host} did not answer: {_words(error)}") from None
    finally:
        connection.close()
    text = f"{answer.status} {answer.reason}".strip()
    if not 200 <= answer.status < 300:
        raise NotDeliveredError(f"{target.host} answered {printable(text, 60)}: {printable(said)}")
    return printable(text, 60)


def _connect(target: Target, ip: str, timeout_s: float) -> http.client.HTTPConnection:
    """A connection to `ip` that speaks, and checks the certificate, in the name of the host."""
    if not target.secure:
        return _Plain(target, ip, timeout_s)
    return _Secure(target, ip, timeout_s)


class _Plain(http.client.HTTPConnection):
    def __init__(self, target: Target, ip: str, timeout_s: float) -> None:
        super().__init__(target.host, target.port, timeout=timeout_s)
        self._ip = ip

    def connect(self) -> None:
        self.sock = socket.create_connection((self._ip, self.port), self.timeout)


class _Secure(http.client.HTTPSConnection):
    def __init__(self, target: Target, ip: str, timeout_s: float) -> None:
        self._tls = ssl.create_default_context()
        super().__init__(target.host, target.port, timeout=timeout_s, context=self._tls)
        self._ip = ip

    def connect(self) -> None:
        plain = socket.create_connection((self._ip, self.port), self.timeout)
        try:
            self.sock = self._tls.wrap_socket(plain, server_hostname=self.host)
        except BaseException:
            plain.close()
            raise


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "time is up"
    return printable(str(getattr(error, "strerror", None) or error) or type(error).__name__, 120)
