"""Webhooks out: addresses of other programs that are told of changes."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.db import IntegrityError, transaction

from dashboard.models import Delivery, Endpoint, User
from dashboard.services import audit, signatures
from dashboard.services.announcements import SEVERITIES, Wish
from dashboard.services.clock import db_now
from profiler.errors import UserError, printable

URL_LIMIT = 500
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?|[0-9A-Fa-f:]{2,45}")
_PURPOSE = "webhook out"


class EndpointError(UserError):
    """An address that is not told anything, whoever asks."""

    kind = "endpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A checked address, in the parts a connection needs."""

    secure: bool
    host: str
    port: int
    path: str
    private_network: bool

    @property
    def host_header(self) -> str:
        """The host as HTTP names it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = 443 if self.secure else 80
        return host if self.port == usual else f"{host}:{self.port}"


def parse_target(url: str, *, private_network: bool) -> Target:
    """The parts of `url`; raises `EndpointError` saying what is wrong with it.

    Plain http is for hosts of one's own network, where that is allowed.
    """
    shown = printable(url, 200)
    if url != url.strip() or not url.isascii() or not url.isprintable() or len(url) > URL_LIMIT:
        raise EndpointError("The address holds spaces or signs it cannot", "copy it anew")
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname or ""
    except ValueError:
        raise EndpointError(f"{shown} is no address", "https://host/path") from None
    if parts.scheme != "https" and not (parts.scheme == "http" and private_network):
        raise EndpointError(
            f"{shown} is not https", "http is allowed for hosts of a private network alone"
        )
    if parts.username or parts.password or "@" in parts.netloc:
        raise EndpointError("The address holds a name or password", "calls are signed instead")
    if not _HOST.fullmatch(host) or parts.fragment or " " in url or "\\" in url:
        raise EndpointError(f"The host or path of {shown} cannot be", "https://host/path")
    _refuse_literal(host, private_network=private_network)
    secure = parts.scheme == "https"
    path = parts.path or "/"
    return Target(
        secure=secure,
        host=host,
        port=port or (443 if secure else 80),
        path=f"{path}?{parts.query}" if parts.query else path,
        private_network=private_network,
    )


def _refuse_literal(host: str, *, private_network: bool) -> None:
    """An address written as numbers is judged at once; names when they are looked up."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return
    if address.is_link_local or not (private_network or address.is_global):
        raise EndpointError(f"{host} lies in a private network", "name another host, or allow it")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEndpoint:
    """Which program is told, and of what."""

    name: str
    url: str
    wish: Wish
    private_network: bool = False


def create_endpoint(wanted: NewEndpoint, user: User) -> Endpoint:
    """Store an address that is told from now on; raises `UserError` saying what is wrong."""
    target = parse_target(wanted.url, private_network=wanted.private_network)
    if wanted.wish.least not in SEVERITIES:
        raise EndpointError(f"{wanted.wish.least} is no severity", "choose one of the list")
    try:
        with transaction.atomic():
            row = Endpoint.objects.create(
                name=printable(wanted.name, 60),
                url=wanted.url,
                private_network=wanted.private_network,
                model=wanted.wish.model,
                least=wanted.wish.least,
                improvements=wanted.wish.improvements,
                created_by=user,
                created_at=db_now(),
            )
            audit.note(user, "endpoint.create", row.name, {"host": target.host})
    except IntegrityError:
        raise EndpointError(
            f"A webhook named {wanted.name} exists already", "choose another name"
        ) from None
    return row


def secret_of(row: Endpoint) -> str:
    """What calls to it are signed with."""
    return signatures.derived_secret(_PURPOSE, row.pk, row.generation)


def new_secret(endpoint_id: int, user: User) -> Endpoint:
    """End the secret; calls from now on are signed with another one."""
    with transaction.atomic():
        row = Endpoint.objects.select_for_update().get(pk=endpoint_id)
        row.generation += 1
        row.save(update_fields=["generation"])
        audit.note(user, "endpoint.secret", row.name, {"generation": row.generation})
    return row


def switch_endpoint(endpoint_id: int, user: User, *, enabled: bool) -> Endpoint:
    """Stop telling it, or tell it again of what comes from now on."""
    with transaction.atomic():
        row = Endpoint.objects.select_for_update().get(pk=endpoint_id)
        if row.enabled != enabled:
            row.enabled = enabled
            row.save(update_fields=["enabled"])
            audit.note(user, "endpoint.on" if enabled else "endpoint.off", row.name)
    return row


def delete_endpoint(endpoint_id: int, user: User) -> None:
    """Forget an address with the log of what was sent to it."""
    with transaction.atomic():
        row = Endpoint.objects.select_for_update().get(pk=endpoint_id)
        audit.note(user, "endpoint.delete", row.name)
        row.delete()


def send_test(endpoint_id: int, user: User) -> Delivery:
    """Have a keeper call it once with a body that says it is a test."""
    now = db_now()
    with transaction.atomic():
        row = Endpoint.objects.get(pk=endpoint_id)
        made = Delivery.objects.create(endpoint=row, not_before=now, created_at=now)
        audit.note(user, "endpoint.test", row.name, {"delivery": made.pk})
    return made
