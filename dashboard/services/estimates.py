"""How long runs usually take: from those of the same workload that succeeded there."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dashboard.models import Run, RunState

HISTORY_RUNS = 5_000
"""Estimates look back over so many runs at most, which bounds their cost."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a duration is of: sessions of comparisons measure pairs and take longer than runs."""

    platform_id: int
    workload_id: int
    session: bool = False


def usual_times(
    workload_ids: Iterable[int], platform_id: int | None = None
) -> Mapping[Place, float]:
    """Median nanoseconds from claim to end, on one platform or all; without history left out."""
    runs = Run.objects.filter(
        workload_id__in=set(workload_ids),
        state=RunState.SUCCEEDED,
        started_at__isnull=False,
        ended_at__isnull=False,
    )
    if platform_id is not None:
        runs = runs.filter(platform_id=platform_id)
    columns = ("platform_id", "workload_id", "compared_id", "started_at", "ended_at")
    found: dict[Place, list[float]] = defaultdict(list)
    for platform, workload, compared, started, ended in runs.order_by("-id").values_list(*columns)[
        :HISTORY_RUNS
    ]:
        place = Place(platform, workload, compared is not None)
        found[place].append((ended - started).total_seconds() * 1e9)
    return {place: statistics.median(values) for place, values in found.items()}


def usual_ns(workload_ids: Iterable[int], platform_id: int) -> Mapping[int, float]:
    """Workload -> usual nanoseconds of a run of it there; those without history are left out."""
    times = usual_times(workload_ids, platform_id)
    return {place.workload_id: took for place, took in times.items() if not place.session}
