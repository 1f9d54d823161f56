"""Reads behind the pages of platforms: what each can do at most, and how quiet it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Case, Count, Max, Q, QuerySet, When

from dashboard.models import Calibration, NoiseFloor, Platform, Result, Run, RunState
from dashboard.models.runs import ACTIVE
from dashboard.queries.status import heartbeats
from dashboard.services.calibrations import ceilings_of
from dashboard.services.clock import db_now
from profiler.analysis import noise
from profiler.analysis.roofline.peaks import Peaks, peaks_of
from profiler.metrics import HEADLINE, METRICS
from profiler.types import DTYPES
from profiler.types import Calibration as Ceilings

FACTS = (
    ("device_name", "Device"),
    ("cpu", "CPU"),
    ("cpus_usable", "CPUs usable"),
    ("cpu_governor", "CPU governor"),
    ("torch", "torch"),
    ("driver", "Driver"),
    ("os", "System"),
    ("host", "Host of the last run"),
)
"""Fields of the newest fingerprint that say what the machine is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorView:
    """A stored noise floor with what it means for a comparison."""

    workload_id: int
    model: str
    scenario: str
    workload: str
    metric: str
    title: str
    n: int
    floor: float
    worst: float
    rough: bool
    regression: float
    measured_at: datetime
    group_id: int
    environment: str

    @property
    def is_headline(self) -> bool:
        return HEADLINE[self.scenario] == self.metric


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformRow:
    """One line of the list. `floor` is the newest one of a headline metric."""

    slug: str
    title: str
    device: str
    workers: int
    active: int
    succeeded: int
    newest_at: datetime | None
    floor: FloorView | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A ceiling: what of, and how much."""

    title: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformView:
    """One platform: its machine as the last run saw it, its floors and its peaks."""

    platform: Platform
    workers: int
    facts: tuple[tuple[str, str], ...]
    floors: tuple[FloorView, ...]
    sheet: Peaks | None
    rates: tuple[Rate, ...]
    calibration: Calibration | None
    measured: tuple[Rate, ...]


def platform_rows() -> tuple[PlatformRow, ...]:
    """Every platform, in a fixed number of queries."""
    workers = _workers()
    counted = Platform.objects.annotate(
        active=Count("run", filter=Q(run__state__in=ACTIVE)),
        succeeded=Count("run", filter=Q(run__state=RunState.SUCCEEDED)),
        newest_at=Max("run__ended_at"),
    ).order_by("slug")
    newest = {floor.platform_id: view for floor, view in _headline_floors()}
    return tuple(
        PlatformRow(
            slug=row.slug,
            title=row.title,
            device=row.device,
            workers=workers[row.slug],
            active=row.active,
            succeeded=row.succeeded,
            newest_at=row.newest_at,
            floor=newest.get(row.pk),
        )
        for row in counted
    )


def platform_view(slug: str) -> PlatformView | None:
    """One platform; `None` when there is none of that name."""
    platform = Platform.objects.filter(slug=slug).first()
    if platform is None:
        return None
    fields = _fingerprint(platform)
    calibration = platform.calibrations.select_related("created_by").first()
    sheet = peaks_of(fields[name] for name in ("device_name", "cpu") if name in fields)
    return PlatformView(
        platform=platform,
        workers=_workers()[slug],
        facts=tuple((title, fields[name]) for name, title in FACTS if name in fields),
        floors=floors_of(platform),
        sheet=sheet,
        rates=_rates(sheet.flops, sheet.bandwidth, sheet.link_bandwidth) if sheet else (),
        calibration=calibration,
        measured=_measured(ceilings_of(calibration)) if calibration else (),
    )


def floors_of(platform: Platform) -> tuple[FloorView, ...]:
    """The newest floor of every workload and metric, headline metrics first."""
    latest = (
        NoiseFloor.objects.filter(platform=platform)
        .order_by()
        .values("workload_id", "metric")
        .annotate(newest=Max("id"))
    )
    rows = _related(NoiseFloor.objects.filter(pk__in=[row["newest"] for row in latest]))
    views = [floor_view(row) for row in rows]
    return tuple(sorted(views, key=lambda v: (not v.is_headline, -v.measured_at.timestamp())))


def floor_for(run: Run) -> FloorView | None:
    """The newest floor of the headline metric on the run's platform, of its own workload first."""
    own = Case(When(workload_id=run.workload_id, then=1), default=0)
    rows = NoiseFloor.objects.filter(
        platform_id=run.platform_id, metric=HEADLINE[run.workload.scenario]
    ).select_related("workload__model")
    row = rows.annotate(own=own).order_by("-own", "-id").first()
    return floor_view(row) if row else None


def _headline_floors() -> Iterable[tuple[NoiseFloor, FloorView]]:
    """Per platform the newest floor of a headline metric, oldest first so that it wins."""
    names = set(HEADLINE.values())
    latest = (
        NoiseFloor.objects.filter(metric__in=names)
        .order_by()
        .values("platform_id")
        .annotate(newest=Max("id"))
    )
    rows = _related(NoiseFloor.objects.filter(pk__in=[row["newest"] for row in latest]))
    return [(row, floor_view(row)) for row in rows]


def _related(rows: QuerySet[NoiseFloor]) -> QuerySet[NoiseFloor]:
    return rows.select_related("workload__model").order_by("id")


def floor_view(row: NoiseFloor) -> FloorView:
    """`row` with the thresholds that follow from it."""
    rough = row.n // 2 < noise.ENOUGH_PAIRS
    measured = noise.NoiseFloor(typical=row.floor, worst=row.worst, differences=(), few=rough)
    return FloorView(
        workload_id=row.workload_id,
        model=row.workload.model.name,
        scenario=row.workload.scenario,
        workload=row.workload.label,
        metric=row.metric,
        title=METRICS[row.metric].title,
        n=row.n,
        floor=row.floor,
        worst=row.worst,
        rough=rough,
        regression=measured.regression_threshold,
        measured_at=row.measured_at,
        group_id=row.group_id,
        environment=row.comparable_hash,
    )


def _workers() -> Counter[str]:
    alive = heartbeats(db_now())
    return Counter(p.platform for p in alive if p.alive and p.kind == "worker")


def _fingerprint(platform: Platform) -> Mapping[str, str]:
    """The environment of the last run that measured anything there."""
    last = (
        Result.objects.filter(run__platform=platform)
        .order_by("-run_id")
        .values_list("environment", flat=True)
        .first()
    )
    fields = last.get("fields", {}) if last else {}
    return {name: str(value) for name, value in fields.items()}


def _rates(
    flops: Mapping[str, float], bandwidth: float | None, link: float | None
) -> tuple[Rate, ...]:
    order = [*DTYPES, *(name for name in flops if name not in DTYPES)]
    rates = [
        Rate(title=f"Matrix products, {name}", value=flops[name], unit="FLOP/s")
        for name in order
        if name in flops
    ]
    if bandwidth:
        rates.append(Rate(title="Memory bandwidth", value=bandwidth, unit="B/s"))
    if link:
        rates.append(Rate(title="Link bandwidth", value=link, unit="B/s"))
    return tuple(rates)


def _measured(found: Ceilings) -> tuple[Rate, ...]:
    """Rates, then what a call costs at least."""
    rates = [*_rates(found.matmul_flops, found.copy_bandwidth, None)]
    if found.launch_ns is not None:
        rates.append(Rate(title="Launch latency", value=found.launch_ns, unit="ns"))
    rates.append(Rate(title="Host cost of a call", value=found.dispatch_ns, unit="ns"))
    return tuple(rates)
