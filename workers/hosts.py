"""Which address a host name means, where it may be reached at all."""

from __future__ import annotations

import ipaddress
import socket

from profiler.errors import UserError, printable


class HostError(UserError):
    """A host that is not known, or that lies in a network it must not."""

    kind = "host"


def look_up(host: str, port: int, *, private_network: bool) -> str:
    """The IP address to connect to, every one of the name's having been judged.

    Whoever connects uses what this gives: DNS cannot turn round in between.
    """
    shown = printable(host, 80)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise HostError(f"The host {shown} is not known", "check the address") from None
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
    for address in addresses:
        if address.is_link_local or not (private_network or address.is_global):
            raise HostError(f"The host {shown} lies in a private network", "an admin may allow it")
    return str(addresses[0])
