"""Reads behind the page of retention: what would go, what is pinned, what fills the disk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from django.db.models import (
    Count,
    F,
    Model,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
)
from django.db.models.functions import Coalesce

from dashboard.models import (
    Artifact,
    ComparedWorkload,
    Launch,
    Pin,
    Pruning,
    RetentionPolicy,
    RunArtifact,
    Trace,
)
from dashboard.services.clock import db_now
from dashboard.services.retention import current_policy, terms_in_force
from dashboard.services.retention_due import (
    COLUMNS,
    RAW,
    TRACE_FIELDS,
    due_files,
    names_raw,
    unused_files,
)

PLAN_ROWS = 100
EXPORT_ROWS = 10_000
PASSES = 10
PINS = 200

UNUSED = "unused"
TITLES = {RAW: "Raw traces", COLUMNS: "Columns", UNUSED: "Files that nothing names any more"}

SUMMARIES, RESULTS = "summaries", "results"
DISK_KINDS = (RAW, COLUMNS, SUMMARIES, RESULTS)
"""What the store is filled with; the last two kinds are kept for ever."""

SUMMARY_FIELDS = ("report", "flame", "graph", "profile")
UPLOADED = "uploaded without a run"


@dataclass(frozen=True, slots=True, kw_only=True)
class DueFile:
    """One file that the policy keeps no longer."""

    kind: str
    title: str
    size_bytes: int
    trace_id: int | None
    run_id: int | None
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What of one kind would go."""

    kind: str
    title: str
    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a pass would remove now; `rows` are the first files."""

    policy: RetentionPolicy | None
    kinds: tuple[Due, ...]
    rows: tuple[DueFile, ...]

    @property
    def named(self) -> int:
        """Files that traces or runs name: those the rows are of."""
        return sum(kind.files for kind in self.kinds if kind.kind != UNUSED)

    @property
    def files(self) -> int:
        return sum(kind.files for kind in self.kinds)

    @property
    def size_bytes(self) -> int:
        return sum(kind.size_bytes for kind in self.kinds)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDisk:
    """Stored bytes of one model by kind; a file that several name counts at each of them."""

    model: str
    raw: int
    columns: int
    summaries: int
    results: int

    @property
    def total(self) -> int:
        return self.raw + self.columns + self.summaries + self.results


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskUse:
    """Who fills the store. `size_bytes` counts every file once, so rows can add up to more."""

    rows: tuple[ModelDisk, ...]
    files: int
    size_bytes: int

    @property
    def largest(self) -> int:
        return max((row.total for row in self.rows), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionView:
    """The whole page."""

    plan: Plan
    pins: tuple[Pin, ...]
    pins_total: int
    passes: tuple[Pruning, ...]


def retention_view() -> RetentionView:
    """Policy, dry run, pins and the last passes."""
    pins = Pin.objects.select_related(
        "created_by", "run__workload__model", "trace__run__workload__model"
    )
    shown = tuple(pins[:PINS])
    return RetentionView(
        plan=plan(),
        pins=shown,
        pins_total=Pin.objects.count() if len(shown) == PINS else len(shown),
        passes=tuple(Pruning.objects.select_related("policy")[:PASSES]),
    )


def plan(rows: int = PLAN_ROWS) -> Plan:
    """What a pass would remove now, and its first `rows` files that traces name."""
    policy, now = current_policy(), db_now()
    due = due_files(terms_in_force(policy, now))
    kinds = (*_due_kinds(due), _unused(now))
    return Plan(
        policy=policy,
        kinds=tuple(kind for kind in kinds if kind.files),
        rows=_due_files(list(due[:rows])),
    )


def _due_kinds(due: QuerySet[Artifact]) -> Iterator[Due]:
    """Raw files and columns, added up in one query."""
    raw = names_raw()
    sums = due.order_by().aggregate(
        raw_files=Count("pk", filter=raw),
        raw_bytes=Sum("size_bytes", filter=raw),
        columns_files=Count("pk", filter=~raw),
        columns_bytes=Sum("size_bytes", filter=~raw),
    )
    for kind in (RAW, COLUMNS):
        yield _due(kind, sums[f"{kind}_files"], sums[f"{kind}_bytes"])


def _unused(now: datetime) -> Due:
    files = unused_files(now).filter(removed_at__isnull=True)
    sums = files.order_by().aggregate(files=Count("pk"), bytes=Sum("size_bytes"))
    return _due(UNUSED, sums["files"], sums["bytes"])


def _due(kind: str, files: int | None, size_bytes: int | None) -> Due:
    return Due(kind=kind, title=TITLES[kind], files=files or 0, size_bytes=size_bytes or 0)


def _due_files(files: Sequence[Artifact]) -> tuple[DueFile, ...]:
    """Every file with the trace, or else the run, that names it."""
    sizes = {file.pk: file.size_bytes for file in files}
    places: dict[int, DueFile] = {}
    for row in RunArtifact.objects.filter(artifact__in=sizes).select_related("run"):
        places[row.artifact_id] = DueFile(
            kind=RAW,
            title=row.name,
            size_bytes=sizes[row.artifact_id],
            trace_id=None,
            run_id=row.run_id,
            recorded_at=row.run.created_at,
        )
    named = Q()
    for field in TRACE_FIELDS:
        named |= Q(**{f"{field}__in": sizes})
    for trace in Trace.objects.filter(named).order_by("-pk"):
        for field, kind in TRACE_FIELDS.items():
            number = getattr(trace, f"{field}_id")
            if number in sizes:
                places[number] = _of_trace(trace, kind, sizes[number])
    return tuple(places[file.pk] for file in files)


def _of_trace(trace: Trace, kind: str, size_bytes: int) -> DueFile:
    return DueFile(
        kind=kind,
        title=trace.name,
        size_bytes=size_bytes,
        trace_id=trace.pk,
        run_id=trace.run_id,
        recorded_at=trace.created_at,
    )


def disk_use() -> DiskUse:
    """Stored bytes by model and kind, the fullest model first."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(DISK_KINDS, 0))
    for kind, model, size_bytes in _disk_rows():
        found[model or UPLOADED][kind] += size_bytes
    rows = (ModelDisk(model=model, **sums) for model, sums in found.items())
    whole = Artifact.objects.filter(removed_at__isnull=True).aggregate(
        n=Count("pk"), size=Sum("size_bytes")
    )
    return DiskUse(
        rows=tuple(sorted(rows, key=lambda row: (-row.total, row.model))),
        files=whole["n"],
        size_bytes=whole["size"] or 0,
    )


