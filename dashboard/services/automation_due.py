"""What every schedule wants to fire now. For the keeper; looking twice fires once.

Each look is one transaction: the firings and what was seen are stored
together, and the key of a firing is unique. So a keeper may be killed
anywhere, and several may look at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from dashboard.models import (
    Cause,
    Commit,
    Firing,
    Repository,
    Schedule,
    ScheduleKind,
    Stack,
    TemplateVersion,
)
from dashboard.services import templates
from dashboard.services.automation import new_firing
from dashboard.services.clock import db_now
from profiler.errors import printable

POLL = timedelta(minutes=2)
"""How old the last fetch of a watched repository may be."""

WALK_LIMIT = 1_000
"""Newest commits of a repository among which new ones are looked for."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def enabled_schedules() -> list[int]:
    """Those to look at, in the order of their making."""
    return list(Schedule.objects.filter(enabled=True).order_by("id").values_list("pk", flat=True))


def poll_repositories() -> int:
    """Ask for a fetch of every watched repository whose last one is old; how many.

    A repository that cannot be fetched is asked for as often as one that can.
    """
    now = db_now()
    before = now - POLL / settings.TIME_SCALE
    due = Schedule.objects.filter(enabled=True, kind=ScheduleKind.COMMITS).filter(
        Q(polled_at__isnull=True) | Q(polled_at__lt=before)
    )
    wanted = set(due.values_list("repository_id", flat=True))
    if not wanted:
        return 0
    due.update(polled_at=now)
    old = Q(fetched_at__isnull=True) | Q(fetched_at__lt=before)
    rows = Repository.objects.filter(old, pk__in=wanted, wanted_at__isnull=True)
    return rows.update(wanted_at=now)


@transaction.atomic
def look(schedule_id: int) -> int:
    """Write what one schedule wants to fire; how many firings are new."""
    found = Schedule.objects.select_for_update(of=("self",)).filter(pk=schedule_id, enabled=True)
    schedule = found.select_related("template", "platform", "repository").first()
    if schedule is None:
        return 0
    if schedule.kind == ScheduleKind.INTERVAL:
        return _look_at_clock(schedule)
    if schedule.kind == ScheduleKind.STACK:
        return _look_at_stacks(schedule)
    return _look_at_commits(schedule)


def last_time(schedule: Schedule, now: datetime) -> datetime:
    """The newest moment of its clock that is not after `now`."""
    first = _EPOCH + timedelta(minutes=schedule.at_minute)
    every = timedelta(hours=schedule.every_h or 24)
    return first + (now - first) // every * every


def next_time(schedule: Schedule, now: datetime) -> datetime:
    """The moment of its clock that comes after `now`."""
    return last_time(schedule, now) + timedelta(hours=schedule.every_h or 24)


def _look_at_clock(schedule: Schedule) -> int:
    """Only the newest moment: what was missed while nobody looked is not made up for."""
    moment = last_time(schedule, db_now())
    if moment < schedule.enabled_at:
        return 0
    _, made = new_firing(
        schedule,
        f"time {moment:%Y-%m-%dT%H:%M}",
        cause=Cause.TIME,
        cause_text=f"{moment:%Y-%m-%d %H:%M} UTC",
    )
    return int(made)


def _look_at_stacks(schedule: Schedule) -> int:
    seen = Stack.objects.filter(
        platform=schedule.platform, is_change=True, seen_at__gte=schedule.enabled_at
    )
    count = 0
    for stack in seen.order_by("id"):
        _, made = new_firing(
            schedule, f"stack {stack.pk}", cause=Cause.STACK, cause_text=stack.difference
        )
        count += made
    return count


@dataclass(frozen=True, slots=True, kw_only=True)
class _Push:
    """New commits of a branch, parents first; `parent` is what the oldest is compared with."""

    commits: tuple[Commit, ...]
    parent: Commit | None
    left_out: int


def _look_at_commits(schedule: Schedule) -> int:
    row = schedule.repository
    assert row is not None  # by a constraint
    fetched = row.fetched_at
    if fetched is None or schedule.looked_at == fetched:
        return 0
    version = templates.newest_version(schedule.template.name)
    head = row.heads.get(f"refs/heads/{schedule.branch}", "")
    schedule.problem = "" if head else _no_branch(row, schedule.branch)
    schedule.looked_at = fetched
    count = 0
    if head and version is not None:
        push = _new_commits(schedule, head, version)
        count = _fire_push(schedule, push, version)
        schedule.seen_sha = head
    schedule.save(update_fields=["looked_at", "seen_sha", "problem"])
    return count


def _no_branch(row: Repository, branch: str) -> str:
    return printable(
        f"{row.slug} has no branch {branch} that may be measured; push it there, or ask an "
        "admin to allow it",
        500,
    )


def _new_commits(schedule: Schedule, head: str, version: TemplateVersion) -> _Push:
    """From the head along first parents to what was seen: the states the branch itself had.

    The first look, and one after the branch was rewritten, goes no further than
    a commit that this schedule fired for already; a new schedule takes the head alone.
    """
    newest = Commit.objects.filter(repository=schedule.repository_id).order_by("-position")
    known = {commit.sha: commit for commit in newest[:WALK_LIMIT]}
    limit = schedule.newest if schedule.seen_sha else 1
    done = _fired(schedule, version)
    chain: list[Commit] = []
    sha = head
    while sha in known and (not chain or known[sha].pk not in done):
        chain.append(known[sha])
        if sha == schedule.seen_sha or known[sha].pk in done:
            break
        sha = known[sha].parents[0] if known[sha].parents else ""
    if len(chain) > 1 and chain[-1].sha == schedule.seen_sha:
        chain.pop()
    chosen = chain[:limit]
    if not chosen:
        return _Push(commits=(), parent=None, left_out=0)
    before = chosen[-1].parents[0] if chosen[-1].parents else ""
    return _Push(
        commits=tuple(reversed(chosen)),
        parent=_commit(schedule, before),
        left_out=len(chain) - len(chosen) if schedule.seen_sha else 0,
    )


def _commit(schedule: Schedule, sha: str) -> Commit | None:
    return Commit.objects.filter(repository=schedule.repository_id, sha=sha).first()


def _fired(schedule: Schedule, version: TemplateVersion) -> set[int]:
    rows = Firing.objects.filter(schedule=schedule, version=version, commit__isnull=False)
    return {commit for commit in rows.values_list("commit_id", flat=True) if commit is not None}


def _fire_push(schedule: Schedule, push: _Push, version: TemplateVersion) -> int:
    """Parents first, so that they are queued first."""
    count = 0
    if push.parent is not None:
        count += _fire_commit(schedule, push.parent, version, cause=Cause.PARENT)
    for commit in push.commits:
        left_out = push.left_out if commit is push.commits[0] else 0
        count += _fire_commit(schedule, commit, version, left_out=left_out)
    return count


def _fire_commit(
    schedule: Schedule,
    commit: Commit,
    version: TemplateVersion,
    *,
    cause: Cause = Cause.COMMIT,
    left_out: int = 0,
) -> int:
    _, made = new_firing(
        schedule,
        f"{commit.sha} {schedule.template.name} v{version.number} {schedule.platform.slug}",
        cause=cause,
        cause_text=commit.subject,
        version=version,
        commit=commit,
        left_out=left_out,
    )
    return int(made)
