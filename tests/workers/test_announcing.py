"""Announcements on their way: to a real HTTP server and a real mail server, and past failures."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from django.utils import timezone
from pytest_django import Settings

from dashboard.models import Delivery, DeliveryState, DeliveryTry, Endpoint
from dashboard.services import deliveries, endpoints
from dashboard.services.deliveries import PAUSES_S, TRIES
from dashboard.services.signatures import is_signed
from tests.automation import make_announcement, make_endpoint, make_subscription
from tests.dashboard.services.scene import Clock, stopped_clock
from tests.factories import make_user
from tests.workers.receivers import Receiver, http_receiver, smtp_receiver
from workers.automation import Sender

pytestmark = pytest.mark.django_db


@pytest.fixture
def clock() -> Iterator[Clock]:
    with stopped_clock() as stopped:
        yield stopped


@pytest.fixture
def web() -> Iterator[Receiver]:
    with http_receiver() as receiver:
        yield receiver


@pytest.fixture
def post(settings: Settings) -> Iterator[Receiver]:
    with smtp_receiver() as receiver:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", receiver.port
        settings.EMAIL_ON = True
        settings.BASE_URL = "https://daybreak.example"
        yield receiver


def endpoint(web: Receiver, path: str = "/hook") -> Endpoint:
    return make_endpoint(f"http://127.0.0.1:{web.port}{path}", private_network=True)


def send() -> int:
    return Sender(threading.Event()).step()


def log() -> list[str]:
    return list(DeliveryTry.objects.order_by("id").values_list("text", flat=True))


def test_it_calls_a_webhook_once_with_signed_json(web: Receiver, clock: Clock) -> None:
    row = endpoint(web, "/hook?room=1")
    made = make_announcement(0.102)
    assert (send(), send()) == (1, 0)
    (call,) = web.calls
    assert call.path == "/hook?room=1"
    assert is_signed(endpoints.secret_of(row), call.body, call.headers["X-Daybreak-Signature-256"])
    assert call.headers["Content-Type"] == "application/json"
    told = json.loads(call.body)
    assert (told["event"], told["id"], told["kind"]) == ("announcement", made.pk, "slower")
    assert (told["operator"], told["effect"], told["title"]) == ("aten::softmax", 0.102, made.title)
    assert Delivery.objects.get().state == DeliveryState.SENT
    assert log() == ["204 No Content"]


def test_it_mails_who_subscribed(post: Receiver, clock: Clock) -> None:
    make_subscription(make_user("vera", email="vera@example.org"), email=True)
    make_user("otto", email="otto@example.org")
    made = make_announcement()
    assert send() == 1
    (mail,) = post.mails
    assert post.recipients == ["<vera@example.org>"]
    assert mail["Subject"].replace("\n", "") == f"[Daybreak] {made.title}"
    assert mail["Message-ID"] == f"<daybreak-{Delivery.objects.get().pk}@daybreak.example>"
    text = mail.get_payload(decode=True)
    assert isinstance(text, bytes)
    assert f"https://daybreak.example/announcements/{made.pk}/" in text.decode()
    assert "aten::softmax" in text.decode()


def test_it_tries_again_with_growing_pauses_and_then_gives_up(web: Receiver, clock: Clock) -> None:
    web.answers = [500]
    endpoint(web)
    make_announcement()
    for pause in PAUSES_S:
        assert (send(), send()) == (1, 0)
        clock.advance(pause - 1)
        assert send() == 0
        clock.advance(1)
    assert (send(), send()) == (1, 0)
    row = Delivery.objects.get()
    assert (row.state, row.tries, len(web.calls)) == (DeliveryState.GAVE_UP, TRIES, TRIES)
    assert len({call.body for call in web.calls}) == 1
    assert log() == ["127.0.0.1 answered 500 Internal Server Error: "] * TRIES


def test_it_arrives_at_the_second_try(web: Receiver, clock: Clock) -> None:
    web.answers = [503, 200]
    endpoint(web)
    make_announcement()
    send()
    clock.advance(PAUSES_S[0])
    assert send() == 1
    assert Delivery.objects.get().state == DeliveryState.SENT
    assert [entry.worked for entry in DeliveryTry.objects.order_by("id")] == [False, True]


def test_a_redirect_is_not_followed(web: Receiver, clock: Clock) -> None:
    web.answers = [302]
    endpoint(web)
    make_announcement()
    send()
    assert [call.path for call in web.calls] == ["/hook"]
    assert "answered 302" in log()[0]


def test_nobody_there_is_a_failed_try(web: Receiver, clock: Clock) -> None:
    with http_receiver() as gone:
        port = gone.port
    make_endpoint(f"http://127.0.0.1:{port}/", private_network=True)
    make_announcement()
    send()
    assert log() == ["127.0.0.1 did not answer: Connection refused"]


def test_a_mail_server_that_refuses_is_a_failed_try(post: Receiver, clock: Clock) -> None:
    post.answers = [550]
    make_subscription(make_user("vera", email="vera@example.org"), email=True)
    make_announcement()
    send()
    assert "no such mailbox" in log()[0] and not post.mails
    assert Delivery.objects.get().state == DeliveryState.WAITING


def test_one_that_fails_keeps_no_other_from_going(web: Receiver, clock: Clock) -> None:
    with http_receiver() as broken:
        broken.answers = [500]
        endpoint(broken)
        endpoint(web)
        make_announcement()
        assert send() == 2
    assert len(web.calls) == 1


def test_a_name_that_means_a_private_address_is_not_called(web: Receiver, clock: Clock) -> None:
    # `localhost` passes as a name; what it means is judged when it is looked up.
    row = make_endpoint(f"https://localhost:{web.port}/")
    endpoints.send_test(row.pk, make_user())
    assert send() == 1
    assert log() == ["The host localhost lies in a private network. an admin may allow it"]
    assert web.calls == []


def test_an_address_changed_behind_our_back_is_judged_again(web: Receiver, clock: Clock) -> None:
    row = make_endpoint()
    Endpoint.objects.update(url="http://169.254.169.254/latest/meta-data")
    endpoints.send_test(row.pk, make_user())
    send()
    assert "is not https" in log()[0]


def test_a_test_says_that_it_is_one(web: Receiver, clock: Clock) -> None:
    row = endpoint(web)
    endpoints.send_test(row.pk, make_user())
    send()
    assert json.loads(web.calls[0].body)["event"] == "test"
    assert web.calls[0].headers["X-Daybreak-Event"] == "test"


def test_what_was_switched_off_meanwhile_is_not_sent(web: Receiver, clock: Clock) -> None:
    row = endpoint(web)
    make_announcement()
    endpoints.switch_endpoint(row.pk, make_user(), enabled=False)
    assert send() == 0
    assert web.calls == []
    assert log() == ["not sent: the webhook is switched off"]


def test_mails_wait_while_mail_is_off(post: Receiver, settings: Settings, clock: Clock) -> None:
    make_subscription(make_user("vera", email="vera@example.org"), email=True)
    make_announcement()
    settings.EMAIL_ON = False
    assert send() == 0
    settings.EMAIL_ON = True
    assert send() == 1


def test_a_sender_that_dies_leaves_it_to_the_next(web: Receiver, clock: Clock) -> None:
    endpoint(web)
    make_announcement()
    lost = deliveries.claim_delivery()
    assert lost is not None
    assert send() == 0  # it may still be at work
    clock.advance(deliveries.LEASE.total_seconds())
    assert send() == 1
    deliveries.delivered(lost, "too late")
    deliveries.failed(lost, "too late")
    row = Delivery.objects.get()
    assert (row.state, row.tries, log()) == (DeliveryState.SENT, 2, ["204 No Content"])


def test_senders_that_die_again_and_again_are_enough_at_some_time(clock: Clock) -> None:
    make_endpoint()
    make_announcement()
    for _ in range(TRIES):
        assert deliveries.claim_delivery() is not None
        clock.advance(deliveries.LEASE.total_seconds())
    assert deliveries.claim_delivery() is None
    assert Delivery.objects.get().state == DeliveryState.GAVE_UP


HOST = "chat.example.org"


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A key and a certificate of `HOST` that this process trusts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = timezone.now()
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = tmp_path / "certificate.pem"
    path.write_bytes(private + made.public_bytes(pem))
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    return path


def send_to_this_machine() -> int:
    """As if every name meant an address that was judged and found good."""
    return Sender(threading.Event(), lambda _: "127.0.0.1").step()


@pytest.mark.parametrize("name", [HOST, "other.example.org"])
def test_it_speaks_in_the_name_of_the_host_and_checks_its_certificate(
    certificate: Path, clock: Clock, name: str
) -> None:
    with http_receiver(certificate) as secure:
        row = make_endpoint(f"https://{name}:{secure.port}/hook")
        endpoints.send_test(row.pk, make_user())
        assert send_to_this_machine() == 1
    if name == HOST:
        assert [call.headers["Host"] for call in secure.calls] == [f"{HOST}:{secure.port}"]
        assert log() == ["204 No Content"]
    else:
        assert secure.calls == []
        assert "did not answer" in log()[0] and "certificate" in log()[0].lower()
