"""A person's verbs on schedules: make one, switch it, ask it to fire, set a budget."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from django.db import IntegrityError, transaction

from dashboard.models import (
    Budget,
    Cause,
    Firing,
    FiringState,
    Platform,
    Repository,
    Schedule,
    ScheduleKind,
    Template,
    TemplateVersion,
    User,
)
from dashboard.services import audit, comparisons, templates
from dashboard.services.addresses import check_ref
from dashboard.services.clock import db_now
from profiler.errors import SpecError, UserError, printable
from profiler.types import RunSpec

HOURS_LIMIT = 24 * 31
NEWEST_LIMIT = 50
MINUTES_A_DAY = 24 * 60
KEY_BYTES = 12


class ScheduleError(UserError):
    """A schedule that cannot be, or a change of one that cannot be made."""

    kind = "schedule"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchedule:
    """What is to be queued by itself, where and when."""

    name: str
    kind: ScheduleKind
    template: Template
    platform: Platform
    repository: Repository | None = None
    branch: str = ""
    every_h: int | None = None
    at_minute: int = 0
    newest: int = 5


def create_schedule(wanted: NewSchedule, user: User | None) -> Schedule:
    """Store a schedule that counts from now; raises `UserError` saying what cannot work."""
    _check(wanted)
    now = db_now()
    try:
        with transaction.atomic():
            row = Schedule.objects.create(
                name=wanted.name,
                kind=wanted.kind,
                template=wanted.template,
                platform=wanted.platform,
                repository=wanted.repository,
                branch=wanted.branch,
                every_h=wanted.every_h,
                at_minute=wanted.at_minute,
                newest=wanted.newest,
                enabled_at=now,
                created_by=user,
                created_at=now,
            )
            audit.note(user, "schedule.create", row.name)
    except IntegrityError:
        raise ScheduleError(
            f"A schedule named {wanted.name} exists already", "choose another name"
        ) from None
    return row


def _check(wanted: NewSchedule) -> None:
    if not wanted.name or printable(wanted.name, 60) != wanted.name:
        raise ScheduleError("The name is empty or cannot be shown", "at most 60 plain characters")
    hours = wanted.every_h
    if wanted.kind == ScheduleKind.INTERVAL and not (hours and 1 <= hours <= HOURS_LIMIT):
        raise ScheduleError(f"every {hours} hours cannot be", f"allowed: 1 to {HOURS_LIMIT}")
    if not 0 <= wanted.at_minute < MINUTES_A_DAY:
        raise ScheduleError("The time of day cannot be", "allowed: 00:00 to 23:59")
    if not 1 <= wanted.newest <= NEWEST_LIMIT:
        raise ScheduleError(f"{wanted.newest} commits cannot be", f"allowed: 1 to {NEWEST_LIMIT}")
    if wanted.kind == ScheduleKind.COMMITS and wanted.repository is None:
        raise ScheduleError("New commits of what?", "choose a repository")
    if (wanted.repository is None) == bool(wanted.branch):
        raise ScheduleError(
            "A branch and its repository belong together", "choose both, or leave both out"
        )
    if wanted.branch:
        check_ref(wanted.branch)
    version = templates.newest_version(wanted.template.name)
    if version is None:
        raise ScheduleError(f"{wanted.template} has no version", "choose another template")
    specs_of(version, wanted.platform, wanted.repository)


def specs_of(
    version: TemplateVersion, platform: Platform, repository: Repository | None
) -> tuple[RunSpec, ...]:
    """The runs of a template there, with the model of `repository` if it brings one.

    Raises `SpecError` when one of them cannot work.
    """
    specs = templates.runs_of(version, device=platform.device)
    return comparisons.specs_at(repository, specs) if repository else specs


def switch_schedule(schedule_id: int, user: User, *, enabled: bool) -> Schedule:
    """Stop a schedule, or let it go on from now: nothing is made up for."""
    with transaction.atomic():
        row = Schedule.objects.select_for_update().get(pk=schedule_id)
        if row.enabled != enabled:
            row.enabled, row.problem = enabled, ""
            if enabled:
                row.enabled_at, row.looked_at, row.seen_sha = db_now(), None, ""
            row.save(update_fields=["enabled", "enabled_at", "looked_at", "seen_sha", "problem"])
            audit.note(user, "schedule.on" if enabled else "schedule.off", row.name)
    return row


def delete_schedule(schedule_id: int, user: User) -> None:
    """Forget a schedule and its firings; the runs they queued stay."""
    with transaction.atomic():
        row = Schedule.objects.select_for_update().get(pk=schedule_id)
        audit.note(user, "schedule.delete", row.name, {"firings": row.firings.count()})
        row.delete()


def fire_now(schedule_id: int, user: User, *, key: str = "") -> Firing:
    """Ask a schedule to fire as soon as the budget allows; the same `key` again is the same one."""
    with transaction.atomic():
        schedule = Schedule.objects.select_related("template").get(pk=schedule_id)
        fired, made = new_firing(
            schedule,
            f"person {key or secrets.token_urlsafe(KEY_BYTES)}",
            cause=Cause.PERSON,
            by=user,
        )
        if made:
            audit.note(user, "schedule.fire", schedule.name, {"firing": fired.pk})
    return fired


def drop_firing(firing_id: int, user: User) -> Firing:
    """Take a waiting firing back; raises `ScheduleError` when it waits no more."""
    with transaction.atomic():
        taken = Firing.objects.filter(pk=firing_id, state=FiringState.WAITING).update(
            state=FiringState.SKIPPED,
            wait="",
            reason=f"dropped by {printable(user.get_username(), 100)}",
            decided_at=db_now(),
        )
        row = Firing.objects.select_related("schedule").get(pk=firing_id)
        if not taken:
            raise ScheduleError(
                f"Firing {firing_id} waits no more", "cancel its runs on their page instead"
            )
        audit.note(user, "schedule.drop", row.schedule.name, {"firing": firing_id})
    return row


def set_budget(platform_slug: str, minutes_per_day: float | None, user: User) -> None:
    """Limit what schedules may use of a platform per UTC day; None takes the limit away."""
    if minutes_per_day is not None and not 0 <= minutes_per_day <= MINUTES_A_DAY * 100:
        raise ScheduleError(f"{minutes_per_day:g} minutes a day cannot be", "allowed: 0 to 144,000")
    with transaction.atomic():
        platform = Platform.objects.get(slug=platform_slug)
        if minutes_per_day is None:
            Budget.objects.filter(platform=platform).delete()
        else:
            values = {"minutes_per_day": minutes_per_day}
            Budget.objects.update_or_create(platform=platform, defaults=values)
        # What waits for the old budget is looked at again at once.
        Firing.objects.filter(schedule__platform=platform, state=FiringState.WAITING).update(
            not_before=db_now()
        )
        told = "none" if minutes_per_day is None else f"{minutes_per_day:g} min a day"
        audit.note(user, "budget.set", platform_slug, {"budget": told})


def new_firing(
    schedule: Schedule,
    key: str,
    *,
    cause: Cause,
    cause_text: str = "",
    version: TemplateVersion | None = None,
    by: User | None = None,
    **values: object,
) -> tuple[Firing, bool]:
    """The firing of that key, and whether it is new; call it in a transaction."""
    chosen = version or templates.newest_version(schedule.template.name)
    if chosen is None:
        raise SpecError(f"{schedule.template} has no version", "save one, or choose another")
    now = db_now()
    fresh = {
        "cause": cause,
        "cause_text": printable(cause_text, 300),
        "version": chosen,
        "created_by": by,
        "created_at": now,
        "not_before": now,
        **values,
    }
    return Firing.objects.get_or_create(schedule=schedule, key=key[:200], defaults=fresh)
