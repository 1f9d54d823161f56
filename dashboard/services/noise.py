"""A/A control: equal launches of one workload, whose differences are the noise of a platform."""

from __future__ import annotations

from dashboard.models import GroupKind, Platform, Run, User
from dashboard.services.runs import NewGroup, create_runs
from profiler.errors import SpecError
from profiler.types import RunSpec

LAUNCHES = (2, 40)
"""Allowed number of launches; pairs need an even one."""


def start_control(
    spec: RunSpec, launches: int, *, platform: Platform, user: User, key: str | None
) -> list[Run]:
    """Queue `launches` equal runs of `spec` as one group, once per `key`.

    The floor is stored when the last of them ends (`groups.settle`). Raises
    `SpecError` for a number that makes no pairs.
    """
    low, high = LAUNCHES
    if launches % 2 or not low <= launches <= high:
        raise SpecError(f"launches is {launches}", f"allowed: an even number, {low} to {high}")
    group = NewGroup(kind=GroupKind.NOISE)
    return create_runs([spec] * launches, platform=platform, user=user, key=key, group=group)
