"""A person's verbs on bisects: ask for one, cancel it. What a keeper does is in `bisect_steps`."""

from __future__ import annotations

import dataclasses
import secrets
from dataclasses import dataclass, field

from django.db import IntegrityError, transaction

from dashboard.models import Bisect, BisectState, Platform, Repository, User
from dashboard.services import audit, comparisons
from dashboard.services.addresses import check_ref
from dashboard.services.clock import db_now
from dashboard.services.runs import workload_row
from profiler.analysis.ladder import Settings
from profiler.errors import UserError
from profiler.metrics import HEADLINE
from profiler.types import RunSpec


class BisectError(UserError):
    """A bisect that cannot be made, or not any more."""

    kind = "bisect"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBisect:
    """What somebody wants to know: which commit between `good` and `bad` changed the speed?"""

    repository: Repository
    good: str
    bad: str
    platform: Platform
    spec: RunSpec
    settings: Settings = field(default_factory=Settings)
    seed: int | None = None
    key: str = ""


def create_bisect(wanted: NewBisect, user: User | None) -> Bisect:
    """Store a bisect and have its repository fetched; the same `key` again is the same one.

    Raises `RefError` for names that can be no commit and `SpecError` for a
    workload that cannot work.
    """
    for name in (wanted.good, wanted.bad):
        check_ref(name)
    (spec,) = comparisons.specs_for(wanted.repository, (wanted.spec,))
    try:
        with transaction.atomic():
            return _insert(wanted, spec, user)
    except IntegrityError:  # the form was sent twice
        return Bisect.objects.get(created_by=user, key=wanted.key)


def _insert(wanted: NewBisect, spec: RunSpec, user: User | None) -> Bisect:
    now = db_now()
    made = Bisect.objects.create(
        repository=wanted.repository,
        good_ref=wanted.good,
        bad_ref=wanted.bad,
        platform=wanted.platform,
        workload=workload_row(spec, now),
        spec=dataclasses.asdict(spec),
        metric=HEADLINE[spec.scenario],
        margin=wanted.settings.margin,
        rungs=list(wanted.settings.rungs),
        seed=secrets.randbelow(comparisons.SEED_LIMIT) if wanted.seed is None else wanted.seed,
        key=wanted.key,
        created_by=user,
        created_at=now,
    )
    audit.note(user, "bisect.create", f"bisect {made.pk}")
    Repository.objects.filter(pk=wanted.repository.pk).update(wanted_at=now)
    return made


def cancel_bisect(bisect_id: int, user: User) -> Bisect:
    """End a bisect and the comparison it is at; what was measured stays.

    Raises `BisectError` when it has already ended.
    """
    with transaction.atomic():
        bisect = Bisect.objects.select_for_update().get(pk=bisect_id)
        if bisect.is_terminal:
            raise BisectError(f"Bisect {bisect_id} has already ended", "nothing is left to cancel")
        bisect.state, bisect.ended_at = BisectState.CANCELLED, db_now()
        bisect.save(update_fields=["state", "ended_at"])
        audit.note(user, "bisect.cancel", f"bisect {bisect_id}")
        for step in bisect.steps.filter(answer="").select_related("comparison"):
            if not step.comparison.is_terminal:
                comparisons.cancel_comparison(step.comparison_id, user)
    return bisect
