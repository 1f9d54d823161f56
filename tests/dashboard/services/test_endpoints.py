"""Addresses of other programs: what is called at all."""

from __future__ import annotations

import pytest

from dashboard.models import Audit, Endpoint
from dashboard.services import endpoints
from dashboard.services.announcements import Wish
from dashboard.services.endpoints import EndpointError, NewEndpoint, Target, parse_target
from tests.factories import make_user

WISH = Wish(model=None, least=0.0, improvements=True)


def test_it_takes_an_address_apart() -> None:
    assert parse_target("https://chat.example.org:8443/a/b?c=d", private_network=False) == Target(
        secure=True, host="chat.example.org", port=8443, path="/a/b?c=d", private_network=False
    )
    plain = parse_target("http://10.0.0.5", private_network=True)
    assert (plain.secure, plain.port, plain.path, plain.host_header) == (False, 80, "/", "10.0.0.5")
    assert parse_target("https://[2606:4700::1]/", private_network=False).host_header == (
        "[2606:4700::1]"
    )


@pytest.mark.parametrize(
    "url",
    [
        "",
        "chat.example.org",
        "ftp://chat.example.org/",
        "file:///etc/passwd",
        "http://chat.example.org/",
        "https://user:secret@chat.example.org/",
        "https://chat.example.org@10.0.0.1/",
        "https://chat.example.org\\@10.0.0.1/",
        "https://chat.example.org/#x",
        "https://chat.example.org:99999/",
        "https:///path",
        "https://chat .example.org/",
        "https://chat.example.org/\r\nX: y",
        "https://-chat/",
        "https://127.0.0.1/",
        "https://10.0.0.5/",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/",
        "https://[fe80::1]/",
        "https://пример.example/",
        "https://example.org/" + "a" * 500,
    ],
)
def test_it_refuses(url: str) -> None:
    with pytest.raises(EndpointError):
        parse_target(url, private_network=False)


@pytest.mark.parametrize("url", ["http://169.254.169.254/", "https://[fe80::1]/"])
def test_link_local_addresses_are_refused_whoever_allows_private_ones(url: str) -> None:
    with pytest.raises(EndpointError):
        parse_target(url, private_network=True)


@pytest.mark.django_db
def test_it_stores_an_address_whose_secret_is_derived() -> None:
    wanted = NewEndpoint(name="chat", url="https://chat.example.org/hook/T0K3N", wish=WISH)
    row = endpoints.create_endpoint(wanted, make_user("ada"))
    first = endpoints.secret_of(row)
    assert len(first) == 64
    assert endpoints.secret_of(endpoints.new_secret(row.pk, make_user())) != first
    told = str(list(Audit.objects.values_list("detail", flat=True)))
    assert "chat.example.org" in told and "T0K3N" not in told


@pytest.mark.django_db
def test_it_refuses_the_same_name_twice() -> None:
    wanted = NewEndpoint(name="chat", url="https://chat.example.org/", wish=WISH)
    endpoints.create_endpoint(wanted, make_user())
    with pytest.raises(EndpointError, match="exists already"):
        endpoints.create_endpoint(wanted, make_user())
    assert Endpoint.objects.count() == 1
