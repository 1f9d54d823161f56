"""Reads behind the page of one run: what it measured, where, and with which files."""

from __future__ import annotations

import json
from dataclasses import dataclass

import msgspec

from dashboard.models import Attempt, MetricValue, Result, Run, RunArtifact, RunEvent, Trace
from profiler.metrics import HEADLINE, METRICS
from profiler.types import (
    Contamination,
    Environment,
    Extrapolation,
    GraphReport,
    MicroReport,
    ModelFacts,
    RoutingReport,
)
from profiler.types import Result as ResultDocument

_TRACE_FILES = ("raw", "report", "flame", "graph", "redacted")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricView:
    """One metric with its definition; `spread` is half the interquartile range."""

    name: str
    title: str
    meaning: str
    unit: str
    direction: str
    phase: str
    method: str
    value: float
    spread: float | None
    n: int
    minimum: float | None
    maximum: float | None
    percentiles: tuple[tuple[str, float], ...]
    cov: float | None
    samples: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultView:
    """Everything one run measured. `metrics` starts with the one that stands for the scenario."""

    metrics: tuple[MetricView, ...]
    profiled_ratio: float | None
    profiled_note: str
    model: ModelFacts
    environment: Environment
    warnings: tuple[str, ...]
    profiler_version: str
    contamination: Contamination | None
    graphs: GraphReport | None
    routing: RoutingReport | None
    micro: MicroReport | None
    extrapolation: Extrapolation | None

    @property
    def headline(self) -> MetricView:
        return self.metrics[0]

    @property
    def named(self) -> dict[str, MetricView]:
        """The metrics by name, for sentences that speak of single ones."""
        return {metric.name: metric for metric in self.metrics}

    def metric(self, name: str) -> MetricView | None:
        return next((metric for metric in self.metrics if metric.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run with everything its page shows beside its status."""

    run: Run
    result: ResultView | None
    traces: tuple[Trace, ...]
    attempts: tuple[Attempt, ...]
    events: tuple[RunEvent, ...]
    files: tuple[RunArtifact, ...]
    spec_json: str

    @property
    def trace(self) -> Trace | None:
        """The trace of the lowest rank, which stands for the run."""
        return self.traces[0] if self.traces else None


def get_run(run_id: int) -> Run | None:
    """The run with the rows its pages name."""
    related = ("workload__model", "platform", "created_by", "commit", "compared", "pin__created_by")
    return Run.objects.select_related(*related).filter(pk=run_id).first()


def run_view(run: Run) -> RunView:
    """Everything the page of `run` shows beside its status."""
    files = run.artifacts.select_related("artifact").order_by("-attempt", "name")
    return RunView(
        run=run,
        result=result_view(run),
        traces=tuple(run.traces.select_related(*_TRACE_FILES).order_by("rank")),
        attempts=tuple(run.attempts.all()),
        events=tuple(run.events.all()),
        files=tuple(files),
        spec_json=_spec_text(run),
    )


def _spec_text(run: Run) -> str:
    """The specification without what it leaves open; reading it back gives the same one."""
    stated = {name: value for name, value in run.spec.items() if value is not None}
    return json.dumps(stated, indent=2, sort_keys=True)


def result_view(run: Run) -> ResultView | None:
    """What the run measured; `None` when it has no result."""
    row = Result.objects.filter(run=run).prefetch_related("metrics").first()
    if row is None:
        return None
    document = msgspec.convert(row.document, ResultDocument)
    return ResultView(
        metrics=_metrics(row, run.workload.scenario),
        profiled_ratio=document.profiled_ratio,
        profiled_note=document.profiled_note,
        model=document.model,
        environment=msgspec.convert(row.environment, Environment),
        warnings=document.warnings,
        profiler_version=document.profiler_version,
        contamination=document.contamination,
        graphs=document.graphs,
        routing=document.routing,
        micro=document.micro,
        extrapolation=document.extrapolation,
    )


def _metrics(row: Result, scenario: str) -> tuple[MetricView, ...]:
    """In the order of the definitions, the headline metric first."""
    order = [HEADLINE[scenario], *METRICS]
    found = sorted(row.metrics.all(), key=lambda value: order.index(value.name))
    return tuple(_metric(value) for value in found)


def _metric(value: MetricValue) -> MetricView:
    definition = METRICS[value.name]
    return MetricView(
        name=value.name,
        title=definition.title,
        meaning=definition.meaning,
        unit=value.unit,
        direction=value.direction,
        phase=value.phase,
        method=value.method,
        value=value.value,
        spread=value.iqr / 2 if value.iqr is not None and value.n > 1 else None,
        n=value.n,
        minimum=value.minimum,
        maximum=value.maximum,
        percentiles=tuple(value.percentiles.items()),
        cov=value.cov,
        samples=tuple(value.samples),
    )


def run_file(run: Run, name: str, attempt: int | None) -> RunArtifact | None:
    """The file of that name, of the attempt asked for or else of the last one that has it."""
    found = run.artifacts.select_related("artifact").filter(name=name)
    if attempt is not None:
        found = found.filter(attempt=attempt)
    return found.order_by("-attempt").first()
