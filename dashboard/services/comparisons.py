"""A person's verbs on comparisons: ask for one, measure more pairs, cancel."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import IntegrityError, transaction

from dashboard.models import (
    Commit,
    ComparedState,
    ComparedWorkload,
    Comparison,
    ComparisonState,
    FetchState,
    Platform,
    Repository,
    Run,
    RunState,
    TemplateVersion,
    User,
)
from dashboard.services import audit, pairs, repositories, runs
from dashboard.services.addresses import SHA, check_ref
from dashboard.services.clock import db_now
from dashboard.services.runs import workload_row
from profiler import spec as specs
from profiler.analysis.ladder import Settings, extended
from profiler.errors import SpecError, UserError, printable
from profiler.metrics import HEADLINE
from profiler.types import RunSpec

WORKLOADS_LIMIT = 24
PAIRS_LIMIT = 400
SEED_LIMIT = 2**31


class ComparisonError(UserError):
    """A comparison that cannot be made, or not any more."""

    kind = "comparison"


class UnreachedError(UserError):
    """A repository that could not be fetched, so that its branches are not known."""

    kind = "no_repository"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewComparison:
    """What somebody wants to know: is the candidate faster than the baseline?"""

    repository: Repository
    baseline: str
    candidate: str
    platform: Platform
    specs: tuple[RunSpec, ...]
    version: TemplateVersion | None = None
    settings: Settings = field(default_factory=Settings)
    seed: int | None = None
    key: str = ""


def create_comparison(wanted: NewComparison, user: User | None) -> Comparison:
    """Store a comparison and have its repository fetched; the same `key` again is the same one.

    Raises `RefError` for names that can be no commit, `SpecError` for workloads
    that cannot work and `ComparisonError` over the limits.
    """
    for name in (wanted.baseline, wanted.candidate):
        check_ref(name)
    chosen = specs_for(wanted.repository, wanted.specs)
    if not 1 <= len(chosen) <= WORKLOADS_LIMIT:
        raise ComparisonError(
            f"{len(chosen)} workloads in one comparison", f"allowed: 1 to {WORKLOADS_LIMIT}"
        )
    try:
        with transaction.atomic():
            made = _insert(wanted, chosen, user)
    except IntegrityError:  # the form was sent twice
        made = Comparison.objects.get(created_by=user, key=wanted.key)
    return made


def specs_for(repository: Repository, wanted: Sequence[RunSpec]) -> tuple[RunSpec, ...]:
    """The workloads of a comparison as this repository measures them, checked."""
    chosen = specs_at(repository, wanted)
    for spec in chosen:
        if spec.ranks > 1:
            raise SpecError(f"spec.ranks is {spec.ranks}", "pairs are measured on one device")
    return chosen


def specs_at(repository: Repository, wanted: Sequence[RunSpec]) -> tuple[RunSpec, ...]:
    """The workloads as commits of this repository are measured, checked.

    A repository with a factory brings its model: it takes the place of the
    workloads' own, and those that then are equal are one.
    """
    chosen = [_with_factory(repository, spec) for spec in wanted]
    for spec in chosen:
        specs.check_model(specs.check(spec))
    return tuple({specs.workload_hash(spec): spec for spec in chosen}.values())


def _with_factory(repository: Repository, spec: RunSpec) -> RunSpec:
    if not repository.factory or spec.factory == repository.factory:
        return spec
    return dataclasses.replace(
        spec,
        model=f"{repository.slug}-model"[:64],
        factory=repository.factory,
        config=None,
        checkpoint=None,
        layers=None,
    )


def _insert(wanted: NewComparison, chosen: Sequence[RunSpec], user: User | None) -> Comparison:
    now = db_now()
    made = Comparison.objects.create(
        repository=wanted.repository,
        baseline_ref=wanted.baseline,
        candidate_ref=wanted.candidate,
        platform=wanted.platform,
        version=wanted.version,
        seed=secrets.randbelow(SEED_LIMIT) if wanted.seed is None else wanted.seed,
        margin=wanted.settings.margin,
        rungs=list(wanted.settings.rungs),
        key=wanted.key,
        created_by=user,
        created_at=now,
    )
    for position, spec in enumerate(chosen):
        ComparedWorkload.objects.create(
            comparison=made,
            position=position,
            workload=workload_row(spec, now),
            spec=dataclasses.asdict(spec),
            metric=HEADLINE[spec.scenario],
            pairs_wanted=wanted.settings.rungs[0],
        )
    audit.note(user, "comparison.create", f"comparison {made.pk}")
    Repository.objects.filter(pk=wanted.repository.pk).update(wanted_at=now)
    return made


def resolve_waiting() -> int:
    """Give every waiting comparison its commits once its repository was fetched; how many.

    For the keeper, after its fetches.
    """
    count = 0
    waiting = Comparison.objects.filter(state=ComparisonState.RESOLVING)
    for comparison in waiting.select_related("repository"):
        count += _resolve(comparison)
    return count


def commits_of(
    row: Repository, refs: tuple[str, str], asked_at: datetime
) -> tuple[Commit, Commit] | None:
    """The commits that two refs mean, once a fetch after `asked_at` was tried; None before.

    Whole hashes need no fetch that works. Raises `UserError` when one is not to be had.
    """
    fetched = row.fetched_at is not None and row.fetched_at >= asked_at
    tried = row.state == FetchState.FAILED and row.wanted_at is None
    if not fetched and not tried:
        return None
    if not fetched and not all(SHA.fullmatch(ref) for ref in refs):
        raise UnreachedError(row.reason, row.hint)
    return repositories.resolve(row, refs[0]), repositories.resolve(row, refs[1])


def _resolve(comparison: Comparison) -> bool:
    refs = (comparison.baseline_ref, comparison.candidate_ref)
    try:
        found = commits_of(comparison.repository, refs, comparison.created_at)
    except UserError as error:
        _fail(comparison, error, error.kind)
        return True
    if found is None:
        return False
    baseline, candidate = found
    with transaction.atomic():
        won = Comparison.objects.filter(pk=comparison.pk, state=ComparisonState.RESOLVING).update(
            baseline=baseline, candidate=candidate, state=ComparisonState.MEASURING
        )
        if won:
            comparison.refresh_from_db()
            _queue_all(comparison)
    return bool(won)


def _fail(comparison: Comparison, error: UserError, kind: str) -> None:
    Comparison.objects.filter(pk=comparison.pk, state=ComparisonState.RESOLVING).update(
        state=ComparisonState.FAILED,
        failure_kind=kind[:20],
        message=printable(error.message, 1000),
        hint=printable(error.hint, 500),
        ended_at=db_now(),
    )


def _queue_all(comparison: Comparison) -> None:
    now = db_now()
    for compared in comparison.workloads.select_related("comparison", "workload"):
        if compared.state == ComparedState.WAITING:
            pairs.queue_session(compared, now)


def extend_comparison(comparison_id: int, more: int, user: User | None) -> Comparison:
    """Measure `more` pairs of every workload that has some, as one more rung of the ladder.

    Raises `ComparisonError` while it is being measured, when nothing was
    measured, or over the limit.
    """
    with transaction.atomic():
        comparison = Comparison.objects.select_for_update().get(pk=comparison_id)
        if comparison.state != ComparisonState.ENDED:
            raise ComparisonError(
                f"Comparison {comparison_id} is {comparison.get_state_display().lower()}",
                "more pairs can be measured once it has ended",
            )
        settings = extended(pairs.settings_of(comparison), more)
        if settings.rungs[-1] > PAIRS_LIMIT:
            raise ComparisonError(
                f"{settings.rungs[-1]} pairs are too many", f"allowed: up to {PAIRS_LIMIT}"
            )
        comparison.rungs = list(settings.rungs)
        comparison.state, comparison.ended_at = ComparisonState.MEASURING, None
        comparison.save(update_fields=["rungs", "state", "ended_at"])
        settled = comparison.workloads.filter(state=ComparedState.SETTLED)
        for compared in settled.select_related("comparison", "workload"):
            compared.pairs_wanted = settings.next_rung(compared.pairs.count()) or settings.rungs[-1]
            compared.save(update_fields=["pairs_wanted"])
            pairs.queue_session(compared, db_now())
        audit.note(user, "comparison.extend", f"comparison {comparison_id}", {"pairs": more})
    return comparison


def cancel_comparison(comparison_id: int, user: User) -> Comparison:
    """End what waits at once, ask the worker of what is being measured to stop.

    Raises `ComparisonError` when it has already ended.
    """
    with transaction.atomic():
        comparison = Comparison.objects.select_for_update().get(pk=comparison_id)
        if comparison.is_terminal:
            raise ComparisonError(
                f"Comparison {comparison_id} has already ended", "nothing is left to cancel"
            )
        audit.note(user, "comparison.cancel", f"comparison {comparison_id}")
        if comparison.state == ComparisonState.RESOLVING:
            comparison.state, comparison.ended_at = ComparisonState.CANCELLED, db_now()
            comparison.save(update_fields=["state", "ended_at"])
        for run in _active_sessions(comparison):
            runs.cancel_run(run.pk, user)
    comparison.refresh_from_db()
    return comparison


def _active_sessions(comparison: Comparison) -> list[Run]:
    active = Run.objects.filter(
        compared__comparison=comparison, state__in=[RunState.QUEUED, RunState.RUNNING]
    )
    return list(active.order_by("pk"))
