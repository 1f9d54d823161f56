"""What stands between two runs, and whether pairs of their commits can be measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from dashboard.models import MetricValue, Run, Trace
from dashboard.queries.side_by_side import in_words
from profiler.errors import printable
from profiler.metrics import METRICS
from profiler.spec import workload_hash
from profiler.types import EXACT_ONLY, RunSpec

_WORK = frozenset(
    {
        "model",
        "config",
        "checkpoint",
        "factory",
        "layers",
        "scenario",
        "batch",
        "prompt_tokens",
        "output_tokens",
    }
)
"""Fields that decide how much is computed; others only how."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why two runs are not fully comparable.

    `forbids` says whether a change would mean nothing at all.
    """

    kind: str
    text: str
    forbids: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Whether pairs of the two commits can be measured: the form's first values, or why not."""

    values: Mapping[str, str | int]
    why_not: str = ""

    @property
    def query(self) -> str:
        """The address part of the form for a new comparison."""
        return urlencode(self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunColumn:
    """One run; `reasons` are against the baseline, which has none."""

    run: Run
    spec: RunSpec
    environment: Mapping[str, str]
    comparable_hash: str
    metrics: Mapping[str, MetricValue]
    trace: Trace | None
    reasons: tuple[Reason, ...] = ()
    offer: Offer | None = None

    @property
    def same_work(self) -> bool:
        return not any(reason.forbids for reason in self.reasons)


def against(base: RunColumn, other: RunColumn) -> RunColumn:
    """`other` with what stands between it and the baseline."""
    reasons = (
        *_result_reasons(base, other),
        *_workload_reasons(base, other),
        *_platform_reasons(base, other),
        *_environment_reasons(base, other),
        *_definition_reasons(base, other),
        Reason(kind="launches", text="one launch a side says nothing about noise"),
    )
    return dataclasses.replace(other, reasons=reasons, offer=_offer(base, other))


def _result_reasons(base: RunColumn, other: RunColumn) -> list[Reason]:
    return [
        Reason(kind="result", text=_no_result(column.run), forbids=True)
        for column in (base, other)
        if not column.metrics
    ]


def _no_result(run: Run) -> str:
    if run.compared_id is not None:
        return f"run {run.pk} measured pairs of a comparison: it has no result of its own"
    return f"run {run.pk} is {run.get_state_display().lower()} and has no result"


def _workload_reasons(base: RunColumn, other: RunColumn) -> list[Reason]:
    names = [name for name in _differing(base.spec, other.spec) if sets_apart(base, other, name)]
    if not names:
        return []
    work = [name for name in names if name in _work(base.spec)]
    told = in_words(names, spec_words(base.spec), spec_words(other.spec))
    if work:
        return [Reason(kind="workload", text=f"not the same work: {told}", forbids=True)]
    return [Reason(kind="workload", text=f"the same work done otherwise: {told}")]


def _work(spec: RunSpec) -> frozenset[str]:
    """In training every rank brings sequences of its own."""
    return _WORK | {"ranks"} if spec.scenario == "training" else _WORK


def _differing(one: RunSpec, other: RunSpec) -> list[str]:
    return [
        field.name
        for field in dataclasses.fields(RunSpec)
        if getattr(one, field.name) != getattr(other, field.name)
    ]


def sets_apart(base: RunColumn, other: RunColumn, name: str) -> bool:
    """Whether a field makes another workload; the device is the platform's."""
    if name == "device":
        return False
    changed = dataclasses.replace(base.spec, **{name: getattr(other.spec, name)})
    return workload_hash(changed) != workload_hash(base.spec)


def spec_words(spec: RunSpec) -> dict[str, str]:
    """Every field of a specification as text."""
    return {name: str(value) for name, value in dataclasses.asdict(spec).items()}


def _platform_reasons(base: RunColumn, other: RunColumn) -> list[Reason]:
    one, two = base.run.platform.slug, other.run.platform.slug
    if one == two:
        return []
    text = f"different platforms ({printable(one)} against {printable(two)}): this compares "
    return [Reason(kind="platform", text=f"{text}machines, not commits")]


def _environment_reasons(base: RunColumn, other: RunColumn) -> list[Reason]:
    if not base.comparable_hash or base.comparable_hash == other.comparable_hash:
        return []
    if not other.comparable_hash:
        return []
    names = sorted(base.environment.keys() | other.environment.keys())
    names = [
        name
        for name in names
        if name not in EXACT_ONLY and base.environment.get(name) != other.environment.get(name)
    ]
    told = in_words(names, base.environment, other.environment) or "their marks"
    return [Reason(kind="environment", text=f"different environments: {told}")]


def _definition_reasons(base: RunColumn, other: RunColumn) -> list[Reason]:
    names = [
        METRICS[name].title
        for name, value in base.metrics.items()
        if name in METRICS
        and name in other.metrics
        and other.metrics[name].definition != value.definition
    ]
    if not names:
        return []
    return [Reason(kind="definition", text=f"defined differently since: {', '.join(names)}")]


def _offer(base: RunColumn, other: RunColumn) -> Offer:
    """Where both ran commits of one repository, those two can be measured in pairs."""
    one, two = base.run.commit, other.run.commit
    if one is None or two is None:
        return Offer(values={}, why_not="only runs at commits of a repository can be paired")
    if one.repository_id != two.repository_id:
        return Offer(values={}, why_not="their commits belong to different repositories")
    if one.pk == two.pk:
        return Offer(values={}, why_not="both ran the same commit")
    if base.run.platform_id != other.run.platform_id:
        return Offer(values={}, why_not="a pair is measured on one platform")
    return Offer(
        values={
            "repository": one.repository.slug,
            "baseline": one.sha,
            "candidate": two.sha,
            "platform": base.run.platform.slug,
            "run": base.run.pk,
        }
    )
