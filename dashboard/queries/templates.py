"""Reads behind the pages of templates: the list, one version, and what queueing it would mean."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, F, Max

from dashboard.models import Run, RunGroup, RunState, TemplateVersion
from dashboard.queries.runs import took_ns
from profiler import spec as specs
from profiler.types import RunSpec

HISTORY_RUNS = 5_000
"""Estimates look back over so many runs of a platform at most, which bounds their cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateRow:
    """One line of the list: the newest version, and how often any was queued."""

    name: str
    title: str
    about: str
    number: int
    runs: int
    shipped: bool
    by: str
    at: datetime
    queued: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """One run a template expands to; `usual_ns` is the median of `past` runs that succeeded."""

    number: int
    spec: RunSpec
    usual_ns: float | None
    past: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What queueing a template on a platform would mean."""

    rows: tuple[PlannedRun, ...]

    @property
    def unknown(self) -> int:
        """Runs whose workload never succeeded there: their time is not guessed."""
        return sum(row.usual_ns is None for row in self.rows)

    @property
    def known(self) -> int:
        return len(self.rows) - self.unknown

    @property
    def known_ns(self) -> float | None:
        """Time of the runs with history, one after another; None where none has any."""
        known = [row.usual_ns for row in self.rows if row.usual_ns is not None]
        return sum(known) if known else None


def template_rows() -> tuple[TemplateRow, ...]:
    """Every template by its newest version, in the order of their names."""
    versions = (
        TemplateVersion.objects.annotate(newest=Max("template__versions__number"))
        .filter(number=F("newest"))
        .select_related("template", "created_by")
        .order_by("template__name")
    )
    groups = RunGroup.objects.filter(version__isnull=False).order_by()
    counts = groups.values_list("version__template_id").annotate(n=Count("id"))
    queued: dict[int, int] = dict(counts)
    return tuple(_row(version, queued.get(version.template_id, 0)) for version in versions)


def _row(version: TemplateVersion, queued: int) -> TemplateRow:
    return TemplateRow(
        name=version.template.name,
        title=version.title,
        about=version.about,
        number=version.number,
        runs=version.runs,
        shipped=version.shipped,
        by=version.created_by.username if version.created_by else "",
        at=version.created_at,
        queued=queued,
    )


def get_version(name: str, number: int | None) -> TemplateVersion | None:
    """A version of a template, the newest unless `number` says which."""
    found = TemplateVersion.objects.filter(template__name=name).select_related(
        "template", "created_by"
    )
    if number is not None:
        found = found.filter(number=number)
    return found.order_by("-number").first()


def versions_of(version: TemplateVersion) -> tuple[TemplateVersion, ...]:
    """Every version of the same template, the newest first."""
    rows = TemplateVersion.objects.filter(template_id=version.template_id)
    return tuple(rows.select_related("created_by").order_by("-number"))


def groups_of(version: TemplateVersion, limit: int = 10) -> tuple[RunGroup, ...]:
    """The last times any version of the same template was queued."""
    rows = RunGroup.objects.filter(version__template_id=version.template_id)
    return tuple(rows.select_related("version", "platform", "created_by")[:limit])


def plan(wanted: Sequence[RunSpec], platform: str = "") -> Plan:
    """`wanted` with the usual time of each on that platform; without one nothing is known."""
    hashes = [specs.workload_hash(spec) for spec in wanted]
    past = _durations(hashes, platform) if platform else {}
    rows = [
        PlannedRun(
            number=number,
            spec=spec,
            usual_ns=statistics.median(past[digest]) if digest in past else None,
            past=len(past.get(digest, ())),
        )
        for number, (spec, digest) in enumerate(zip(wanted, hashes, strict=True), start=1)
    ]
    return Plan(rows=tuple(rows))


def _durations(hashes: Iterable[str], platform: str) -> Mapping[str, list[float]]:
    runs = (
        Run.objects.filter(
            workload__hash__in=set(hashes),
            platform__slug=platform,
            state=RunState.SUCCEEDED,
            compared__isnull=True,
        )
        .select_related("workload")
        .only("workload__hash", "started_at", "ended_at")
        .order_by("-id")[:HISTORY_RUNS]
    )
    found: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        took = took_ns(run)
        if took is not None:
            found[run.workload.hash].append(took)
    return found
