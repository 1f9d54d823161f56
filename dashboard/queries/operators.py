"""Reads of operators across traces: which there are, and how one of them did over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import Count, QuerySet, Sum

from dashboard.models import Operator, Trace, TraceState, Workload

LIST_SIZE = 50
LIST_TRACES = 200
"""The list adds up the newest traces: over all of them it would take seconds."""

READINGS = 100
TREND_RUNS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSum:
    """One operator over the newest traces."""

    name: str
    traces: int
    device_self_ns: int
    host_self_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorList:
    """The operators with the most time in the newest `traces`; `total` counts those that match."""

    rows: tuple[OperatorSum, ...]
    total: int
    traces: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One operator in one trace; times are of a step where steps are known, else of the trace."""

    trace: Trace
    calls: int
    self_ns: float
    per_step: bool
    on_device: bool
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """An operator over the runs of one workload on one platform, oldest first."""

    workload: str
    workload_id: int
    model: str
    platform: str
    readings: tuple[Reading, ...]

    @property
    def values(self) -> list[float]:
        return [reading.self_ns for reading in self.readings]

    @property
    def last(self) -> Reading:
        return self.readings[-1]

    @property
    def change(self) -> float | None:
        """Of the last against the one before it; None with one, or from nothing."""
        if len(self.readings) < 2 or not self.readings[-2].self_ns:
            return None
        return self.readings[-1].self_ns / self.readings[-2].self_ns - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorHistory:
    """Everything known of one operator: series of workloads, readings of uploads, other names."""

    series: tuple[Series, ...]
    uploads: tuple[Reading, ...]
    names: tuple[str, ...]


def operator_list(text: str) -> OperatorList:
    """Operators by device time, then host time, over the newest traces."""
    ready = Trace.objects.filter(state=TraceState.READY).order_by("-id")
    newest = list(ready.values_list("pk", flat=True)[:LIST_TRACES])
    found = Operator.objects.filter(trace__in=newest)
    if text:
        found = found.filter(canonical__icontains=text)
    sums = found.values("canonical").annotate(
        traces=Count("trace"), device=Sum("device_self_ns"), host=Sum("host_self_ns")
    )
    rows = tuple(
        OperatorSum(
            name=row["canonical"],
            traces=row["traces"],
            device_self_ns=row["device"],
            host_self_ns=row["host"],
        )
        for row in sums.order_by("-device", "-host", "canonical")[:LIST_SIZE]
    )
    total = found.values("canonical").distinct().count()
    return OperatorList(rows=rows, total=total, traces=len(newest))


def operator_history(name: str) -> OperatorHistory:
    """The last readings of an operator by the name that vendors share."""
    rows = list(_newest(Operator.objects.filter(canonical=name))[:READINGS])
    sums = _sums(row.trace_id for row in rows)
    groups: dict[tuple[int, str], list[Reading]] = {}
    names_of: dict[int, Workload] = {}
    uploads = []
    for row in reversed(rows):
        reading = _reading(row, *sums[row.trace_id])
        run = row.trace.run
        if run is None:
            uploads.append(reading)
        else:
            names_of[run.workload_id] = run.workload
            groups.setdefault((run.workload_id, run.platform.slug), []).append(reading)
    series = tuple(
        Series(
            workload=f"{names_of[workload_id].model.name} {names_of[workload_id]}",
            workload_id=workload_id,
            model=names_of[workload_id].model.name,
            platform=platform,
            readings=tuple(readings),
        )
        for (workload_id, platform), readings in groups.items()
    )
    names = tuple(sorted({row.name for row in rows} - {name}))
    return OperatorHistory(series=series, uploads=tuple(reversed(uploads)), names=names)


def trends(trace: Trace, names: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """Self time of operators over the last runs of the trace's workload up to it, oldest first.

    Empty for uploads. Runs in which an operator did not appear are left out of its series.
    """
    if trace.run is None or not names:
        return {}
    before = Trace.objects.filter(
        run__workload=trace.run.workload_id,
        run__platform=trace.run.platform_id,
        rank=trace.rank,
        state=TraceState.READY,
        pk__lte=trace.pk,
    )
    chosen = list(before.order_by("-pk").values_list("pk", flat=True)[:TREND_RUNS])
    found: dict[str, list[float]] = {}
    on_device = trace.operators.filter(device_self_ns__gt=0).exists()
    rows = Operator.objects.filter(trace__in=chosen, canonical__in=set(names))
    for row in rows.select_related("trace").order_by("trace_id"):
        own = row.device_self_ns if on_device else row.host_self_ns
        found.setdefault(row.canonical, []).append(own / max(1, row.trace.steps or 1))
    return {name: tuple(values) for name, values in found.items()}


def _newest(rows: QuerySet[Operator]) -> QuerySet[Operator]:
    related = ("trace__run__workload__model", "trace__run__platform")
    return rows.select_related(*related).order_by("-trace_id", "id")


def _sums(trace_ids: Iterable[int]) -> dict[int, tuple[int, int]]:
    """Device and host self time of all operators per trace."""
    rows = Operator.objects.filter(trace__in=set(trace_ids)).values("trace")
    sums = rows.annotate(device=Sum("device_self_ns"), host=Sum("host_self_ns"))
    return {row["trace"]: (row["device"], row["host"]) for row in sums}


def _reading(row: Operator, device_ns: int, host_ns: int) -> Reading:
    own, whole = (row.device_self_ns, device_ns) if device_ns else (row.host_self_ns, host_ns)
    steps = row.trace.steps or 0
    return Reading(
        trace=row.trace,
        calls=row.count,
        self_ns=own / steps if steps else float(own),
        per_step=bool(steps),
        on_device=bool(device_ns),
        share=own / whole if whole else 0.0,
    )
