"""Pages of announcements, subscriptions and webhooks, filled and empty, and wrong input."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from dashboard.models import Delivery, DeliveryTry, Endpoint, Receipt, Subscription, User
from dashboard.services import deliveries
from tests.automation import make_announcement, make_endpoint, make_subscription
from tests.dashboard.template_text import HOSTILE
from tests.factories import make_model

pytestmark = pytest.mark.django_db


def text(client: Client, address: str, status: int = 200) -> str:
    response = client.get(address)
    assert response.status_code == status
    return response.content.decode()


def test_nothing_announced_says_when_something_will_be(viewer_client: Client) -> None:
    page = text(viewer_client, "/announcements/")
    assert "Nothing was announced yet" in page and "Mark all as read" not in page


def test_it_lists_what_one_was_told_and_counts_the_unread(viewer_client: Client) -> None:
    made = make_announcement()
    page = text(viewer_client, "/announcements/")
    assert made.title in page and "1 unread" in page
    assert '<span class="chip run">1</span>' in text(viewer_client, "/announcements/unread/")
    viewer_client.post("/announcements/read/", {"up_to": str(made.pk)})
    assert "0 unread" in text(viewer_client, "/announcements/")
    assert "chip" not in text(viewer_client, "/announcements/unread/")


def test_every_page_loads_the_count_after_itself(viewer_client: Client) -> None:
    assert 'hx-get="/announcements/unread/" hx-trigger="load"' in text(viewer_client, "/glossary/")


def test_what_one_did_not_subscribe_to_is_a_switch_away(
    viewer_client: Client, viewer: User
) -> None:
    make_subscription(viewer, least=0.2)
    made = make_announcement(0.05)
    assert made.title not in text(viewer_client, "/announcements/")
    page = text(viewer_client, "/announcements/?every=on")
    assert made.title in page and "· unread" not in page


def test_it_filters_by_kind_and_model(viewer_client: Client) -> None:
    made = make_announcement()
    assert made.title in text(viewer_client, "/announcements/?kind=slower&model=llama-tiny")
    page = text(viewer_client, "/announcements/?kind=faster")
    assert "No announcement matches the filter" in page and "Clear filter" in page


@pytest.mark.parametrize("query", ["kind=nonsense", "model=nobody", "page=x", "page=0"])
def test_a_filter_that_cannot_be_shows_everything(viewer_client: Client, query: str) -> None:
    made = make_announcement()
    page = text(viewer_client, f"/announcements/?{query}")
    assert "cannot be used" in page and made.title in page


@pytest.mark.parametrize("up_to", ["", "x", "0", "-1", "9" * 30])
def test_marking_as_read_without_a_number_marks_all(viewer_client: Client, up_to: str) -> None:
    make_announcement()
    viewer_client.post("/announcements/read/", {"up_to": up_to})
    assert not Receipt.objects.filter(read_at=None).exists()


def test_one_announcement_shows_its_facts_and_where_it_went(viewer_client: Client) -> None:
    make_endpoint(name=HOSTILE)
    made = make_announcement(culprit=HOSTILE)
    claimed = deliveries.claim_delivery()
    assert claimed is not None
    deliveries.failed(claimed, HOSTILE)
    page = text(viewer_client, f"/announcements/{made.pk}/")
    assert "+10.2 %" in page and "1.10 ms" in page
    assert "<img src=x" not in page and page.count("&lt;img src=x") >= 4


def test_an_operator_that_is_not_known_is_said(viewer_client: Client) -> None:
    made = make_announcement(culprit="")
    assert "not determined" in text(viewer_client, f"/announcements/{made.pk}/")


def test_it_says_that_mail_is_off_and_how_to_switch_it_on(
    viewer_client: Client, settings: Settings
) -> None:
    page = text(viewer_client, "/announcements/subscriptions/")
    assert "E-mail is switched off" in page and "EMAIL_URL" in page
    settings.EMAIL_ON, settings.BASE_URL = True, ""
    assert "BASE_URL" in text(viewer_client, "/announcements/subscriptions/")
    settings.BASE_URL = "https://daybreak.example"
    assert "BASE_URL" not in text(viewer_client, "/announcements/subscriptions/")


def test_one_subscribes_by_model_and_size(viewer_client: Client, viewer: User) -> None:
    make_model("llama-tiny")
    viewer_client.post("/announcements/subscriptions/address/", {"address": "vera@example.org"})
    form = {"model": "llama-tiny", "least": "0.1", "improvements": "on", "email": "on"}
    viewer_client.post("/announcements/subscriptions/", form)
    row = viewer.subscriptions.get()
    assert (str(row.model), row.least, row.improvements, row.email) == (
        "llama-tiny", 0.1, True, True,
    )  # fmt: skip
    page = text(viewer_client, "/announcements/subscriptions/")
    assert "10.0 % or more" in page and "vera@example.org" in page
    viewer_client.post(f"/announcements/subscriptions/{row.pk}/end/")
    assert not Subscription.objects.exists()


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("model", "nobody", "No model of that name"),
        ("least", "0.07", "not one of the available choices"),
        ("email", "on", "no e-mail address"),
    ],
)
def test_a_subscription_that_cannot_be_says_why(
    viewer_client: Client, field: str, value: str, words: str
) -> None:
    form = {"model": "", "least": "0.0"} | {field: value}
    response = viewer_client.post("/announcements/subscriptions/", form)
    assert response.status_code == 422 and words in response.content.decode()
    assert not Subscription.objects.exists()


@pytest.mark.parametrize("address", ["nobody", "a@b\r\nBcc: c@d", "x" * 260 + "@example.org"])
def test_an_address_that_cannot_be_is_refused(
    viewer_client: Client, viewer: User, address: str
) -> None:
    response = viewer_client.post("/announcements/subscriptions/address/", {"address": address})
    viewer.refresh_from_db()
    assert (response.status_code, viewer.email) == (422, "")


def test_the_subscription_of_another_is_not_there(viewer_client: Client, admin: User) -> None:
    row = make_subscription(admin)
    response = viewer_client.post(f"/announcements/subscriptions/{row.pk}/end/")
    assert response.status_code == 404 and Subscription.objects.exists()


WEBHOOK = {"name": "chat", "url": "https://chat.example.org/hook", "model": "", "least": "0.0"}


def test_an_admin_makes_a_webhook_and_sees_its_secret_once(admin_client: Client) -> None:
    assert "No webhook yet" in text(admin_client, "/announcements/webhooks/")
    page = admin_client.post("/announcements/webhooks/new/", WEBHOOK).content.decode()
    row = Endpoint.objects.get()
    secret = page.partition('<div class="once"><code>')[2].partition("<")[0]
    assert len(secret) == 64
    assert secret not in text(admin_client, f"/announcements/webhooks/{row.pk}/")
    again = admin_client.post(f"/announcements/webhooks/{row.pk}/", {"action": "secret"})
    assert secret not in again.content.decode() and "shown this once" in again.content.decode()


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("url", "http://chat.example.org/", "is not https"),
        ("url", "https://10.0.0.5/", "lies in a private network"),
        ("url", "javascript:alert(1)", "is not https"),
        ("name", "", "required"),
        ("least", "-1", "not one of the available choices"),
    ],
)
def test_a_webhook_that_cannot_be_says_why(
    admin_client: Client, field: str, value: str, words: str
) -> None:
    response = admin_client.post("/announcements/webhooks/new/", WEBHOOK | {field: value})
    assert response.status_code == 422 and words in response.content.decode()
    assert not Endpoint.objects.exists()


def test_the_buttons_of_a_webhook(admin_client: Client) -> None:
    row = make_endpoint()
    address = f"/announcements/webhooks/{row.pk}/"
    admin_client.post(address, {"action": "test"})
    assert Delivery.objects.get().announcement is None
    assert "a test" in text(admin_client, address) and "not tried yet" in text(
        admin_client, address
    )
    for action, enabled in (("off", False), ("on", True)):
        admin_client.post(address, {"action": action})
        row.refresh_from_db()
        assert row.enabled is enabled
    assert admin_client.post(address, {"action": "explode"}).status_code == 422
    admin_client.post(address, {"action": "delete"})
    assert not Endpoint.objects.exists()


def test_lists_need_as_many_queries_for_many_as_for_one(admin_client: Client) -> None:
    counts: dict[str, list[int]] = {}
    for number in range(2):
        for _ in range(1 + 4 * number):
            make_endpoint()
            made = make_announcement()
        claimed = deliveries.claim_delivery()
        assert claimed is not None
        deliveries.delivered(claimed, "200 OK")
        first = Endpoint.objects.order_by("id")[0]
        for address in (
            "/announcements/",
            f"/announcements/{made.pk}/",
            "/announcements/webhooks/",
            f"/announcements/webhooks/{first.pk}/",
        ):
            with CaptureQueriesContext(connection) as queries:
                text(admin_client, address)
            kind = "one" if address == f"/announcements/{made.pk}/" else address
            counts.setdefault(kind, []).append(len(queries))
    assert DeliveryTry.objects.count() == 2
    assert all(few == many <= 12 for few, many in counts.values()), counts
