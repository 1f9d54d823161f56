"""Which stored files a policy keeps no longer, as conditions the database can answer.

A file goes when every row that names it lets it go: rows of traces do once the
trace is old enough and nothing holds it. Whatever else names a file keeps it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from django.db.models import Exists, Field, ForeignObjectRel, Model, OuterRef, Q, QuerySet

from dashboard.models import Artifact, Run, RunArtifact, RunState, Trace, TraceState
from dashboard.models.runs import TERMINAL
from dashboard.services.artifacts import GRACE

RAW, COLUMNS = "raw", "columns"

TRACE_FIELDS = {
    "raw": RAW,
    "redacted": RAW,
    "columns": COLUMNS,
    "replay": COLUMNS,
    "collectives": COLUMNS,
}
"""Files of a trace that grow with its events, and what a policy calls them."""

_RUN_FILES = Q(name="trace.json.gz") | Q(name__startswith="trace-rank", name__endswith=".json.gz")
_ENDED = (TraceState.READY, TraceState.REJECTED)

_PARTS = {
    "Operator.trace",
    "Trace.run",
    "Run.rerun_of",
    "Attempt.run",
    "RunEvent.run",
    "Result.run",
    "RunArtifact.run",
    "Note.run",
    "Stack.run",
    "Standing.newest_run",
    "Standing.measured_run",
    "Standing.best_run",
    "Standing.trace",
}
"""References that hold nothing: parts of the trace or run itself, notes, and what only tells
which run is the newest. Any other does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Until when traces must have been recorded for their files to go; None: they stay."""

    raw_before: datetime | None
    columns_before: datetime | None

    def before(self, kind: str) -> datetime | None:
        """The limit of a kind of file."""
        return self.raw_before if kind == RAW else self.columns_before


def terms_of(raw_days: int | None, columns_days: int | None, now: datetime) -> Terms:
    """A policy, as it reads at a moment."""
    return Terms(
        raw_before=None if raw_days is None else now - timedelta(days=raw_days),
        columns_before=None if columns_days is None else now - timedelta(days=columns_days),
    )


@cache
def references(model: type[Model]) -> tuple[tuple[type[Model], str], ...]:
    """Every field of any row that names a row of `model`, hidden ones too: (model, field)."""
    found = []
    for related in model._meta.get_fields(include_hidden=True):
        if isinstance(related, ForeignObjectRel) and not related.many_to_many:
            field: Field[object, object] = related.field
            found.append((related.related_model, field.name))
    return tuple(sorted(found, key=lambda pair: (pair[0].__name__, pair[1])))


def holders(model: type[Trace] | type[Run]) -> tuple[tuple[type[Model], str], ...]:
    """The references that hold a trace or a run: pins, comparisons, tuning and the like."""
    return tuple(
        (other, field)
        for other, field in references(model)
        if f"{other.__name__}.{field}" not in _PARTS
    )


def held_trace() -> Q:
    """For traces: something refers to it or to its run, or its run is the Day-0 run."""
    return _held(Trace, "pk") | _held(Run, "run_id") | _day0()


def _held(subject: type[Trace] | type[Run], key: str) -> Q:
    """Whether any row that holds a `subject` names the one under `key`.

    The few rows that hold something are looked up once, not for every file.
    """
    held = Q(pk__in=[])
    for model, field in holders(subject):
        named = _rows(model).filter(**{f"{field}__isnull": False})
        held |= Q(**{f"{key}__in": named.values(f"{field}_id")})
    return held


def _rows(model: type[Model]) -> QuerySet[Model]:
    return model._default_manager.order_by()


def _day0() -> Q:
    """The first run of its workload and platform that succeeded: every gain is told against it."""
    measured = Run.objects.order_by().filter(state=RunState.SUCCEEDED, compared__isnull=True)
    earlier = measured.filter(
        workload=OuterRef("run__workload"),
        platform=OuterRef("run__platform"),
        pk__lt=OuterRef("run_id"),
    )
    succeeded = Q(run__state=RunState.SUCCEEDED, run__compared__isnull=True)
    return succeeded & ~Q(Exists(earlier))


def _due_trace(before: datetime | None) -> Q:
    """For traces: old enough, read, and held by nothing."""
    if before is None:
        return Q(pk__in=[])
    return Q(state__in=_ENDED, created_at__lt=before) & ~held_trace()


def _due_run_file(before: datetime | None) -> Q:
    """For files of runs: a trace's raw file whose run has ended and whose traces may all go."""
    if before is None:
        return Q(pk__in=[])
    staying = Trace.objects.filter(run=OuterRef("run_id")).filter(~_due_trace(before))
    old = Q(run__state__in=TERMINAL, run__ended_at__lt=before)
    return _RUN_FILES & old & ~_held(Run, "run_id") & ~Q(Exists(staying))


def due_files(terms: Terms) -> QuerySet[Artifact]:
    """Files that the policy keeps no longer, by number."""
    wanted, kept = Q(), Q()
    for model, field in references(Artifact):
        named = _rows(model).filter(**{field: OuterRef("pk")})
        due = _due(model, field, terms)
        if due is None:
            kept |= Q(Exists(named))
        else:
            wanted |= Q(Exists(named.filter(due)))
            kept |= Q(Exists(named.filter(~due)))
    there = Artifact.objects.filter(removed_at__isnull=True)
    return there.filter(wanted).filter(~kept).order_by("pk")


def _due(model: type[Model], field: str, terms: Terms) -> Q | None:
    """When a reference lets its file go; None for those that never do."""
    if model is RunArtifact:
        return _due_run_file(terms.raw_before)
    if model is Trace and field in TRACE_FIELDS:
        return _due_trace(terms.before(TRACE_FIELDS[field]))
    return None


def unused_files(now: datetime) -> QuerySet[Artifact]:
    """Rows of files that no other row names any more, such as readings of before, by number."""
    used = Q()
    for model, field in references(Artifact):
        used |= Q(Exists(_rows(model).filter(**{field: OuterRef("pk")})))
    return Artifact.objects.filter(created_at__lt=now - GRACE).filter(~used).order_by("pk")


def names_raw() -> Q:
    """For files: a trace or a run names them as a raw file."""
    named = Q(Exists(RunArtifact.objects.filter(artifact=OuterRef("pk"))))
    for field, kind in TRACE_FIELDS.items():
        if kind == RAW:
            named |= Q(Exists(Trace.objects.filter(**{field: OuterRef("pk")})))
    return named
