"""The series that changes are looked for in: one point per measured commit, in git order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from dashboard.models import Commit, MetricValue, NoiseFloor, Repository, RunState, Workload
from profiler.metrics import HEADLINE

NEWEST_POINTS = 200
"""How far back a series is looked through; older steps were found when they were new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The runs of one commit: the median of their medians, and the newest of them."""

    commit_id: int
    position: int
    value: float
    run_id: int
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """What a workload took on a platform at commits of one repository in one environment."""

    repository_id: int
    workload_id: int
    platform_id: int
    metric: str
    comparable_hash: str
    points: tuple[Point, ...]

    @property
    def values(self) -> list[float]:
        """In the metric's unit, oldest first."""
        return [point.value for point in self.points]

    def index_of(self, commit_id: int) -> int | None:
        """Where a commit stands, None where it is not in the series."""
        places = (at for at, point in enumerate(self.points) if point.commit_id == commit_id)
        return next(places, None)


@dataclass(frozen=True, slots=True)
class _Measured:
    commit_id: int
    repository_id: int
    position: int
    value: float
    run_id: int
    environment: str


def series_of(workload_id: int, platform_id: int) -> list[Series]:
    """Every series of a workload on a platform; sessions of comparisons are in none.

    A repository with a default branch counts the commits on its first-parent
    line: only there each commit holds all that came before it.
    """
    workload = Workload.objects.get(pk=workload_id)
    metric = HEADLINE[workload.scenario]
    grouped: dict[tuple[int, str], list[_Measured]] = defaultdict(list)
    rows = _measured(workload_id, platform_id, metric)
    for row in rows:
        grouped[row.repository_id, row.environment].append(row)
    lines = _lines(rows)
    return [
        Series(
            repository_id=repository_id,
            workload_id=workload_id,
            platform_id=platform_id,
            metric=metric,
            comparable_hash=environment,
            points=_points(found, lines[repository_id]),
        )
        for (repository_id, environment), found in grouped.items()
    ]


def _measured(workload_id: int, platform_id: int, metric: str) -> list[_Measured]:
    rows = MetricValue.objects.filter(
        name=metric,
        value__gt=0,
        result__run__workload_id=workload_id,
        result__run__platform_id=platform_id,
        result__run__state=RunState.SUCCEEDED,
        result__run__compared=None,
        result__run__commit__isnull=False,
    ).values_list(
        "result__run__commit_id",
        "result__run__commit__repository_id",
        "result__run__commit__position",
        "value",
        "result__run_id",
        "result__comparable_hash",
    )
    return [_Measured(*row) for row in rows]


def _lines(rows: Sequence[_Measured]) -> dict[int, frozenset[int] | None]:
    """The line of every repository, back to the oldest commit that was measured."""
    oldest: dict[int, int] = {}
    for row in rows:
        oldest[row.repository_id] = min(row.position, oldest.get(row.repository_id, row.position))
    repositories = Repository.objects.filter(pk__in=oldest)
    return {repository.pk: _line(repository, oldest[repository.pk]) for repository in repositories}


def _line(repository: Repository, oldest: int) -> frozenset[int] | None:
    """The commits of the default branch's first-parent line; None where no branch is known."""
    head = repository.heads.get(f"refs/heads/{repository.default_branch}", repository.head_sha)
    commits = Commit.objects.filter(repository=repository, position__gte=oldest)
    graph = {sha: (pk, parents) for sha, pk, parents in commits.values_list("sha", "pk", "parents")}
    if head not in graph:
        return None
    found: set[int] = set()
    at: str | None = head
    while at in graph:
        pk, parents = graph[at]
        if pk in found:
            break
        found.add(pk)
        at = parents[0] if parents else None
    return frozenset(found)


def _points(rows: Sequence[_Measured], line: frozenset[int] | None) -> tuple[Point, ...]:
    """One point per commit of the line, oldest first, the newest `NEWEST_POINTS` of them."""
    commits: dict[int, list[_Measured]] = defaultdict(list)
    for row in rows:
        if line is None or row.commit_id in line:
            commits[row.commit_id].append(row)
    points = [
        Point(
            commit_id=commit_id,
            position=found[0].position,
            value=median(row.value for row in found),
            run_id=max(row.run_id for row in found),
            runs=len(found),
        )
        for commit_id, found in commits.items()
    ]
    points.sort(key=lambda point: (point.position, point.commit_id))
    return tuple(points[-NEWEST_POINTS:])


def floor_of(series: Series) -> float:
    """The newest noise floor of the workload on the platform as a share, 0 when none is known."""
    floors = NoiseFloor.objects.filter(
        platform_id=series.platform_id, workload_id=series.workload_id, metric=series.metric
    ).order_by("-pk")
    return floors.values_list("floor", flat=True).first() or 0.0
