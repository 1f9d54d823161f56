"""Queues what schedules fired, as far as the budget of the platform allows. For the keeper.

A firing waits until its commit is known and the device time it usually takes
fits into what is left of the day. Firings of a platform are queued in their
order: a cheap one does not overtake, unless the one before can never fit.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from dashboard.models import (
    Budget,
    FetchState,
    Firing,
    FiringState,
    Platform,
    Repository,
    Run,
    Wait,
    Workload,
)
from dashboard.models.runs import ACTIVE, TERMINAL
from dashboard.services import repositories, templates
from dashboard.services.automation import specs_of
from dashboard.services.clock import db_now
from dashboard.services.estimates import usual_ns
from profiler import spec as specs
from profiler import units
from profiler.errors import UserError, printable
from profiler.types import RunSpec

LOOK_AGAIN = timedelta(minutes=1)
"""How often a firing over the budget is looked at again."""

_NS_A_MINUTE = 60e9
_RELATED = ("schedule__platform", "schedule__repository", "version__template", "commit")


def queue_waiting() -> int:
    """Queue every waiting firing that may go now; how many went."""
    now = db_now()
    held: set[int] = set()
    count = 0
    rows = Firing.objects.filter(state=FiringState.WAITING).order_by("id")
    for pk, platform, wait, not_before, reason in rows.values_list(
        "pk", "schedule__platform_id", "wait", "not_before", "reason"
    ):
        if platform in held:
            if not reason:
                _hold(pk)
            continue
        if not_before > now:
            held |= {platform} if wait == Wait.BUDGET else set()
            continue
        state, wait = decide(pk)
        count += state == FiringState.QUEUED
        held |= {platform} if wait == Wait.BUDGET else set()
    return count


@transaction.atomic
def _hold(firing_id: int) -> None:
    """Say why one behind another waits, and how long it will usually take."""
    rows = Firing.objects.select_for_update(of=("self",)).filter(
        pk=firing_id, state=FiringState.WAITING
    )
    firing = rows.select_related(*_RELATED).first()
    if firing is None:
        return
    try:
        _estimate(firing, _wanted(firing))
    except UserError as error:
        _skip(firing, error.line())
        return
    _wait(firing, "", "waits for its turn: one before it waits for device time")


@transaction.atomic
def decide(firing_id: int) -> tuple[str, str]:
    """Queue one firing, let it wait, or skip it; its state and what it waits for."""
    rows = Firing.objects.select_for_update(of=("self",)).filter(
        pk=firing_id, state=FiringState.WAITING
    )
    firing = rows.select_related(*_RELATED).first()
    if firing is None:
        return FiringState.SKIPPED, ""
    try:
        if _waits_for_fetch(firing):
            return _wait(firing, Wait.FETCH, "waits for a fetch of its repository")
        wanted = _wanted(firing)
    except UserError as error:
        return _skip(firing, error.line())
    _estimate(firing, wanted)
    short = _shortage(firing, firing.schedule.platform)
    if short is not None:
        return _wait(firing, short.wait, short.reason, later=LOOK_AGAIN / settings.TIME_SCALE)
    return _queue(firing, wanted)


def _wanted(firing: Firing) -> tuple[RunSpec, ...]:
    schedule = firing.schedule
    return specs_of(firing.version, schedule.platform, schedule.repository)


def _waits_for_fetch(firing: Firing) -> bool:
    """Whether the commit of a firing of a branch cannot be known yet; sets it once it is.

    Raises `UserError` when the repository or the branch cannot be had.
    """
    row = firing.schedule.repository
    if row is None or firing.commit is not None:
        return False
    if row.fetched_at is None or row.fetched_at < firing.created_at:
        if row.state == FetchState.FAILED and row.wanted_at is None and firing.wait == Wait.FETCH:
            raise UserError(f"{row.slug} could not be fetched: {row.reason}", row.hint)
        Repository.objects.filter(pk=row.pk, wanted_at__isnull=True).update(wanted_at=db_now())
        return True
    firing.commit = repositories.resolve(row, firing.schedule.branch)
    return False


def _estimate(firing: Firing, wanted: Sequence[RunSpec]) -> None:
    """How long its runs usually take there, one after another."""
    hashes = [specs.workload_hash(spec) for spec in wanted]
    known = _usual_by_hash(hashes, firing.schedule.platform_id)
    times = [known[digest] for digest in hashes if digest in known]
    firing.runs = len(wanted)
    firing.usual_ns = sum(times) if times else None
    firing.unknown_runs = len(wanted) - len(times)


def _usual_by_hash(hashes: Sequence[str], platform_id: int) -> dict[str, float]:
    rows = dict(Workload.objects.filter(hash__in=set(hashes)).values_list("pk", "hash"))
    return {rows[pk]: took for pk, took in usual_ns(rows, platform_id).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shortage:
    """Why a firing does not fit into the day."""

    wait: Wait
    reason: str


def _shortage(firing: Firing, platform: Platform) -> _Shortage | None:
    """None when it fits. A firing without any history goes while something is left."""
    # The lock makes two keepers ask one after the other.
    budget = Budget.objects.select_for_update().filter(platform=platform).first()
    if budget is None:
        return None
    limit_ns = budget.minutes_per_day * _NS_A_MINUTE
    used = used_today_ns(platform, db_now())
    needs = firing.usual_ns or 0.0
    a_day = f"{units.duration(limit_ns)} of device time a day on {platform.slug}"
    if needs > limit_ns or limit_ns == 0:
        what = f"needs {units.duration(firing.usual_ns)}" if needs else "needs device time"
        return _Shortage(
            wait=Wait.TOO_LARGE,
            reason=f"{what}, and schedules may use {a_day}: raise the budget or drop this firing",
        )
    if used + needs <= limit_ns and used < limit_ns:
        return None
    what = f"; this needs {units.duration(needs)}" if needs else ""
    return _Shortage(
        wait=Wait.BUDGET,
        reason=f"over the budget: {units.duration(used)} of {a_day} are used or queued{what}; "
        "it waits for the next day (UTC)",
    )


def used_today_ns(platform: Platform, now: datetime) -> float:
    """Device time that schedules used of the platform today, and will use for what is queued."""
    fired = runs_of_today(now).filter(group__firing__isnull=False)
    return used_of((run for run in fired if run.platform_id == platform.pk), now)


def runs_of_today(now: datetime) -> QuerySet[Run]:
    """Runs that have not ended, or not before midnight UTC, with their firing if they have one.

    Of all platforms: both parts have an index, which that of the platform would keep
    from being used.
    """
    today = Q(state__in=ACTIVE) | Q(state__in=TERMINAL, ended_at__gte=_midnight(now))
    return Run.objects.filter(today).select_related("group__firing").defer("spec", "log_tail")


def used_of(runs: Iterable[Run], now: datetime) -> float:
    """Device time today of runs of schedules, in nanoseconds.

    A run that has not ended counts with its share of what its firing usually
    takes, or with what it took so far if that is more.
    """
    midnight = _midnight(now)
    return sum(_counted_ns(run, midnight, now) for run in runs)


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _counted_ns(run: Run, midnight: datetime, now: datetime) -> float:
    if run.ended_at is None:
        return _expected_ns(run, midnight, now)
    if run.started_at is None:
        return 0.0  # it was cancelled before anybody took it
    return _ns_between(max(run.started_at, midnight), run.ended_at)


def _expected_ns(run: Run, midnight: datetime, now: datetime) -> float:
    assert run.group is not None  # by the filter
    firing = run.group.firing
    known = firing.runs - firing.unknown_runs
    usual = firing.usual_ns / known if firing.usual_ns and known else 0.0
    so_far = _ns_between(max(run.started_at, midnight), now) if run.started_at else 0.0
    return max(usual, so_far)


def _ns_between(start: datetime, end: datetime) -> float:
    return max(0.0, (end - start).total_seconds() * 1e9)


def _queue(firing: Firing, wanted: Sequence[RunSpec]) -> tuple[str, str]:
    """The runs and the note that they were queued are stored together, or neither is."""
    runs = templates.queue_template(
        firing.version,
        wanted,
        platform=firing.schedule.platform,
        user=None,
        seed=secrets.randbits(templates.SEED_BITS),
        key=None,
        commit=firing.commit,
    )
    firing.group = runs[0].group
    return _settle(firing, FiringState.QUEUED)


def _skip(firing: Firing, reason: str) -> tuple[str, str]:
    return _settle(firing, FiringState.SKIPPED, reason)


def _settle(firing: Firing, state: FiringState, reason: str = "") -> tuple[str, str]:
    firing.state, firing.wait = state, ""
    firing.reason, firing.decided_at = printable(reason, 500), db_now()
    firing.save()
    return state, ""


def _wait(
    firing: Firing, wait: str, reason: str, *, later: timedelta = timedelta(0)
) -> tuple[str, str]:
    firing.wait, firing.reason = wait, printable(reason, 500)
    firing.not_before = db_now() + later
    firing.save()
    return FiringState.WAITING, wait
