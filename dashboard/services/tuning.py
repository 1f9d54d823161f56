"""Verbs of the tuning loop: open a tuning from its Day-0 runs, close it, and its iterations."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from django.db import IntegrityError, transaction

from dashboard.models import (
    Commit,
    MetricValue,
    Platform,
    Repository,
    Run,
    RunState,
    TargetKind,
    TemplateVersion,
    Tuning,
    TuningState,
    User,
    Workload,
)
from dashboard.models.tuning import DECIDED
from dashboard.services import audit, repositories
from dashboard.services.clock import db_now
from dashboard.services.comparisons import specs_for
from dashboard.services.tuning_iterations import (
    Decision,
    FindingRef,
    NewIteration,
    add_iteration,
    attach_comparison,
    decide_iteration,
    measure_iteration,
)
from dashboard.services.tuning_ladder import meets
from dashboard.services.tuning_rows import REASON_CHARS, TuningError, kept_of, ladder_of
from profiler import spec as specs
from profiler.errors import printable
from profiler.metrics import HEADLINE, METRICS
from profiler.types import Definition, RunSpec
from profiler.units import quantity

__all__ = [
    "SPEEDS",
    "Decision",
    "FindingRef",
    "NewIteration",
    "NewTuning",
    "Target",
    "TuningError",
    "add_iteration",
    "attach_comparison",
    "close_tuning",
    "decide_iteration",
    "ladder_of",
    "measure_iteration",
    "metric_of",
    "open_tuning",
    "open_tuning_of",
]

SPEEDS: dict[str, tuple[str, ...]] = {
    "prefill": ("ttft", "prefill_rate"),
    "decode": ("tpot", "decode_rate", "decode_rate_user"),
    "training": ("step_time", "training_rate"),
}
"""Metrics a tuning may climb, the headline of the scenario first."""

RUNS_LIMIT = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a tuning wants to go: `value` in the metric's unit, and what it was taken from."""

    kind: TargetKind
    value: float
    share: float | None = None
    rival: Platform | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTuning:
    """What is to be tuned. `runs` are the Day-0 runs, none for the newest measured one.

    `day0_ref` names the Day-0 commit where the runs were of no commit.
    """

    workload: Workload
    platform: Platform
    repository: Repository
    target: Target
    version: TemplateVersion | None = None
    runs: tuple[int, ...] = ()
    day0_ref: str = ""
    metric: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DayZero:
    """What a tuning starts from; `value` is the median over the runs."""

    runs: tuple[Run, ...]
    value: float
    commit: Commit
    spec: RunSpec


def open_tuning(wanted: NewTuning, user: User | None) -> Tuning:
    """Store a tuning with its Day-0.

    Raises `TuningError` when the runs do not go together, the target is met
    already or the workload is being tuned there, `UnknownCommitError` for a
    `day0_ref` that is not known.
    """
    metric = metric_of(wanted.workload, wanted.metric)
    day0 = day0_of(wanted, metric)
    _check_target(wanted.target, day0.value, metric)
    try:
        with transaction.atomic():
            return _insert(wanted, metric, day0, user)
    except IntegrityError:
        open_ = open_tuning_of(wanted.workload.pk, wanted.platform.pk)
        number = f" by tuning {open_.pk}" if open_ else ""
        raise TuningError(
            f"{wanted.workload} is being tuned on {wanted.platform.slug} already{number}",
            "go on there, or close it first",
        ) from None


def _insert(wanted: NewTuning, metric: Definition, day0: DayZero, user: User | None) -> Tuning:
    target = wanted.target
    made = Tuning.objects.create(
        workload=wanted.workload,
        platform=wanted.platform,
        repository=wanted.repository,
        version=wanted.version,
        spec=dataclasses.asdict(day0.spec),
        metric=metric.name,
        day0_commit=day0.commit,
        day0_value=day0.value,
        target_kind=target.kind,
        target_value=target.value,
        target_share=target.share,
        rival=target.rival,
        created_by=user,
        created_at=db_now(),
    )
    made.day0_runs.set(day0.runs)
    audit.note(user, "tuning.open", f"tuning {made.pk}")
    return made


def open_tuning_of(workload_id: int, platform_id: int) -> Tuning | None:
    """The newest tuning of the workload there that is open."""
    found = Tuning.objects.filter(
        workload=workload_id, platform=platform_id, state=TuningState.OPEN
    )
    return found.order_by("-pk").first()


def metric_of(workload: Workload, name: str) -> Definition:
    """The definition of the metric to climb; the headline when none is named."""
    allowed = SPEEDS[workload.scenario]
    if name and name not in allowed:
        raise TuningError(
            f"{printable(name, 40)} is no speed of {workload.scenario}",
            f"allowed: {', '.join(allowed)}",
        )
    return METRICS[name or HEADLINE[workload.scenario]]


