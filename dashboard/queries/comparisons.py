"""Reads behind the pages of comparisons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet
from django.utils import timezone

from dashboard.models import (
    Commit,
    ComparedState,
    ComparedWorkload,
    Comparison,
    ComparisonState,
    NoiseFloor,
    Pair,
    Run,
    Side,
)
from dashboard.queries.run_status import LIVELY
from dashboard.services.pairs import verdict_of
from profiler.analysis.compare import EXIT_CODES, FieldDifference, environment_differences
from profiler.analysis.overall import Overall, overall
from profiler.analysis.verdict import Verdict
from profiler.analysis.wording import figures
from profiler.errors import ExitCode
from profiler.metrics import METRICS
from profiler.types import Environment
from profiler.units import significant

PAGE_SIZE = 50
COMMITS_SHOWN = 50
_HISTORY_LIMIT = 5_000
_RELATED = (
    "repository",
    "bisect_step",
    "platform",
    "baseline",
    "candidate",
    "version__template",
    "created_by",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRow:
    """One pair as it was measured; `dropped` says why it does not count."""

    number: int
    order: str
    baseline: float | None
    candidate: float | None
    dropped: str

    @property
    def change(self) -> float | None:
        """Relative change of this pair alone."""
        if not self.baseline or self.candidate is None:
            return None
        return self.candidate / self.baseline - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadView:
    """One workload: the verdict from the pairs so far, and the pairs themselves."""

    row: ComparedWorkload
    verdict: Verdict
    others: tuple[Verdict, ...]
    pairs: tuple[PairRow, ...]
    session: Run | None
    floor: float | None

    @property
    def figures(self) -> str:
        return figures(self.verdict) if self.verdict.effect is not None else ""

    @property
    def tested(self) -> str:
        """The test with its p and the level it is held against."""
        found = self.verdict
        if found.p_value is None:
            return found.test
        level = f" against {significant(found.level)}" if found.level is not None else ""
        return f"{found.test}, p {significant(found.p_value)}{level}"

    @property
    def is_measured(self) -> bool:
        return self.row.state in {ComparedState.WAITING, ComparedState.MEASURING}

    @property
    def failed(self) -> int:
        """Pairs that lost a launch."""
        counts = self.verdict.counts
        return counts.failed_baseline + counts.failed_candidate + counts.failed_both


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """The commits that one side has and the other has not, newest first."""

    commits: tuple[Commit, ...]
    total: int
    behind: int
    """How many commits of the baseline the candidate lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonView:
    """A comparison with everything its page shows."""

    row: Comparison
    workloads: tuple[WorkloadView, ...]
    sentence: str
    state: str
    """The verdict on the whole, "measuring" while one is open, or the state of the row."""
    exit_code: ExitCode
    differences: tuple[FieldDifference, ...]

    @property
    def every(self) -> str:
        fresh = timezone.now() - self.row.created_at < LIVELY
        return "2" if fresh else "5"

    @property
    def pairs(self) -> int:
        return sum(view.verdict.counts.attempted for view in self.workloads)

    @property
    def first_failure(self) -> str:
        """Why the first pair that lost a launch lost it."""
        told = (pair.dropped for view in self.workloads for pair in view.pairs if pair.dropped)
        return next(told, "")

    @property
    def failed_pairs(self) -> int:
        return sum(view.failed for view in self.workloads)

    @property
    def pairs_wanted(self) -> int:
        return sum(view.row.pairs_wanted for view in self.workloads)

    @property
    def moved(self) -> WorkloadView | None:
        """The workload that surely changed most, whose cause a bisect could find."""
        sure = [v for v in self.workloads if v.verdict.state in {"faster", "slower"} and v.session]
        return max(sure, key=lambda view: abs(view.verdict.effect or 0.0), default=None)

    @property
    def leading(self) -> WorkloadView | None:
        """The workload that changed most among those whose recordings were compared."""
        told = [view for view in self.workloads if view.row.difference_id is not None]
        return max(told, key=lambda view: abs(view.verdict.effect or 0.0), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """One comparison of the list."""

    row: Comparison
    summary: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPage:
    """One page of the list, newest first."""

    rows: tuple[ComparisonRow, ...]
    page: int
    pages: int
    total: int


def comparison_page(page: int) -> ComparisonPage:
    """The page that is asked for; one past the end is the last."""
    found = Comparison.objects.select_related(*_RELATED).prefetch_related("workloads")
    total = found.count()
    pages = max(1, -(-total // PAGE_SIZE))
    page = min(page, pages)
    start = (page - 1) * PAGE_SIZE
    rows = tuple(_list_row(row) for row in found[start : start + PAGE_SIZE])
    return ComparisonPage(rows=rows, page=page, pages=pages, total=total)


def _list_row(row: Comparison) -> ComparisonRow:
    compared = list(row.workloads.all())
    if row.state == ComparisonState.FAILED:
        summary = row.message
    elif len(compared) == 1:
        summary = compared[0].sentence
    else:
        counts = Counter(item.verdict for item in compared if item.verdict)
        summary = ", ".join(f"{state} {count}" for state, count in counts.most_common())
    return ComparisonRow(row=row, summary=summary, created_at=row.created_at)


def get_comparison(comparison_id: int) -> Comparison | None:
    """The comparison with what its page names, or None."""
    return Comparison.objects.select_related(*_RELATED).filter(pk=comparison_id).first()


def comparison_view(row: Comparison) -> ComparisonView:
    """Verdicts from the pairs stored by now."""
    found = list(row.workloads.select_related("workload__model").order_by("position"))
    pairs = _pairs(row)
    sessions = _sessions(row)
    floors = _floors(row)
    views = tuple(
        _workload(
            row,
            compared,
            pairs.get(compared.pk, []),
            session=sessions.get(compared.pk),
            floor=floors.get((compared.workload_id, compared.metric)),
        )
        for compared in found
    )
    return ComparisonView(
        row=row,
        workloads=views,
        sentence=_sentence(row, views),
        state=whole_state(row, views),
        exit_code=exit_code(row, views),
        differences=_differences(views, pairs),
    )


def _pairs(row: Comparison) -> dict[int, list[Pair]]:
    rows: QuerySet[Pair] = Pair.objects.filter(compared__comparison=row).order_by("number")
    found: dict[int, list[Pair]] = {}
    for pair in rows.prefetch_related("launches"):
        found.setdefault(pair.compared_id, []).append(pair)
    return found


def _sessions(row: Comparison) -> dict[int, Run]:
    """The newest session of each workload."""
    runs = Run.objects.filter(compared__comparison=row).order_by("pk")
    return {run.compared_id: run for run in runs if run.compared_id is not None}


def _floors(row: Comparison) -> dict[tuple[int, str], float]:
    """The newest noise floor of each workload on the platform."""
    floors = NoiseFloor.objects.filter(
        platform=row.platform, workload__in=row.workloads.values("workload")
    ).order_by("measured_at", "pk")
    return {(floor.workload_id, floor.metric): floor.floor for floor in floors}


def _workload(
    row: Comparison,
    compared: ComparedWorkload,
    pairs: Sequence[Pair],
    *,
    session: Run | None,
    floor: float | None,
) -> WorkloadView:
    compared.comparison = row
    names = sorted({name for pair in pairs for one in pair.launches.all() for name in one.values})
    others = [name for name in names if name != compared.metric and name in METRICS]
    return WorkloadView(
        row=compared,
        verdict=verdict_of(compared, compared.metric, pairs),
        others=tuple(verdict_of(compared, name, pairs) for name in others),
        pairs=tuple(_pair_row(pair, compared.metric) for pair in pairs),
        session=session,
        floor=floor,
    )


def _pair_row(pair: Pair, metric: str) -> PairRow:
    launches = {launch.side: launch for launch in pair.launches.all()}
    values = {side: launch.values.get(metric) for side, launch in launches.items()}
    failed = [launch for launch in launches.values() if launch.failure_kind]
    return PairRow(
        number=pair.number + 1,
        order=pair.order,
        baseline=values.get(Side.BASELINE),
        candidate=values.get(Side.CANDIDATE),
        dropped="; ".join(f"{launch.side}: {launch.message}" for launch in failed),
    )


def whole_state(row: Comparison, views: Sequence[WorkloadView]) -> str:
    """One word for the whole: the state of the row until it has ended, then the verdict.

    A workload that could not be measured leaves no verdict on the whole, but
    one that is slower stays slower.
    """
    if row.state != ComparisonState.ENDED:
        return str(row.state)
    settled = [view for view in views if view.row.state == ComparedState.SETTLED]
    state = _overall(settled).state
    return "not comparable" if len(settled) < len(views) and state != "slower" else state


def exit_code(row: Comparison, views: Sequence[WorkloadView]) -> ExitCode:
    """What `manage.py compare --gate` leaves with."""
    state = whole_state(row, views)
    known = {str(name): code for name, code in EXIT_CODES.items()}
    return known.get(state, ExitCode.NOT_COMPARABLE)


def _overall(views: Sequence[WorkloadView]) -> Overall:
    return overall([(view.row.workload.scenario, view.verdict) for view in views])


def _sentence(row: Comparison, views: Sequence[WorkloadView]) -> str:
    if row.state == ComparisonState.FAILED:
        return f"Nothing was measured: {row.message}"
    if row.state == ComparisonState.CANCELLED:
        return "Cancelled before there was a verdict"
    if row.state == ComparisonState.RESOLVING:
        return "Looking up the two commits"
    return views[0].verdict.sentence if len(views) == 1 else _overall(views).sentence


def _differences(
    views: Sequence[WorkloadView], pairs: dict[int, list[Pair]]
) -> tuple[FieldDifference, ...]:
    """What the recorded environments of the two sides differ in, for the first workload that has
    both."""
    for view in views:
        marks = {
            launch.side: launch.comparable_hash
            for pair in pairs.get(view.row.pk, [])
            for launch in pair.launches.all()
            if launch.comparable_hash
        }
        if len(marks) == 2:
            one, other = (
                _environment(view.row, marks[str(side)]) for side in (Side.BASELINE, Side.CANDIDATE)
            )
            return environment_differences(one, other)
    return ()


def _environment(compared: ComparedWorkload, mark: str) -> Environment:
    fields: dict[str, str] = compared.environments.get(mark, {})
    return Environment(fields=fields, missing=(), comparable_hash=mark, exact_hash="")


def between(row: Comparison) -> Between:
    """Commits that the candidate has and the baseline has not."""
    if row.baseline is None or row.candidate is None:
        return Between(commits=(), total=0, behind=0)
    top = max(row.baseline.position, row.candidate.position)
    rows = Commit.objects.filter(repository=row.repository, position__lte=top)
    graph = dict(rows.order_by("-position").values_list("sha", "parents")[:_HISTORY_LIMIT])
    ours, theirs = _ancestry(graph, row.candidate.sha), _ancestry(graph, row.baseline.sha)
    fresh = ours - theirs
    shown = [sha for sha in graph if sha in fresh][:COMMITS_SHOWN]
    commits = Commit.objects.filter(repository=row.repository, sha__in=shown)
    return Between(commits=tuple(commits), total=len(fresh), behind=len(theirs - ours))


def _ancestry(graph: dict[str, list[str]], sha: str) -> set[str]:
    found: set[str] = set()
    todo = [sha]
    while todo:
        at = todo.pop()
        if at in graph and at not in found:
            found.add(at)
            todo.extend(graph[at])
    return found
