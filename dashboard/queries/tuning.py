"""Reads behind the pages of the tuning loop: the list, one tuning, one iteration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Prefetch

from dashboard.models import (
    Commit,
    ComparedWorkload,
    Iteration,
    IterationState,
    TargetKind,
    Tuning,
)
from dashboard.queries.tuning_ceiling import Newest, newest_of, share_at
from dashboard.services.tuning_ladder import Ladder, meets, speed
from dashboard.services.tuning_measured import UNMEASURED
from dashboard.services.tuning_rows import ladder_of
from profiler import units
from profiler.metrics import METRICS
from profiler.types import Definition

PAGE_SIZE = 50
RELATED = (
    "workload__model",
    "platform",
    "repository",
    "version__template",
    "day0_commit",
    "rival",
    "created_by",
)
TRIED = (
    "commit",
    "baseline",
    "comparison__candidate",
    "change",
    "stands_on",
    "created_by",
    "decided_by",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationView:
    """One iteration with its verdict: as decided, or as it stands while it is measured.

    `before` and `after` are the values on the ladder, None for what is not kept.
    """

    row: Iteration
    verdict: str
    effect: float | None
    low: float | None
    high: float | None
    metric: Definition

    @property
    def state(self) -> str:
        """The word for its chip: a measured one waits for its decision."""
        row = self.row
        if row.state != IterationState.MEASURING or row.comparison is None:
            return str(row.state)
        return "to decide" if row.comparison.is_terminal else "measuring"

    @property
    def interval(self) -> str:
        """`−6.2 % (−6.9 to −5.5)`; empty without an estimate."""
        return interval(self.effect, self.low, self.high)

    @property
    def arrow(self) -> str:
        """Where the metric went, before the word of a verdict that says so."""
        if self.verdict not in {"faster", "slower"}:
            return ""
        return "▼ " if (self.verdict == "faster") == (self.metric.direction == "lower") else "▲ "

    @property
    def commit(self) -> Commit | None:
        """The commit that tries it, as soon as its comparison looked it up."""
        row = self.row
        return row.commit or (row.comparison.candidate if row.comparison else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RungView:
    """One step of the ladder: what was predicted beside what came; `iteration` is behind it."""

    iteration: Iteration
    is_setback: bool
    before: float
    after: float
    predicted: float | None
    measured: bool
    speed: float
    """How many times as fast as Day-0 it is after this step."""

    @property
    def change(self) -> float:
        return self.after / self.before - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningView:
    """A tuning with everything its page shows; `tried` is every iteration, oldest first."""

    row: Tuning
    metric: Definition
    ladder: Ladder
    rungs: tuple[RungView, ...]
    tried: tuple[IterationView, ...]
    newest: Newest | None
    sentence: str
    target: str

    @property
    def kept(self) -> int:
        return sum(item.row.state == IterationState.KEPT for item in self.tried)

    @property
    def undecided(self) -> int:
        return sum(not item.row.is_decided for item in self.tried)

    @property
    def speed(self) -> float:
        return speed(self.row.day0_value, self.ladder.now, self.metric.direction)

    @property
    def reached(self) -> bool:
        """Whether what is kept meets the target."""
        return meets(self.ladder.now, self.row.target_value, self.metric.direction)

    @property
    def ceiling(self) -> float | None:
        return self.newest.ceiling if self.newest else None

    @property
    def roofline_share(self) -> float | None:
        """What the kept value reaches of the roofline."""
        ceiling = self.ceiling
        if ceiling is None:
            return None
        return share_at(ceiling, self.ladder.now, self.metric.direction)

    @property
    def remains(self) -> float:
        """Relative change that is missing to the target."""
        return self.row.target_value / self.ladder.now - 1

    @property
    def unverified(self) -> int:
        """Kept iterations whose answers nobody compared, or whose speed no pairs settled."""
        return sum(bool(item.row.despite) for item in self.tried)


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningRow:
    """One tuning of the list."""

    row: Tuning
    metric: Definition
    ladder: Ladder
    tried: int
    kept: int
    undecided: int
    last_at: datetime

    @property
    def speed(self) -> float:
        return speed(self.row.day0_value, self.ladder.now, self.metric.direction)

    @property
    def reached(self) -> bool:
        return meets(self.ladder.now, self.row.target_value, self.metric.direction)


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningPage:
    """One page of the list, open ones first, then the newest."""

    rows: tuple[TuningRow, ...]
    total: int
    page: int
    pages: int


def tuning_page(page: int, state: str = "") -> TuningPage:
    """The page asked for; one past the end is the last."""
    found = Tuning.objects.select_related(*RELATED).order_by("-id")
    if state:
        found = found.filter(state=state)
    total = found.count()
    pages = max(1, -(-total // PAGE_SIZE))
    page = min(page, pages)
    start = (page - 1) * PAGE_SIZE
    shown = found[start : start + PAGE_SIZE].prefetch_related("iterations")
    rows = tuple(_list_row(row) for row in shown)
    return TuningPage(rows=rows, total=total, page=page, pages=pages)


def _list_row(row: Tuning) -> TuningRow:
    tried = list(row.iterations.all())
    kept = in_order(tried)
    moments = [item.decided_at or item.created_at for item in tried]
    return TuningRow(
        row=row,
        metric=METRICS[row.metric],
        ladder=ladder_of(row, kept),
        tried=len(tried),
        kept=len(kept),
        undecided=sum(not item.is_decided for item in tried),
        last_at=max([row.ended_at or row.created_at, *moments]),
    )


def in_order(tried: Iterable[Iteration]) -> list[Iteration]:
    """The kept ones in the order they were kept."""
    kept = [row for row in tried if row.state == IterationState.KEPT]
    return sorted(kept, key=lambda row: (row.decided_at or row.created_at, row.number))


def get_tuning(tuning_id: int) -> Tuning | None:
    """The tuning with the rows its pages name, its iterations and Day-0 runs loaded."""
    tried = Iteration.objects.select_related(*TRIED).order_by("number")
    found = Tuning.objects.select_related(*RELATED)
    found = found.prefetch_related(Prefetch("iterations", tried), "day0_runs")
    return found.filter(pk=tuning_id).first()


def tuning_view(row: Tuning) -> TuningView:
    """Everything the page of a tuning shows; its iterations must be loaded."""
    metric = METRICS[row.metric]
    tried = list(row.iterations.all())
    kept = in_order(tried)
    ladder = ladder_of(row, kept)
    newest = newest_of(row.workload, row.platform, metric)
    views = _views(row, tried, metric)
    return TuningView(
        row=row,
        metric=metric,
        ladder=ladder,
        rungs=_rungs(row, kept, ladder, metric),
        tried=views,
        newest=newest,
        sentence=sentence(row, ladder, metric, tried),
        target=target_words(row, metric),
    )


def _views(
    row: Tuning, tried: Sequence[Iteration], metric: Definition
) -> tuple[IterationView, ...]:
    open_ = [item.comparison_id for item in tried if not item.is_decided and item.comparison_id]
    rows = ComparedWorkload.objects.filter(comparison__in=open_, workload=row.workload_id)
    live = {found.comparison_id: found for found in rows} if open_ else {}
    return tuple(_view(item, live.get(item.comparison_id or 0), metric) for item in tried)


def _view(item: Iteration, live: ComparedWorkload | None, metric: Definition) -> IterationView:
    if item.is_decided or live is None:
        verdict = item.verdict or UNMEASURED
        figures = (item.effect, item.low, item.high)
    else:
        verdict = live.verdict or UNMEASURED
        # The stored figures of a workload are those of its headline metric.
        mine = live.metric == metric.name
        figures = (live.effect, live.low, live.high) if mine else (None, None, None)
    effect, low, high = figures
    return IterationView(
        row=item, verdict=verdict, effect=effect, low=low, high=high, metric=metric
    )


def _rungs(
    row: Tuning, kept: Sequence[Iteration], ladder: Ladder, metric: Definition
) -> tuple[RungView, ...]:
    by_number = {item.number: item for item in kept}
    return tuple(
        RungView(
            iteration=by_number[rung.number],
            is_setback=rung.is_setback,
            before=rung.before,
            after=rung.after,
            predicted=rung.predicted,
            measured=rung.measured,
            speed=speed(row.day0_value, rung.after, metric.direction),
        )
        for rung in ladder.rungs
    )


def interval(effect: float | None, low: float | None, high: float | None) -> str:
    """`−6.2 % (−6.9 to −5.5 %)`; the effect alone without an interval."""
    if effect is None:
        return ""
    if low is None or high is None:
        return units.change(effect)
    around = f"{units.change(low).removesuffix(' %')} to {units.change(high)}"
    return f"{units.change(effect)} ({around})"


def target_words(row: Tuning, metric: Definition) -> str:
    """`4.60 ms (70.0 % of the roofline)`."""
    value = units.quantity(row.target_value, metric.unit)
    if row.target_kind == TargetKind.ROOFLINE:
        return f"{value} ({units.share(row.target_share)} of the roofline)"
    if row.target_kind == TargetKind.RIVAL and row.rival is not None:
        return f"{value} (what {row.rival.slug} reached)"
    return value


def sentence(row: Tuning, ladder: Ladder, metric: Definition, tried: Sequence[Iteration]) -> str:
    """Where we are from Day-0 to the target: the gain that is kept, and what remains."""
    kept = sum(item.state == IterationState.KEPT for item in tried)
    day0, now = units.quantity(ladder.day0, metric.unit), units.quantity(ladder.now, metric.unit)
    if not kept:
        said = f"{metric.title} is at its Day-0 value of {day0}"
        said += f", {len(tried)} tried and none kept" if tried else "; nothing was tried yet"
    else:
        times = units.significant(speed(ladder.day0, ladder.now, metric.direction))
        shown = interval(ladder.change, ladder.low, ladder.high)
        said = (
            f"{metric.title} went from {day0} at Day-0 to {now}: {times} × as fast, {shown}; "
            f"{kept} of {len(tried)} tried kept"
        )
    return f"{said}. {_remaining(row, ladder, metric)}"


def _remaining(row: Tuning, ladder: Ladder, metric: Definition) -> str:
    target = target_words(row, metric)
    if meets(ladder.now, row.target_value, metric.direction):
        return f"The target of {target} is reached."
    gap = units.quantity(abs(row.target_value - ladder.now), metric.unit)
    missing = units.change(row.target_value / ladder.now - 1)
    return f"{gap} ({missing}) remain to the target of {target}."
