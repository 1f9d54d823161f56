"""Reads of one operator over the history of a workload: time per step at every commit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Sum

from dashboard.models import Operator, Trace, TraceState
from dashboard.queries.standings import StandingDetail
from dashboard.services.history import from_source
from profiler.analysis import history

CHOICES = 20
"""Operators offered: those with most time in the newest trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An operator of the newest trace with its self time, per step where steps are known."""

    name: str
    self_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorPlace:
    """The operator at one place; `calls` per step is None where steps are not known."""

    point: history.Point
    sha: str
    subject: str
    at: datetime
    trace_id: int
    calls: float | None

    @property
    def name(self) -> str:
        return self.sha[:10] if self.sha else f"run {self.point.run_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTrack:
    """An operator over the traces of a workload, oldest place first.

    `without` of the `traces` looked at do not name it. `per_step` is false
    where any of them has no steps: then times are of whole traces.
    """

    name: str
    places: tuple[OperatorPlace, ...]
    traces: int
    without: int
    on_device: bool
    per_step: bool
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """One trace of the history, newest first."""

    trace_id: int
    run_id: int
    position: int | None
    sha: str
    subject: str
    at: datetime
    steps: int
    environment: str


def operator_choices(facts: StandingDetail) -> tuple[Choice, ...]:
    """The operators with most time in the newest trace of a workload."""
    if facts.trace_id is None:
        return ()
    rows = Operator.objects.filter(trace=facts.trace_id).select_related("trace")
    found = list(rows.order_by("-device_self_ns", "-host_self_ns")[:CHOICES])
    on_device = bool(found) and found[0].device_self_ns > 0
    sums: dict[str, float] = {}
    for row in found:
        own = row.device_self_ns if on_device else row.host_self_ns
        sums[row.canonical] = sums.get(row.canonical, 0.0) + own / max(1, row.trace.steps or 1)
    ranked = sorted(sums.items(), key=lambda item: -item[1])
    return tuple(Choice(name=name, self_ns=self_ns) for name, self_ns in ranked)


def operator_track(facts: StandingDetail, name: str, *, source: str, runs: int) -> OperatorTrack:
    """Self time of an operator over the last traces of a workload from one source.

    Device time where the operator has any in one of them, else host time.
    """
    seen = _seen(facts, source, runs)
    sums = _sums([one.trace_id for one in seen], name)
    on_device = any(device for device, _, _ in sums.values())
    per_step = all(one.steps for one in seen)
    known = {one.run_id: one for one in seen if one.trace_id in sums}
    readings = []
    for one in known.values():
        device, host, _ = sums[one.trace_id]
        readings.append(
            history.Reading(
                run_id=one.run_id,
                place=one.run_id if one.position is None else one.position,
                value=(device if on_device else host) / (one.steps if per_step else 1),
                iqr=None,
                n=1,
                environment=one.environment,
            )
        )
    return OperatorTrack(
        name=name,
        places=tuple(
            _place(point, known[point.run_id], sums, per_step=per_step)
            for point in history.points(readings)
        ),
        traces=len(seen),
        without=len(seen) - len(known),
        on_device=on_device,
        per_step=per_step,
        source=source,
    )


_Sums = dict[int, tuple[int, int, int]]


def _place(point: history.Point, one: _Seen, sums: _Sums, *, per_step: bool) -> OperatorPlace:
    calls = sums[one.trace_id][2]
    return OperatorPlace(
        point=point,
        sha=one.sha,
        subject=one.subject,
        at=one.at,
        trace_id=one.trace_id,
        calls=calls / one.steps if per_step else None,
    )


def _seen(facts: StandingDetail, source: str, runs: int) -> list[_Seen]:
    """Traces of the last runs, the newest place first."""
    found = Trace.objects.filter(
        run__workload=facts.workload_id,
        run__platform=facts.platform_id,
        rank=0,
        state=TraceState.READY,
    )
    chosen = from_source(found, "run__commit", source)
    rows = chosen.order_by("-run__commit__position", "-run_id").values_list(
        "id",
        "run_id",
        "run__commit__position",
        "run__commit__sha",
        "run__commit__subject",
        "run__created_at",
        "steps",
        "run__result__comparable_hash",
    )[:runs]
    return [
        _Seen(
            trace_id=row[0],
            run_id=row[1] or 0,
            position=row[2],
            sha=row[3] or "",
            subject=row[4] or "",
            at=row[5],
            steps=row[6] or 0,
            environment=row[7] or "",
        )
        for row in rows
    ]


def _sums(trace_ids: list[int], name: str) -> _Sums:
    """Device self, host self and calls of the operator, whatever a vendor calls it, per trace."""
    rows = Operator.objects.filter(canonical=name, trace__in=trace_ids).values_list("trace_id")
    found = rows.annotate(
        device=Sum("device_self_ns"), host=Sum("host_self_ns"), calls=Sum("count")
    )
    return {row[0]: (row[1], row[2], row[3]) for row in found}
