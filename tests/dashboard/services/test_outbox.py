"""The outbox: what rings, when, and what rings again."""

from __future__ import annotations

import pytest
from django.conf import settings

from dashboard.models import Outbox, Run
from dashboard.services import lifecycle, outbox
from tests.dashboard.services import scene
from tests.dashboard.services.scene import Clock

pytestmark = pytest.mark.django_db


def publish() -> int:
    due = outbox.due_messages(100)
    outbox.published([message.outbox_id for message in due])
    return len(due)


def test_a_message_names_queue_task_subject_and_attempt() -> None:
    run = scene.queued()
    (message,) = outbox.due_messages(10)
    assert (message.queue, message.task) == ("platform.cpu", "run_benchmark")
    assert (message.subject_id, message.attempt) == (run.pk, 1)


def test_a_published_message_is_forgotten(clock: Clock) -> None:
    scene.queued()
    assert (publish(), publish()) == (1, 0)
    assert Run.objects.get().rung_at == clock.now


def test_a_refused_message_waits_longer_each_time(clock: Clock) -> None:
    scene.queued()
    waits = []
    for _ in range(8):
        (message,) = outbox.due_messages(1)
        outbox.postponed([message.outbox_id], "refused")
        row = Outbox.objects.get()
        waits.append((row.not_before - clock.now).total_seconds())
        clock.now = row.not_before
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]


def test_it_rings_again_for_what_nobody_took(clock: Clock) -> None:
    scene.queued()
    publish()
    clock.advance(settings.RECONCILE_S - 1)
    assert outbox.republish_unclaimed() == 0
    clock.advance(2)
    assert (outbox.republish_unclaimed(), outbox.republish_unclaimed()) == (1, 0)
    assert publish() == 1


def test_it_does_not_ring_again_for_a_claimed_run(clock: Clock) -> None:
    run = scene.queued()
    publish()
    assert lifecycle.claim_run(run.pk, 1, scene.WORKER)
    clock.advance(settings.RECONCILE_S + 1)
    assert outbox.republish_unclaimed() == 0


def test_a_long_queue_does_not_flood_the_broker(clock: Clock) -> None:
    for _ in range(outbox.OLDEST + 3):
        scene.queued()
    publish()
    clock.advance(settings.RECONCILE_S + 1)
    assert outbox.republish_unclaimed() == outbox.OLDEST
