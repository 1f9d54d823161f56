"""Rows of schedules and changes for tests."""

# ruff: noqa: ANN401 - the values of columns are of any type

from __future__ import annotations

from datetime import datetime
from typing import Any

from dashboard.models import (
    Announcement,
    Change,
    ChangeDirection,
    ChangeState,
    Endpoint,
    Firing,
    Model,
    Repository,
    Schedule,
    ScheduleKind,
    Subscription,
    Template,
    TemplateVersion,
    User,
)
from dashboard.services import templates
from dashboard.services.announcements import announce
from dashboard.services.clock import db_now
from tests.factories import make_platform, make_user
from tests.histories import make_change
from tests.sources import make_repository

TEXT = """\
name = "small"
version = 1
title = "Two runs"

[fields]
model = "llama-tiny"
scenario = "prefill"
prompt_tokens = 8

[axes]
batch = [1, 2]
"""


def make_template() -> TemplateVersion:
    """The newest version of a template of two runs."""
    found = templates.newest_version("small")
    return found or templates.save_template(TEXT, make_user())


def make_schedule(kind: str = ScheduleKind.INTERVAL, **fields: Any) -> Schedule:
    """A schedule of the small template that is on since yesterday."""
    template: Template = make_template().template
    now = fields.pop("now", None) or db_now()
    values: dict[str, Any] = {
        "name": f"schedule{Schedule.objects.count()}",
        "template": template,
        "platform": make_platform(),
        "enabled_at": now,
        "created_at": now,
    }
    if kind == ScheduleKind.INTERVAL:
        values |= {"every_h": 24, "at_minute": 120}
    if kind == ScheduleKind.COMMITS and "repository" not in fields:
        values |= {"repository": make_repository(), "branch": "main"}
    return Schedule.objects.create(kind=kind, **(values | fields))


def make_firing(schedule: Schedule | None = None, **fields: Any) -> Firing:
    """A firing that waits."""
    schedule = schedule or make_schedule()
    now = db_now()
    values: dict[str, Any] = {
        "key": f"key {Firing.objects.count()}",
        "cause": "person",
        "version": make_template(),
        "created_at": now,
        "not_before": now,
    }
    return Firing.objects.create(schedule=schedule, **(values | fields))


def fetched(repository: Repository, at: datetime) -> None:
    """As if a keeper had fetched it then."""
    repository.fetched_at, repository.wanted_at = at, None
    repository.save(update_fields=["fetched_at", "wanted_at"])


def make_confirmed(effect: float = 0.102, **fields: Any) -> Change:
    """A change that measuring again confirmed, with the operator that took most of it."""
    values: dict[str, Any] = {
        "state": ChangeState.CONFIRMED,
        "direction": ChangeDirection.SLOWER if effect > 0 else ChangeDirection.FASTER,
        "after_value": 1e6 * (1 + effect),
        "effect": effect,
        "measured_effect": effect,
        "culprit": "aten::softmax",
        "sentence": "It was measured again in 20 pairs.",
    }
    return make_change(**(values | fields))


def make_announcement(effect: float = 0.102, **fields: Any) -> Announcement:
    """A change that was announced to whoever listens."""
    made = announce(make_confirmed(effect, **fields))
    assert made is not None
    return made


def make_subscription(user: User, **fields: Any) -> Subscription:
    """What `user` wants to hear about: everything unless told otherwise."""
    model: Model | None = fields.pop("model", None)
    values = {"least": 0.0, "improvements": True, "created_at": db_now()} | fields
    return Subscription.objects.update_or_create(user=user, model=model, defaults=values)[0]


def make_endpoint(url: str = "https://chat.example.org/hook/secret", **fields: Any) -> Endpoint:
    """A program that is told of everything."""
    values = {"name": f"endpoint{Endpoint.objects.count()}", "created_at": db_now()} | fields
    return Endpoint.objects.create(url=url, **values)