def day0_of(wanted: NewTuning, metric: Definition) -> DayZero:
    """The Day-0 runs checked and summed up; raises `TuningError` saying what does not fit."""
    values = _values(wanted, metric)
    runs = tuple(value.result.run for value in values)
    return DayZero(
        runs=runs,
        value=statistics.median(value.value for value in values),
        commit=_day0_commit(wanted, runs),
        spec=_measured_spec(wanted, runs[0]),
    )


def _values(wanted: NewTuning, metric: Definition) -> list[MetricValue]:
    found = MetricValue.objects.filter(
        name=metric.name,
        result__run__workload=wanted.workload,
        result__run__platform=wanted.platform,
        result__run__state=RunState.SUCCEEDED,
        result__run__compared__isnull=True,
    )
    found = found.select_related("result__run__commit").defer(
        "samples", "result__document", "result__environment"
    )
    if wanted.runs:
        values = list(found.filter(result__run__in=wanted.runs[:RUNS_LIMIT]).order_by("pk"))
    else:
        values = list(found.order_by("-result__run_id")[:1])
    known = {value.result.run_id for value in values}
    missing = [number for number in wanted.runs if number not in known]
    if missing or not values:
        named = ", ".join(map(str, missing[:5]))
        what = f"Run {named} has" if missing else "No run has"
        raise TuningError(
            f"{what} no {metric.title.lower()} of {wanted.workload} on {wanted.platform.slug}",
            "Day-0 needs succeeded runs of this very workload and platform",
        )
    if len({value.result.comparable_hash for value in values}) > 1:
        raise TuningError(
            "The Day-0 runs were measured in different environments",
            "choose runs whose pages show the same comparable mark",
        )
    return values


def _day0_commit(wanted: NewTuning, runs: Sequence[Run]) -> Commit:
    commits = {run.commit_id: run.commit for run in runs}
    if len(commits) > 1:
        raise TuningError("The Day-0 runs are of different commits", "choose runs of one commit")
    (commit,) = commits.values()
    if commit is None:
        if not wanted.day0_ref:
            raise TuningError(
                "The Day-0 runs are of no commit", "say which commit of the repository Day-0 is"
            )
        return repositories.resolve(wanted.repository, wanted.day0_ref)
    if commit.repository_id != wanted.repository.pk:
        raise TuningError(
            "The Day-0 runs are of a commit of another repository",
            "choose that repository, or other runs",
        )
    return commit


def _measured_spec(wanted: NewTuning, run: Run) -> RunSpec:
    """The spec of the run as comparisons of the repository measure it."""
    (spec,) = specs_for(wanted.repository, [msgspec.convert(run.spec, RunSpec)])
    if specs.workload_hash(spec) != wanted.workload.hash:
        raise TuningError(
            f"Comparisons of {wanted.repository.slug} measure the model of that repository, "
            f"run {run.pk} measured {wanted.workload.model.name}",
            "choose runs of the repository's own model as Day-0",
        )
    return spec


def _check_target(target: Target, day0: float, metric: Definition) -> None:
    if target.value <= 0 or meets(day0, target.value, metric.direction):
        raise TuningError(
            f"The target of {quantity(target.value, metric.unit)} is met by Day-0 already "
            f"({quantity(day0, metric.unit)})",
            "choose one that is better than Day-0",
        )


def close_tuning(tuning_id: int, reason: str, user: User) -> Tuning:
    """End a tuning: as reached where the ladder meets the target, else as stopped.

    Raises `TuningError` without a reason, while an iteration is undecided or
    when it has ended.
    """
    if not reason.strip():
        raise TuningError("A tuning is closed with a reason", "say why it ends here")
    with transaction.atomic():
        tuning = Tuning.objects.select_for_update().get(pk=tuning_id)
        if not tuning.is_open:
            raise TuningError(f"Tuning {tuning_id} has ended", "open a new one to go on")
        undecided = tuning.iterations.exclude(state__in=DECIDED).count()
        if undecided:
            raise TuningError(
                f"{undecided} iteration(s) of tuning {tuning_id} are undecided",
                "keep or revert each first",
            )
        now = ladder_of(tuning, kept_of(tuning)).now
        reached = meets(now, tuning.target_value, METRICS[tuning.metric].direction)
        tuning.state = TuningState.REACHED if reached else TuningState.STOPPED
        tuning.reason = reason.strip()[:REASON_CHARS]
        tuning.ended_at = db_now()
        tuning.save(update_fields=["state", "reason", "ended_at"])
        audit.note(user, "tuning.close", f"tuning {tuning_id}", {"as": tuning.state})
    return tuning
