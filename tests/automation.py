"""Rows of schedules and changes for tests."""

# ruff: noqa: ANN401 - the values of columns are of any type

from __future__ import annotations

from datetime import datetime
from typing import Any

from dashboard.models import (
    Change,
    ChangeDirection,
    ChangeKind,
    ChangeState,
    Firing,
    Repository,
    Schedule,
    ScheduleKind,
    Template,
    TemplateVersion,
)
from dashboard.services import templates
from dashboard.services.clock import db_now
from tests.factories import make_platform, make_user, make_workload
from tests.sources import make_commit, make_repository

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


def make_change(
    state: str = ChangeState.CONFIRMED, *, effect: float = 0.102, **fields: Any
) -> Change:
    """A change of a workload's history between two commits."""
    repository = fields.pop("repository", None)
    repository = repository or Repository.objects.first() or make_repository()
    now = db_now()
    slower = effect > 0
    values: dict[str, Any] = {
        "repository": repository,
        "workload": make_workload(),
        "platform": make_platform(),
        "metric": "tpot",
        "comparable_hash": "a" * 64,
        "kind": ChangeKind.STEP,
        "direction": ChangeDirection.SLOWER if slower else ChangeDirection.FASTER,
        "before_commit": make_commit(repository, "the old way"),
        "after_commit": make_commit(repository, "fuse softmax"),
        "before_value": 1e6,
        "after_value": 1e6 * (1 + effect),
        "effect": effect,
        "p_value": 0.001,
        "state": state,
        "found_at": now,
        "state_at": now,
        "measured_effect": effect,
        "culprit": "aten::softmax",
        "sentence": "It was measured again in 20 pairs.",
    }
    return Change.objects.create(**(values | fields))
