"""Sign-in, links, throttling, sessions and the people an admin manages."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from dashboard.models import Audit, Role, SignInFailure, SignInLink, User
from dashboard.services import accounts
from tests.factories import PASSWORD, make_user

SignIn = Callable[[User], Client]


def post_sign_in(client: Client, name: str, password: str = PASSWORD, **extra: str) -> int:
    data = {"username": name, "password": password}
    return client.post(reverse("sign-in"), data, **extra).status_code  # type: ignore[arg-type]


def is_signed_in(client: Client) -> bool:
    return client.get(reverse("overview")).status_code == 200


@pytest.fixture
def ada(db: None) -> User:
    return make_user("ada", role=Role.ADMIN, password=PASSWORD)


# Sign-in by name and password


def test_it_lets_in_with_the_right_password(ada: User, client: Client) -> None:
    assert post_sign_in(client, "ada") == 302
    assert is_signed_in(client)


def test_it_goes_back_to_where_the_reader_was_going(ada: User, client: Client) -> None:
    data = {"username": "ada", "password": PASSWORD, "next": "/status/?x=1"}
    assert client.post(reverse("sign-in"), data).headers["Location"] == "/status/?x=1"


@pytest.mark.parametrize("url", ["https://evil.example/", "//evil.example/", "javascript:alert(1)"])
def test_it_never_goes_to_another_site(ada: User, client: Client, url: str) -> None:
    data = {"username": "ada", "password": PASSWORD, "next": url}
    assert client.post(reverse("sign-in"), data).headers["Location"] == "/"


def test_it_gives_a_new_session_at_sign_in(ada: User, client: Client) -> None:
    session = client.session
    session["seen"] = True
    session.save()
    before = session.session_key
    post_sign_in(client, "ada")
    assert client.session.session_key != before


def test_it_says_the_same_for_a_wrong_password_and_an_unknown_name(
    ada: User, client: Client
) -> None:
    pages = []
    for name in ("ada", "nobody"):
        response = client.post(reverse("sign-in"), {"username": name, "password": "wrong one"})
        assert response.status_code == 422
        text = re.sub(r'csrfmiddlewaretoken" value="\w+"', "", response.content.decode())
        pages.append(text.replace(name, "NAME"))
    assert pages[0] == pages[1]
    assert "Name and password do not match" in pages[0]


def test_it_keeps_out_a_disabled_user(ada: User, client: Client) -> None:
    make_user("dora", password=PASSWORD, is_active=False)
    assert post_sign_in(client, "dora") == 422


def test_it_keeps_out_a_user_without_a_password(client: Client, db: None) -> None:
    user = make_user("paul")
    assert post_sign_in(client, "paul", user.password) == 422


# Throttling


def test_it_refuses_the_sixth_guess_at_an_account(ada: User, client: Client) -> None:
    answers = [post_sign_in(client, "ada", "wrong") for _ in range(6)]
    assert answers == [422] * 5 + [429]


def test_it_tells_when_to_try_again(ada: User, client: Client) -> None:
    for _ in range(5):
        post_sign_in(client, "ada", "wrong")
    data = {"username": "ada", "password": PASSWORD}
    response = client.post(reverse("sign-in"), data)
    assert response.status_code == 429, "the right password does not help while throttled"
    assert 0 < int(response.headers["Retry-After"]) <= 900
    assert "Try again in 15 min" in response.content.decode()


def test_it_counts_another_spelling_as_the_same_account(ada: User, client: Client) -> None:
    for name in ("ada", "ADA", "Ada", "aDa", "adA"):
        post_sign_in(client, name, "wrong")
    assert post_sign_in(client, "ada") == 429


def test_it_refuses_the_21st_guess_from_an_address(db: None, client: Client) -> None:
    answers = [post_sign_in(client, f"name{place}", "wrong") for place in range(21)]
    assert answers == [422] * 20 + [429]
    assert post_sign_in(Client(REMOTE_ADDR="192.0.2.9"), "name0", "wrong") == 422


def test_it_lets_in_again_after_the_window(ada: User, client: Client) -> None:
    for _ in range(5):
        post_sign_in(client, "ada", "wrong")
    SignInFailure.objects.update(at=timezone.now() - accounts.FAILURE_WINDOW)
    assert post_sign_in(client, "ada") == 302


def test_it_does_not_lengthen_the_wait_by_refused_guesses(ada: User, client: Client) -> None:
    for _ in range(8):
        post_sign_in(client, "ada", "wrong")
    assert SignInFailure.objects.count() == accounts.ACCOUNT_FAILURES


def test_it_forgets_failures_after_a_success(ada: User, client: Client) -> None:
    for _ in range(4):
        post_sign_in(client, "ada", "wrong")
    assert post_sign_in(client, "ada") == 302
    assert [post_sign_in(Client(), "ada", "wrong") for _ in range(5)] == [422] * 5


def test_it_lets_a_link_in_while_the_account_is_throttled(ada: User, client: Client) -> None:
    for _ in range(5):
        post_sign_in(client, "ada", "wrong")
    client.post(reverse("sign-in-link", args=[accounts.new_sign_in_link(ada)]))
    assert is_signed_in(client)


def test_it_counts_guesses_that_are_still_being_looked_at(ada: User, client: Client) -> None:
    # What other requests wrote that have not yet compared their password.
    for _ in range(accounts.ACCOUNT_FAILURES):
        SignInFailure.objects.create(account="ada", address="192.0.2.1", at=timezone.now())
    assert post_sign_in(client, "ada") == 429


@pytest.mark.parametrize(("proxied", "seen"), [(True, "192.0.2.7"), (False, "127.0.0.1")])
def test_it_trusts_the_forwarded_address_only_behind_its_own_proxy(
    ada: User, client: Client, settings: Settings, *, proxied: bool, seen: str
) -> None:
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if proxied else None
    forwarded = {"HTTP_X_FORWARDED_FOR": "203.0.113.1, 192.0.2.7"}
    post_sign_in(client, "ada", "wrong", **forwarded)
    assert SignInFailure.objects.get().address == seen


# One-time links


def test_it_shows_a_button_and_uses_nothing_up_by_looking(ada: User, client: Client) -> None:
    address = reverse("sign-in-link", args=[accounts.new_sign_in_link(ada)])
    assert "Press the button" in client.get(address).content.decode()
    assert not is_signed_in(client)
    assert client.post(address).status_code == 302
    assert is_signed_in(client)


def test_it_refuses_a_link_the_second_time(ada: User) -> None:
    address = reverse("sign-in-link", args=[accounts.new_sign_in_link(ada)])
    Client().post(address)
    response = Client().post(address)
    assert response.status_code == 403
    assert "not valid any more" in response.content.decode()


def test_it_refuses_a_link_after_a_day(ada: User) -> None:
    token = accounts.new_sign_in_link(ada)
    SignInLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(accounts.LinkError):
        accounts.use_sign_in_link(token)


def test_it_refuses_an_unknown_link(db: None, client: Client) -> None:
    assert client.post(reverse("sign-in-link", args=["x" * 43])).status_code == 403


def test_it_ends_an_earlier_link_with_a_new_one(ada: User) -> None:
    earlier = accounts.new_sign_in_link(ada)
    later = accounts.new_sign_in_link(ada)
    with pytest.raises(accounts.LinkError):
        accounts.use_sign_in_link(earlier)
    assert accounts.use_sign_in_link(later) == ada


def test_it_keeps_only_the_hash_of_a_link(ada: User) -> None:
    token = accounts.new_sign_in_link(ada)
    link = SignInLink.objects.get()
    assert len(link.token_hash) == 64
    assert token not in str([*SignInLink.objects.values(), *Audit.objects.values()])


def test_it_leads_to_setting_a_password_after_the_first_link(db: None, client: Client) -> None:
    user = make_user("nina")
    response = client.post(reverse("sign-in-link", args=[accounts.new_sign_in_link(user)]))
    assert response.headers["Location"] == reverse("account")
    page = client.get(reverse("account")).content.decode()
    assert "Set a password" in page
    assert "Old password" not in page


# Sessions and the own account


def change_password(client: Client, old: str, new: str) -> int:
    data = {"action": "password", "old_password": old, "new_password1": new, "new_password2": new}
    return client.post(reverse("account"), data).status_code


def test_it_signs_out_everywhere_else_with_a_new_password(ada: User) -> None:
    here, there = Client(), Client()
    assert [post_sign_in(client, "ada") for client in (here, there)] == [302, 302]
    assert change_password(here, PASSWORD, "a new long secret 7") == 302
    assert is_signed_in(here)
    assert not is_signed_in(there)
    assert post_sign_in(there, "ada", "a new long secret 7") == 302


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("wrong", "a new long secret 7", "old password was entered incorrectly"),
        (PASSWORD, "short", "too short"),
        (PASSWORD, "password123", "too common"),
    ],
)
def test_it_refuses_a_bad_password_change(
    ada: User, client: Client, old: str, new: str, said: str
) -> None:
    post_sign_in(client, "ada")
    data = {"action": "password", "old_password": old, "new_password1": new, "new_password2": new}
    response = client.post(reverse("account"), data)
    assert response.status_code == 422
    assert said in response.content.decode()


def test_it_signs_out_elsewhere_on_request(ada: User, sign_in: SignIn) -> None:
    here, there, other = sign_in(ada), sign_in(ada), sign_in(make_user("bob"))
    here.post(reverse("account"), {"action": "elsewhere"})
    assert [is_signed_in(client) for client in (here, there, other)] == [True, False, True]


def test_it_signs_out(ada: User, sign_in: SignIn) -> None:
    client = sign_in(ada)
    assert client.post(reverse("sign-out")).headers["Location"] == reverse("sign-in")
    assert not is_signed_in(client)
    assert not Session.objects.exists()


def test_it_sends_a_poll_of_an_ended_session_to_the_sign_in(db: None, client: Client) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/status/?a=1"}
    response = client.get(reverse("status"), headers=headers, follow=True)
    assert response.status_code == 200
    assert response.headers["HX-Redirect"] == "/sign-in/?next=%2Fstatus%2F%3Fa%3D1"
    assert not response.content


# People


def test_it_makes_a_user_and_shows_the_link_once(admin: User, admin_client: Client) -> None:
    data = {"username": "nina", "role": "operator"}
    page = admin_client.post(reverse("user-new"), data).content.decode()
    found = re.search(r"http://testserver(/sign-in/link/[\w-]+/)", page)
    assert found is not None
    nina = Client()
    nina.post(found[1])
    assert is_signed_in(nina)
    user = User.objects.get(username="nina")
    assert (user.role, user.has_usable_password()) == ("operator", False)
    detail = admin_client.get(reverse("user-detail", args=[user.pk])).content.decode()
    assert found[1] not in detail


@pytest.mark.parametrize("name", ["ada", "two words", "<b>", "x" * 151, ""])
def test_it_refuses_a_name_that_cannot_be(admin_client: Client, name: str) -> None:
    response = admin_client.post(reverse("user-new"), {"username": name, "role": "viewer"})
    assert response.status_code == 422
    assert User.objects.count() == 1


def test_it_changes_a_role(admin: User, admin_client: Client) -> None:
    user = make_user("bob", role=Role.VIEWER)
    address = reverse("user-detail", args=[user.pk])
    assert admin_client.post(address, {"action": "role", "role": "operator"}).status_code == 302
    user.refresh_from_db()
    assert user.role == Role.OPERATOR
    row = Audit.objects.get(action="user.role")
    assert (row.actor, row.subject) == ("ada", "user bob")
    assert row.detail == {"before": "viewer", "after": "operator"}


def test_it_ends_sessions_and_links_of_a_disabled_user(
    admin: User, admin_client: Client, sign_in: SignIn
) -> None:
    user = make_user("bob")
    bob, token = sign_in(user), accounts.new_sign_in_link(user)
    address = reverse("user-detail", args=[user.pk])
    admin_client.post(address, {"action": "disable"})
    assert not is_signed_in(bob)
    with pytest.raises(accounts.LinkError):
        accounts.use_sign_in_link(token)
    admin_client.post(address, {"action": "enable"})
    assert not is_signed_in(bob), "an old session does not come back"
    assert is_signed_in(sign_in(User.objects.get(pk=user.pk)))


@pytest.mark.parametrize("data", [{"action": "disable"}, {"action": "role", "role": "viewer"}])
def test_it_keeps_the_last_admin(admin: User, admin_client: Client, data: dict[str, str]) -> None:
    make_user("gone", role=Role.ADMIN, is_active=False)
    response = admin_client.post(reverse("user-detail", args=[admin.pk]), data)
    assert response.status_code == 422
    assert "last admin" in response.content.decode()
    admin.refresh_from_db()
    assert (admin.role, admin.is_active) == (Role.ADMIN, True)


def test_it_lets_an_admin_step_down_beside_another(admin: User) -> None:
    other = make_user("eve", role=Role.ADMIN)
    assert accounts.change_role(admin.pk, Role.VIEWER, by=other).role == Role.VIEWER


def test_it_gives_a_user_another_link(admin_client: Client) -> None:
    user = make_user("bob")
    response = admin_client.post(reverse("user-detail", args=[user.pk]), {"action": "link"})
    assert "/sign-in/link/" in response.content.decode()
    assert "no-store" in response.headers["Cache-Control"]


def test_it_says_what_is_wrong_with_an_unknown_change(admin_client: Client) -> None:
    user = make_user("bob")
    response = admin_client.post(reverse("user-detail", args=[user.pk]), {"action": "promote"})
    assert response.status_code == 422
    assert "promote is not one of the available choices" in response.content.decode()


def test_it_records_who_came_and_who_failed(ada: User, client: Client) -> None:
    post_sign_in(client, "ada", "wrong")
    post_sign_in(client, "ada")
    client.post(reverse("sign-out"))
    rows = list(Audit.objects.order_by("id").values_list("action", "actor", "subject"))
    assert rows == [
        ("sign_in.failed", "system", "user ada"),
        ("sign_in", "ada", "user ada"),
        ("sign_out", "ada", "user ada"),
    ]
    assert Audit.objects.filter(detail__address="127.0.0.1").count() == 2
    assert PASSWORD not in str(list(Audit.objects.values()))


def test_it_lists_people_in_a_fixed_number_of_queries(
    admin_client: Client, django_assert_max_num_queries: Callable[[int], object]
) -> None:
    for place in range(5):
        accounts.new_sign_in_link(make_user(f"person{place}"))
    with django_assert_max_num_queries(4):  # type: ignore[attr-defined]
        page = admin_client.get(reverse("user-list")).content.decode()
    assert "person4" in page
