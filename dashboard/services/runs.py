"""A person's verbs on runs: create, cancel, run again."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
from django.conf import settings
from django.db import IntegrityError, transaction

from dashboard.models import (
    Commit,
    FailureKind,
    GroupKind,
    IdempotencyKey,
    Platform,
    Run,
    RunGroup,
    RunState,
    TemplateVersion,
    User,
    Workload,
)
from dashboard.services import audit, catalog, events, history
from dashboard.services.clock import db_now
from dashboard.services.spec_fields import variant_of
from dashboard.services.sweep import end_run
from profiler import spec as specs
from profiler.errors import UserError
from profiler.types import RunSpec

REQUEST_LIMIT = 200
QUEUE_LIMIT = 500


class QuotaError(UserError):
    """More runs than one request or one person may have waiting."""

    kind = "quota"


class KeyReusedError(UserError):
    """The same idempotency key came with another request."""

    kind = "key_reused"


class RunStateError(UserError):
    """The run is not in a state that allows this."""

    kind = "run_state"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewGroup:
    """What makes the runs of one request belong together."""

    kind: GroupKind
    version: TemplateVersion | None = None
    seed: int | None = None

    def signature(self) -> bytes:
        """Its part of the fingerprint of a request."""
        return f"{self.kind} {self.version.pk if self.version else None} {self.seed}".encode()


def create_runs(
    wanted: Sequence[RunSpec],
    *,
    platform: Platform,
    user: User | None,
    key: str | None = None,
    limit_s: float | None = None,
    group: NewGroup | None = None,
    commit: Commit | None = None,
) -> list[Run]:
    """Queue one run per spec, all or none; the same `key` again gives the first answer.

    With `group` the runs share a row that says so; with `commit` it is
    checked out for them.

    Raises `SpecError` for a spec that cannot work, `QuotaError` over the
    limits, `KeyReusedError` when `key` came with other specs before.
    """
    for spec in wanted:
        specs.check(spec)
    body = _body_hash(wanted, platform, group, commit)
    try:
        with transaction.atomic():
            known = _known_answer(user, key, body)
            if known is not None:
                return known
            _check_quota(wanted, user)
            row = _group(group, platform, user) if group else None
            shared = _Shared(platform, user, limit_s or settings.RUN_LIMIT_S, row, commit)
            runs = [_insert(spec, shared) for spec in wanted]
            _remember(user, key, body, runs)
            return runs
    except IntegrityError:
        # Two requests with one key raced; the loser returns the winner's answer.
        known = _known_answer(user, key, body)
        if known is None:
            raise
        return known


def cancel_run(run_id: int, user: User) -> Run:
    """End a queued run at once, ask the worker of a running one to stop.

    Raises `RunStateError` when the run has already ended.
    """
    with transaction.atomic():
        run = Run.objects.select_for_update().get(pk=run_id)
        if run.is_terminal:
            raise RunStateError(f"Run {run_id} has already ended", "nothing is left to cancel")
        now = db_now()
        Run.objects.filter(pk=run_id, cancel_requested_at__isnull=True).update(
            cancel_requested_at=now
        )
        if run.state == RunState.QUEUED:
            end_run(run, RunState.CANCELLED, FailureKind.CANCELLED, f"Cancelled by {user}")
        else:
            events.record(run, "cancel_requested", now, f"by {user}")
        audit.note(user, "run.cancel", f"run {run_id}")
    run.refresh_from_db()
    return run


def rerun(run_id: int, user: User, *, key: str | None = None) -> Run:
    """Queue the same spec at the same commit as a new run that remembers which one it repeats."""
    old = Run.objects.select_related("platform", "commit").get(pk=run_id)
    spec = msgspec.convert(old.spec, RunSpec)
    with transaction.atomic():
        (run,) = create_runs(
            [spec],
            platform=old.platform,
            user=user,
            key=key,
            limit_s=old.limit_s,
            commit=old.commit,
        )
        Run.objects.filter(pk=run.pk, rerun_of__isnull=True).update(rerun_of=old)
    run.refresh_from_db()
    return run


def _group(new: NewGroup, platform: Platform, user: User | None) -> RunGroup:
    return RunGroup.objects.create(
        kind=new.kind,
        platform=platform,
        version=new.version,
        seed=new.seed,
        created_by=user,
        created_at=db_now(),
    )


@dataclass(frozen=True, slots=True)
class _Shared:
    """What the runs of one request have in common."""

    platform: Platform
    user: User | None
    limit_s: float
    group: RunGroup | None
    commit: Commit | None


def _insert(spec: RunSpec, shared: _Shared) -> Run:
    now = db_now()
    run = Run.objects.create(
        workload=workload_row(spec, now),
        platform=shared.platform,
        spec=dataclasses.asdict(spec),
        spec_hash=specs.spec_hash(spec),
        limit_s=shared.limit_s,
        not_before=now,
        expires_at=now + timedelta(seconds=settings.QUEUE_TTL_S),
        created_by=shared.user,
        created_at=now,
        group=shared.group,
        commit=shared.commit,
    )
    user = shared.user
    events.record(run, "queued", now, f"by {user}" if user else "by the system")
    events.ring_for_run(run, now)
    history.note_queued(run)
    audit.note(user, "run.create", f"run {run.pk}", {"workload": run.workload.hash})
    return run


def workload_row(spec: RunSpec, now: datetime) -> Workload:
    """The row of what `spec` measures, made when it is the first of it."""
    row, _ = Workload.objects.get_or_create(
        hash=specs.workload_hash(spec),
        defaults={
            "model": catalog.model_row(spec),
            "scenario": spec.scenario,
            "batch": spec.batch,
            "prompt_tokens": spec.prompt_tokens,
            "output_tokens": spec.output_tokens if spec.scenario == "decode" else None,
            "dtype": spec.dtype,
            "variant": variant_of(spec),
            "created_at": now,
        },
    )
    return row


def _body_hash(
    wanted: Sequence[RunSpec], platform: Platform, group: NewGroup | None, commit: Commit | None
) -> str:
    parts = [platform.slug.encode(), *(specs.canonical(spec) for spec in wanted)]
    parts += [group.signature()] if group else []
    parts += [commit.sha.encode()] if commit else []
    return hashlib.sha256(b"\n".join(parts)).hexdigest()


def _known_answer(user: User | None, key: str | None, body: str) -> list[Run] | None:
    row = IdempotencyKey.objects.filter(user=user, key=key).first() if user and key else None
    if row is None:
        return None
    if row.body_hash != body:
        raise KeyReusedError(
            "This form was already sent with other values", "open New run again and send it anew"
        )
    return list(Run.objects.filter(pk__in=row.run_ids).order_by("id"))


def _remember(user: User | None, key: str | None, body: str, runs: Sequence[Run]) -> None:
    if user and key:
        IdempotencyKey.objects.create(
            user=user,
            key=key,
            body_hash=body,
            run_ids=[run.pk for run in runs],
            created_at=db_now(),
        )


def _check_quota(wanted: Sequence[RunSpec], user: User | None) -> None:
    if len(wanted) > REQUEST_LIMIT:
        raise QuotaError(
            f"{len(wanted)} runs in one request", f"send at most {REQUEST_LIMIT} at a time"
        )
    waiting = Run.objects.filter(created_by=user, state=RunState.QUEUED).count()
    if user and waiting + len(wanted) > QUEUE_LIMIT:
        raise QuotaError(
            f"{waiting} of your runs wait already",
            f"at most {QUEUE_LIMIT} may wait; cancel some or try later",
        )
