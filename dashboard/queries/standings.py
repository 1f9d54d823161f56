"""Reads of standings: what the overview and the pages of models start from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from dashboard.models import RunState, Standing
from dashboard.models.runs import ACTIVE
from profiler.analysis.history import speed
from profiler.metrics import METRICS
from profiler.types import Definition

UNSUCCESSFUL = (RunState.FAILED, RunState.TIMED_OUT, RunState.LOST, RunState.EXPIRED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Newest:
    """The run that was made last, whatever became of it."""

    run_id: int
    state: str
    at: datetime
    kind: str
    message: str

    @property
    def active(self) -> bool:
        return self.state in ACTIVE

    @property
    def unsuccessful(self) -> bool:
        return self.state in UNSUCCESSFUL


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """The last point of the history, and the first one and the best to hold it against.

    `spread` is half the interquartile range; `n` counts launches at the last
    commit, or the samples of its one launch.
    """

    metric: Definition
    value: float
    spread: float | None
    n: int
    run_id: int | None
    at: datetime | None
    sha: str
    day0_value: float
    day0_run_id: int | None
    day0_sha: str
    best_value: float
    best_run_id: int | None
    best_sha: str
    points: int
    same_environment: bool
    recent: tuple[float, ...]

    @property
    def ratio(self) -> float | None:
        """How many times as fast as on Day-0; None while there is one point only."""
        if self.points < 2:
            return None
        return speed(self.day0_value, self.value, self.metric.direction)

    @property
    def change(self) -> float | None:
        """Relative change of the value since Day-0, in the metric's own direction."""
        return self.value / self.day0_value - 1 if self.points > 1 and self.day0_value else None

    @property
    def at_best(self) -> bool:
        return self.value == self.best_value


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingFact:
    """One finding of the newest trace; `gain_ns` per step is None where it has no price."""

    title: str
    kind: str
    subject: str
    gain_ns: int | None
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingFacts:
    """One workload on one platform in short; `measure` is None before the first result."""

    id: int
    workload_id: int
    platform_id: int
    model_id: int
    model: str
    title: str
    scenario: str
    workload: str
    platform: str
    source: str
    sources: tuple[tuple[str, int], ...]
    measured: int
    newest: Newest | None
    measure: Measure | None
    trace_id: int | None
    trace_run_id: int | None
    roofline: float | None
    counted: float | None
    findings: tuple[FindingFact, ...]


_RELATED = (
    "workload__model",
    "platform",
    "newest_run",
    "measured_run__commit",
    "day0_run__commit",
    "best_run__commit",
    "trace",
)
_RUN = ("state", "created_at", "started_at", "ended_at", "failure_kind", "failure_message")
_COMMIT = ("ended_at", "commit__sha")
_NEEDED = (
    *(f"newest_run__{name}" for name in _RUN),
    *(f"{which}__{name}" for which in ("measured_run", "day0_run", "best_run") for name in _COMMIT),
    "workload__scenario",
    "workload__batch",
    "workload__prompt_tokens",
    "workload__output_tokens",
    "workload__dtype",
    "workload__variant",
    "workload__model__name",
    "workload__model__title",
    "platform__slug",
    "trace__run",
)
_OWN = (
    "metric",
    "source",
    "sources",
    "measured",
    "points",
    "value",
    "spread",
    "n",
    "day0_value",
    "best_value",
    "same_environment",
    "recent",
    "roofline",
    "counted",
    "findings",
)


def all_standings() -> list[StandingFacts]:
    """Every one, that whose run is the newest first."""
    return _facts(Standing.objects.all())


def standings_of(model: str, platform: str) -> list[StandingFacts]:
    """Those of a model on a platform, that whose run is the newest first."""
    found = Standing.objects.filter(workload__model__name=model, platform__slug=platform)
    return _facts(found)


def _facts(found: QuerySet[Standing]) -> list[StandingFacts]:
    rows = found.select_related(*_RELATED).only(*_OWN, *_NEEDED)
    return [_fact(row) for row in rows.order_by("-newest_run_id", "id")]


def _fact(row: Standing) -> StandingFacts:
    workload = row.workload
    return StandingFacts(
        id=row.pk,
        workload_id=workload.pk,
        platform_id=row.platform_id,
        model_id=workload.model_id,
        model=workload.model.name,
        title=workload.model.title,
        scenario=workload.scenario,
        workload=workload.label,
        platform=row.platform.slug,
        source=row.source,
        sources=tuple(sorted(row.sources.items(), key=lambda item: (-item[1], item[0]))),
        measured=row.measured,
        newest=_newest(row),
        measure=_measure(row),
        trace_id=row.trace_id,
        trace_run_id=row.trace.run_id if row.trace else None,
        roofline=row.roofline,
        counted=row.counted,
        findings=tuple(FindingFact(**one) for one in row.findings),
    )


def _newest(row: Standing) -> Newest | None:
    run = row.newest_run
    if run is None:
        return None
    return Newest(
        run_id=run.pk,
        state=run.state,
        at=run.ended_at or run.started_at or run.created_at,
        kind=run.get_failure_kind_display() if run.failure_kind else "",
        message=run.failure_message,
    )


def _measure(row: Standing) -> Measure | None:
    if row.value is None or row.day0_value is None or row.best_value is None:
        return None
    run, day0, best = row.measured_run, row.day0_run, row.best_run
    return Measure(
        metric=METRICS[row.metric],
        value=row.value,
        spread=row.spread,
        n=row.n or 1,
        run_id=run.pk if run else None,
        at=run.ended_at if run else None,
        sha=run.commit.sha if run and run.commit else "",
        day0_value=row.day0_value,
        day0_run_id=day0.pk if day0 else None,
        day0_sha=day0.commit.sha if day0 and day0.commit else "",
        best_value=row.best_value,
        best_run_id=best.pk if best else None,
        best_sha=best.commit.sha if best and best.commit else "",
        points=row.points,
        same_environment=row.same_environment,
        recent=tuple(row.recent),
    )
