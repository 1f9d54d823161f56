"""Verbs of retention: set the policy, pin, and remove what the policy keeps no longer.

A file is marked first (its row says when and why it went), then removed, so that
a crash between the two leaves a file nobody names: the next pass removes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import F, Q

from dashboard.models import Artifact, Pin, Pruning, RetentionPolicy, Run, Trace, User
from dashboard.services import artifacts, audit
from dashboard.services.clock import db_now
from dashboard.services.retention_due import (
    TRACE_FIELDS,
    Terms,
    due_files,
    names_raw,
    terms_of,
    unused_files,
)
from profiler.errors import UserError, printable

EVERY = timedelta(hours=24)
BATCH = 50
"""Files a keeper looks at in one go, so that it is never long in its database."""

REASON_LIMIT = 200


class PinError(UserError):
    """A pin that cannot be set or taken off."""

    kind = "pin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What one batch did; `looked_at` also counts files that were left after all."""

    looked_at: int
    files: int
    size_bytes: int
    position: int


def current_policy() -> RetentionPolicy | None:
    """The newest policy; None where nobody set one: then everything is kept."""
    return RetentionPolicy.objects.order_by("-pk").first()


def terms_in_force(policy: RetentionPolicy | None, now: datetime) -> Terms:
    """A policy as it reads now; without one everything is kept."""
    if policy is None:
        return terms_of(None, None, now)
    return terms_of(policy.raw_days, policy.columns_days, now)


@transaction.atomic
def set_policy(raw_days: int | None, columns_days: int | None, user: User) -> RetentionPolicy:
    """A new policy; None keeps for ever.

    Raises `UserError` for less than a day, and where columns would go before the
    raw files they are read from.
    """
    if any(days is not None and days < 1 for days in (raw_days, columns_days)):
        raise UserError("A file is kept for a day at least", "say 1 or more days")
    if columns_days is not None and (raw_days is None or columns_days < raw_days):
        raise UserError(
            "Columns cannot go before the raw traces they were read from",
            "keep columns as long as raw traces, or longer",
        )
    policy = RetentionPolicy.objects.create(
        raw_days=raw_days, columns_days=columns_days, created_by=user, created_at=db_now()
    )
    detail = {"raw_days": raw_days or "for ever", "columns_days": columns_days or "for ever"}
    audit.note(user, "retention.policy", f"policy {policy.pk}", detail)
    return policy


@transaction.atomic
def pin(subject: Run | Trace, reason: str, user: User) -> Pin:
    """Keep the files of a run with its traces, or of one trace, whatever the policy says.

    Raises `PinError` without a reason and where it is pinned already.
    """
    said = printable(reason.strip(), REASON_LIMIT)
    if not said:
        raise PinError("A pin needs a reason", "say what it is kept for")
    try:
        with transaction.atomic():
            made = Pin.objects.create(
                **_subject(subject), reason=said, created_by=user, created_at=db_now()
            )
    except IntegrityError:
        raise PinError(f"{_name(subject)} is pinned already", "take the pin off first") from None
    audit.note(user, "retention.pin", _name(subject).lower(), {"reason": said})
    return made


@transaction.atomic
def unpin(subject: Run | Trace, user: User) -> None:
    """Leave a run or trace to the policy again; raises `PinError` when it is not pinned."""
    found = Pin.objects.select_for_update().filter(**_subject(subject)).first()
    if found is None:
        raise PinError(f"{_name(subject)} is not pinned", "nothing is to be taken off")
    audit.note(user, "retention.unpin", _name(subject).lower(), {"before": found.reason})
    found.delete()


def _subject(subject: Run | Trace) -> dict[str, Run | Trace]:
    return {"run" if isinstance(subject, Run) else "trace": subject}


def _name(subject: Run | Trace) -> str:
    return f"{'Run' if isinstance(subject, Run) else 'Trace'} {subject.pk}"


