"""What the end of the last run of a group brings: the noise floor of an A/A control."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime

from dashboard.models import GroupKind, MetricValue, NoiseFloor, Run, RunGroup
from dashboard.models.runs import ACTIVE
from profiler.analysis.noise import noise_floor


def settle(run: Run, now: datetime) -> None:
    """Store the floors of the A/A group of `run` when no launch of it is left to end.

    Call it in the transaction that ends the run. The lock makes the later of
    two simultaneous ends see the earlier one.
    """
    if run.group_id is None:
        return
    groups = RunGroup.objects.select_for_update().filter(pk=run.group_id, kind=GroupKind.NOISE)
    group = groups.first()
    if group is None or Run.objects.filter(group=group, state__in=ACTIVE).exists():
        return
    launches, environment = _launches(group)
    for metric, values in launches.items():
        if len(values) < 2:
            continue
        measured = noise_floor(values)
        NoiseFloor.objects.create(
            group=group,
            platform_id=group.platform_id,
            workload_id=run.workload_id,
            metric=metric,
            n=len(values),
            floor=measured.typical,
            worst=measured.worst,
            comparable_hash=environment,
            measured_at=now,
        )


def _launches(group: RunGroup) -> tuple[Mapping[str, list[float]], str]:
    """Every timed duration of the launches in the order they ran, of the environment most had.

    A launch in another environment is no equal one; the last of an odd number has no partner.
    """
    rows = (
        MetricValue.objects.filter(result__run__group=group, phase="timed", unit="ns", value__gt=0)
        .order_by("result__run__started_at", "result__run_id")
        .values_list("name", "value", "result__comparable_hash")
    )
    hashes = Counter(digest for _, _, digest in rows)
    environment = hashes.most_common(1)[0][0] if hashes else ""
    found: dict[str, list[float]] = defaultdict(list)
    for name, value, digest in rows:
        if digest == environment:
            found[name].append(value)
    return {name: values[: len(values) // 2 * 2] for name, values in found.items()}, environment
