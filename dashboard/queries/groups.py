"""Reads behind the page of a group: how far its runs are, and what they say together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from django.db.models import Count

from dashboard.models import NoiseFloor, Run, RunGroup, RunState
from dashboard.models.runs import ACTIVE
from dashboard.queries.platforms import FloorView, floor_view


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus:
    """How many runs of a group are in which state."""

    total: int
    queued: int
    running: int
    succeeded: int
    unsuccessful: int

    @property
    def ended(self) -> int:
        return self.succeeded + self.unsuccessful

    @property
    def over(self) -> bool:
        return self.ended == self.total


def get_group(group_id: int) -> RunGroup | None:
    """The group with the rows its page names."""
    related = ("platform", "version__template", "created_by", "firing__schedule")
    return RunGroup.objects.select_related(*related).filter(pk=group_id).first()


def group_status(group: RunGroup) -> GroupStatus:
    """The states of the runs of `group` as of now."""
    rows = Run.objects.filter(group=group).order_by().values_list("state").annotate(n=Count("id"))
    counts: Counter[str] = Counter(dict(rows))
    bad = sum(n for state, n in counts.items() if state not in (*ACTIVE, RunState.SUCCEEDED))
    return GroupStatus(
        total=sum(counts.values()),
        queued=counts[RunState.QUEUED],
        running=counts[RunState.RUNNING],
        succeeded=counts[RunState.SUCCEEDED],
        unsuccessful=bad,
    )


def floors_in(group: RunGroup) -> tuple[FloorView, ...]:
    """What the launches of an A/A group say of their platform, the headline metric first."""
    rows = NoiseFloor.objects.filter(group=group).select_related("workload__model")
    views = [floor_view(row) for row in rows]
    return tuple(sorted(views, key=lambda view: (not view.is_headline, view.metric)))