def tick(now: datetime | None = None) -> Pruned | None:
    """A keeper's part: one batch of the pass that is under way or due; None when none is."""
    now = now or db_now()
    under_way = Pruning.objects.filter(open=True).first() or _begin(now)
    return None if under_way is None else _go_on(under_way, now, BATCH)


def prune(user: User | None = None) -> Pruning:
    """A whole pass at once; one that is under way is brought to its end."""
    now = db_now()
    under_way = Pruning.objects.filter(open=True).first() or _begin(now, due=True)
    while under_way is not None and under_way.open:
        _go_on(under_way, now, BATCH)
        under_way.refresh_from_db()
    ended = under_way or Pruning.objects.latest("pk")  # a keeper began and ended one meanwhile
    audit.note(user, "retention.prune", f"pruning {ended.pk}", {"files": ended.files})
    return ended


def _begin(now: datetime, *, due: bool = False) -> Pruning | None:
    """A new pass when the last one is a day old; None also when another keeper was faster."""
    recent = Pruning.objects.filter(started_at__gt=now - EVERY)
    if not due and recent.exists():
        return None
    try:
        with transaction.atomic():
            return Pruning.objects.create(policy=current_policy(), started_at=now)
    except IntegrityError:
        return Pruning.objects.filter(open=True).first() if due else None


def _go_on(under_way: Pruning, now: datetime, limit: int) -> Pruned:
    """The next batch of a pass; fewer files than asked for end it."""
    done = remove_batch(under_way.position, now, limit)
    ended = done.looked_at < limit
    Pruning.objects.filter(pk=under_way.pk, open=True).update(
        policy=current_policy(),
        position=done.position,
        files=F("files") + done.files,
        size_bytes=F("size_bytes") + done.size_bytes,
        open=not ended,
        ended_at=now if ended else None,
    )
    return done


def remove_batch(position: int, now: datetime, limit: int) -> Pruned:
    """Remove up to `limit` files behind a position."""
    terms = terms_in_force(current_policy(), now)
    due = list(due_files(terms).filter(pk__gt=position)[:limit])
    unused = list(unused_files(now).filter(pk__gt=position)[:limit])
    batch = sorted({row.pk: row for row in (*due, *unused)}.values(), key=lambda row: row.pk)
    batch = batch[:limit]
    gone = [row for row in batch if _remove(row, now) and row.removed_at is None]
    return Pruned(
        looked_at=len(batch),
        files=len(gone),
        size_bytes=sum(row.size_bytes for row in gone),
        position=batch[-1].pk if batch else position,
    )


def _remove(row: Artifact, now: datetime) -> bool:
    """Mark or delete the row if it may still go, then remove its file; whether the row did."""
    if not _give_up(row, now):
        return False
    artifacts.drop_file(row.sha256)
    return True


@transaction.atomic
def _give_up(row: Artifact, now: datetime) -> bool:
    """Look again under the locks of the file and of the traces that name it, then decide."""
    held = Artifact.objects.select_for_update().filter(pk=row.pk).first()
    if held is None or not artifacts.store().is_old(held.sha256, artifacts.GRACE):
        return False
    naming = Q()
    for field in TRACE_FIELDS:
        naming |= Q(**{field: held})
    list(Trace.objects.select_for_update().filter(naming).values_list("pk"))
    if unused_files(now).filter(pk=held.pk).exists():
        held.delete()
        return True
    policy = current_policy()
    if policy is None or not due_files(terms_in_force(policy, now)).filter(pk=held.pk).exists():
        return False
    held.removed_at, held.removal = now, _said(held, policy)
    held.save(update_fields=["removed_at", "removal"])
    return True


def _said(row: Artifact, policy: RetentionPolicy) -> str:
    """What the policy says of a file, as its pages will tell: `raw traces are kept for 30 days`."""
    if Artifact.objects.filter(names_raw(), pk=row.pk).exists():
        return f"raw traces are kept for {_days(policy.raw_days)}"
    return f"columns are kept for {_days(policy.columns_days)}"


def _days(number: int | None) -> str:
    return f"{number} day{'' if number == 1 else 's'}"
