"""Reads of standings: what the overview and the pages of models start from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from dashboard.models import FailureKind, RunState, Standing
from dashboard.models.catalog import workload_label
from dashboard.models.runs import ACTIVE
from profiler.analysis.history import speed
from profiler.metrics import METRICS
from profiler.types import Definition

_LABELS: Mapping[str, str] = {str(value): str(label) for value, label in FailureKind.choices}

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
    day0_value: float
    day0_run_id: int | None
    best_value: float
    best_run_id: int | None
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
    measured: int
    newest: Newest | None
    measure: Measure | None
    trace_id: int | None
    trace_run_id: int | None
    roofline: float | None
    counted: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingDetail(StandingFacts):
    """What pages of one model say further: commits of the measure, its sources, findings left.

    A commit is empty for a run without one.
    """

    sources: tuple[tuple[str, int], ...]
    findings: tuple[FindingFact, ...]
    sha: str
    day0_sha: str
    best_sha: str


_RUNS = ("measured_run", "day0_run", "best_run")
_COLUMNS = (
    "id",
    "workload_id",
    "platform_id",
    "metric",
    "source",
    "measured",
    "points",
    "value",
    "spread",
    "n",
    "day0_value",
    "best_value",
    "same_environment",
    "recent",
    "trace_id",
    "trace__run_id",
    "roofline",
    "counted",
    "measured_run__ended_at",
    *(f"{run}_id" for run in _RUNS),
    "newest_run_id",
    "newest_run__state",
    "newest_run__created_at",
    "newest_run__started_at",
    "newest_run__ended_at",
    "newest_run__failure_kind",
    "newest_run__failure_message",
    "workload__scenario",
    "workload__batch",
    "workload__prompt_tokens",
    "workload__output_tokens",
    "workload__dtype",
    "workload__variant",
    "workload__model_id",
    "workload__model__name",
    "workload__model__title",
    "platform__slug",
)
"""Values and not rows: the overview reads some hundred of them, each over six tables."""

_DETAILS = ("sources", "findings", *(f"{run}__commit__sha" for run in _RUNS))

_Row = Mapping[str, Any]


def all_standings() -> list[StandingFacts]:
    """Every one, that whose run is the newest first."""
    return [StandingFacts(**_fact(row)) for row in _rows(Standing.objects.all(), _COLUMNS)]


def standings_of(model: str, platform: str) -> list[StandingDetail]:
    """Those of a model on a platform, that whose run is the newest first."""
    found = Standing.objects.filter(workload__model__name=model, platform__slug=platform)
    rows = _rows(found, (*_COLUMNS, *_DETAILS))
    return [StandingDetail(**_fact(row), **_detail(row)) for row in rows]


def _rows(found: QuerySet[Standing], columns: Sequence[str]) -> Iterator[_Row]:
    rows = found.order_by("-newest_run_id", "id").values_list(*columns)
    return (dict(zip(columns, row, strict=True)) for row in rows)


def _detail(row: _Row) -> dict[str, Any]:
    return {
        "sources": tuple(sorted(row["sources"].items(), key=lambda item: (-item[1], item[0]))),
        "findings": tuple(FindingFact(**one) for one in row["findings"]),
        "sha": row["measured_run__commit__sha"] or "",
        "day0_sha": row["day0_run__commit__sha"] or "",
        "best_sha": row["best_run__commit__sha"] or "",
    }


def _fact(row: _Row) -> dict[str, Any]:
    return {
        "id": row["id"],
        "workload_id": row["workload_id"],
        "platform_id": row["platform_id"],
        "model_id": row["workload__model_id"],
        "model": row["workload__model__name"],
        "title": row["workload__model__title"],
        "scenario": row["workload__scenario"],
        "workload": _label(row),
        "platform": row["platform__slug"],
        "source": row["source"],
        "measured": row["measured"],
        "newest": _newest(row),
        "measure": _measure(row),
        "trace_id": row["trace_id"],
        "trace_run_id": row["trace__run_id"],
        "roofline": row["roofline"],
        "counted": row["counted"],
    }


def _label(row: _Row) -> str:
    return workload_label(
        row["workload__batch"],
        row["workload__prompt_tokens"],
        row["workload__output_tokens"],
        f"{row['workload__dtype']} {row['workload__variant']}",
    )


def _newest(row: _Row) -> Newest | None:
    if row["newest_run_id"] is None:
        return None
    kind = row["newest_run__failure_kind"]
    moments = (row[f"newest_run__{name}_at"] for name in ("ended", "started", "created"))
    return Newest(
        run_id=row["newest_run_id"],
        state=row["newest_run__state"],
        at=next(moment for moment in moments if moment),
        kind=_LABELS.get(kind, kind),
        message=row["newest_run__failure_message"],
    )


def _measure(row: _Row) -> Measure | None:
    if row["value"] is None:
        return None
    return Measure(
        metric=METRICS[row["metric"]],
        value=row["value"],
        spread=row["spread"],
        n=row["n"],
        run_id=row["measured_run_id"],
        at=row["measured_run__ended_at"],
        day0_value=row["day0_value"],
        day0_run_id=row["day0_run_id"],
        best_value=row["best_value"],
        best_run_id=row["best_run_id"],
        points=row["points"],
        same_environment=row["same_environment"],
        recent=tuple(row["recent"]),
    )