def _disk_rows() -> Iterator[tuple[str, str | None, int]]:
    """(kind, model, bytes) of everything that names stored files."""
    side = Q(baseline_trace=OuterRef("pk")) | Q(candidate_trace=OuterRef("pk"))
    compared = ComparedWorkload.objects.filter(side).order_by().values("workload__model__name")
    traces = Trace.objects.annotate(
        of=Coalesce(F("run__workload__model__name"), Subquery(compared[:1]))
    )
    yield from _traces_disk(traces)
    logs = RunArtifact.objects.filter(
        artifact__removed_at__isnull=True, artifact__raw_traces__isnull=True
    )
    yield from _sums(logs, "run__workload__model__name", "artifact__size_bytes")
    launches = Launch.objects.filter(result__removed_at__isnull=True)
    yield from _sums(launches, "pair__compared__workload__model__name", "result__size_bytes")
    differences = ComparedWorkload.objects.filter(difference__removed_at__isnull=True)
    yield from _sums(differences, "workload__model__name", "difference__size_bytes")


def _traces_disk(traces: QuerySet[Trace]) -> Iterator[tuple[str, str | None, int]]:
    """One pass over the traces adds up all their files."""
    there = {
        field: Sum(f"{field}__size_bytes", filter=Q(**{f"{field}__removed_at__isnull": True}))
        for field in (*TRACE_FIELDS, *SUMMARY_FIELDS)
    }
    totals = {f"{field}_bytes": total for field, total in there.items()}
    # The model is one annotation of several: the plugin of the type checker knows only columns.
    for row in cast("QuerySet[Any, Any]", traces).order_by().values("of").annotate(**totals):
        for field in there:
            kind = TRACE_FIELDS.get(field, SUMMARIES)
            yield kind, row["of"], row[f"{field}_bytes"] or 0


def _sums(
    rows: QuerySet[Model], model: str, size_bytes: str
) -> Iterator[tuple[str, str | None, int]]:
    for row in rows.order_by().values(model).annotate(total=Sum(size_bytes)):
        yield RESULTS, row[model], row["total"] or 0
