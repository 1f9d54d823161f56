"""Who is told of a change, once, and what it reads like."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from dashboard.models import Announcement, ChangeState, Delivery, Receipt, User
from dashboard.services import announcements
from dashboard.services.announcements import Wish, announce, mark_read, subscribe
from profiler.errors import UserError
from tests.automation import (
    make_announcement,
    make_confirmed,
    make_endpoint,
    make_subscription,
)
from tests.factories import make_model, make_user
from tests.sources import make_commit

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def mail(settings: Settings) -> None:
    settings.EMAIL_ON = True


def heard() -> set[str]:
    """Who has an announcement in their list."""
    return set(Receipt.objects.values_list("user__username", flat=True))


def mailed() -> set[str]:
    return set(Delivery.objects.filter(endpoint=None).values_list("user__username", flat=True))


def test_it_says_what_where_and_by_which_commit() -> None:
    change = make_confirmed(0.102)
    made = announce(change)
    assert made is not None
    assert made.title == (
        f"llama-tiny decode on cpu: 10.2 % slower since {change.after_commit.sha[:10]}"
    )
    assert made.sentence == (
        "Time per output token went from 1.00 ms to 1.10 ms with “a change”; most of it in "
        "aten::softmax. It was measured again in 20 pairs."
    )
    assert made.facts["operator"] == "aten::softmax"
    assert made.facts["candidate_commit"] == change.after_commit.sha
    assert made.severity == pytest.approx(0.102)


def test_an_improvement_is_told_too() -> None:
    made = make_announcement(-0.3)
    assert made.kind == "faster" and "30.0 % faster since" in made.title


def test_a_fixed_change_names_the_commit_that_fixed_it() -> None:
    change = make_confirmed()
    announce(change)
    change.state, change.fixed_commit = ChangeState.FIXED, make_commit(change.repository, "mend it")
    change.save()
    made = announce(change)
    assert made is not None and made.kind == "fixed"
    assert "10.2 % slower is fixed" in made.title and "“mend it”" in made.sentence
    assert Announcement.objects.count() == 2


def test_the_same_change_is_announced_once() -> None:
    make_user("vera")
    change = make_confirmed()
    assert announce(change) == announce(change)
    assert (Announcement.objects.count(), Receipt.objects.count()) == (1, 1)


def test_the_end_of_what_nobody_was_told_of_is_not_told() -> None:
    assert announce(make_confirmed(state=ChangeState.FIXED)) is None


@pytest.mark.parametrize("state", [ChangeState.NEW, ChangeState.REJECTED, ChangeState.CONFIRMING])
def test_what_is_not_confirmed_is_not_announced(state: ChangeState) -> None:
    assert announce(make_confirmed(state=state)) is None


def test_foreign_text_is_told_harmless() -> None:
    change = make_confirmed(culprit="a\r\nBcc: x@y\u202e")
    change.after_commit.subject = "one\ntwo"
    made = announce(change)
    assert made is not None
    assert made.sentence.isprintable() and "one\\ntwo" in made.sentence


def test_without_a_subscription_one_hears_of_everything_but_gets_no_mail() -> None:
    make_user("vera", email="vera@example.org")
    make_user("gone", is_active=False)
    make_announcement(0.001)
    assert (heard(), mailed()) == ({"vera"}, set())


def test_subscriptions_choose_by_model_size_and_direction() -> None:
    other = make_model("other")
    people = {name: make_user(name, email=f"{name}@example.org") for name in "abcde"}
    make_subscription(people["a"], email=True)
    make_subscription(people["b"], model=other, email=True)
    make_subscription(people["c"], least=0.2, email=True)
    make_subscription(people["d"], improvements=False, email=True)
    make_subscription(people["e"], email=False)
    make_announcement(0.102)
    assert (heard(), mailed()) == ({"a", "d", "e"}, {"a", "d"})
    Receipt.objects.all().delete()
    make_announcement(-0.25)
    assert heard() == {"a", "c", "e"}


def test_no_mail_is_written_while_mail_is_off(settings: Settings) -> None:
    settings.EMAIL_ON = False
    make_subscription(make_user("vera", email="vera@example.org"), email=True)
    make_announcement()
    assert (heard(), mailed()) == ({"vera"}, set())


def test_endpoints_choose_like_people() -> None:
    make_endpoint(name="all")
    make_endpoint(name="off", enabled=False)
    make_endpoint(name="severe", least=0.2)
    make_endpoint(name="slower", improvements=False)
    make_announcement(-0.1)
    told = Delivery.objects.filter(user=None).values_list("endpoint__name", flat=True)
    assert list(told) == ["all"]


def test_reading_marks_what_was_shown_and_nothing_newer() -> None:
    vera = make_user("vera")
    first, second = make_announcement(), make_announcement()
    assert mark_read(vera, first.pk) == 1
    assert Receipt.objects.get(read_at=None).announcement == second
    assert (mark_read(vera), mark_read(vera)) == (1, 0)


def test_subscribing_again_changes_it() -> None:
    vera = make_user("vera")
    every = Wish(model=None, least=0.0, improvements=True)
    assert subscribe(vera, every) == subscribe(
        vera, Wish(model=None, least=0.1, improvements=False)
    )
    row = vera.subscriptions.get()
    assert (row.least, row.improvements) == (0.1, False)


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (Wish(model=None, least=0.33, improvements=True), "0.33 is no severity"),
        (Wish(model=None, least=0.0, improvements=True, email=True), "no e-mail address"),
    ],
)
def test_it_refuses_what_cannot_be(wish: Wish, words: str) -> None:
    with pytest.raises(UserError, match=words):
        subscribe(make_user(), wish)


def test_nobody_ends_the_subscription_of_another() -> None:
    row = make_subscription(make_user("vera"))
    assert announcements.unsubscribe(row.pk, make_user("mallory")) is False
    assert announcements.unsubscribe(row.pk, row.user) is True


def test_without_an_address_subscriptions_send_no_mail() -> None:
    vera = make_user("vera", email="vera@example.org")
    make_subscription(vera, email=True)
    announcements.set_address(vera, "")
    assert User.objects.get(pk=vera.pk).email == ""
    assert vera.subscriptions.get().email is False
