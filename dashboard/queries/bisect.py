"""Reads behind the pages of bisects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count
from django.utils import timezone

from dashboard.models import (
    Bisect,
    BisectOutcome,
    BisectState,
    BisectStep,
    BisectStepKind,
    Commit,
    ComparedWorkload,
)
from dashboard.queries.run_status import LIVELY
from dashboard.services.bisect_range import Range, steps_left, suspects
from dashboard.services.bisect_steps import answers_of, range_of
from profiler.errors import ExitCode, printable
from profiler.metrics import METRICS
from profiler.units import change, share

PAGE_SIZE = 50
LINES_SHOWN = 100
_RELATED = (
    "repository",
    "platform",
    "workload__model",
    "good",
    "bad",
    "culprit",
    "created_by",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLine:
    """One comparison of a bisect: what it is about, how far it is, and what it said."""

    row: BisectStep
    compared: ComparedWorkload | None
    pairs: int

    @property
    def figures(self) -> str:
        """The change with its interval, empty before there is one."""
        found = self.compared
        if found is None or found.effect is None:
            return ""
        if found.low is None:
            return change(found.effect)
        return f"{change(found.effect)} ({change(found.low)} to {change(found.high)})"

    @property
    def wanted(self) -> int:
        return self.compared.pairs_wanted if self.compared else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitLine:
    """One commit of the range. `fate` is what is known of it by now.

    culprit, suspect or cleared; `step` is its own comparison, if it had one.
    """

    commit: Commit
    fate: str
    step: StepLine | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectView:
    """A bisect with everything its page shows; commits are newest first."""

    row: Bisect
    steps: tuple[StepLine, ...]
    commits: tuple[CommitLine, ...]
    total: int
    suspected: int
    sentence: str

    @property
    def every(self) -> str:
        return "2" if timezone.now() - self.row.created_at < LIVELY else "5"

    @property
    def current(self) -> StepLine | None:
        """The step that is being measured."""
        return next((step for step in self.steps if not step.row.answer), None)

    @property
    def steps_left(self) -> int:
        """About how many more commits will be measured, the last check included."""
        return 0 if self.row.is_terminal else steps_left(self.suspected) + 1

    @property
    def exit_code(self) -> ExitCode:
        """What `manage.py bisect` leaves with."""
        if self.row.state == BisectState.FAILED:
            return ExitCode.BAD_INPUT
        found = self.row.outcome == BisectOutcome.CONFIRMED
        return ExitCode.FINE if found else ExitCode.INCONCLUSIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectRow:
    """One bisect of the list."""

    row: Bisect
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectPage:
    """One page of the list, newest first."""

    rows: tuple[BisectRow, ...]
    page: int
    pages: int
    total: int


def bisect_page(page: int) -> BisectPage:
    """The page that is asked for; one past the end is the last."""
    found = Bisect.objects.select_related(*_RELATED)
    total = found.count()
    pages = max(1, -(-total // PAGE_SIZE))
    page = min(page, pages)
    start = (page - 1) * PAGE_SIZE
    rows = tuple(
        BisectRow(row=row, sentence=_sentence(row, 0, (), 0))
        for row in found[start : start + PAGE_SIZE]
    )
    return BisectPage(rows=rows, page=page, pages=pages, total=total)


def get_bisect(bisect_id: int) -> Bisect | None:
    """The bisect with what its page names, or None."""
    return Bisect.objects.select_related(*_RELATED).filter(pk=bisect_id).first()


def bisect_view(row: Bisect, *, every_commit: bool = False) -> BisectView:
    """What is known by now; a long range is cut to what matters unless `every_commit`."""
    steps = _steps(row)
    found = _range(row)
    left = suspects(found, answers_of([step.row for step in steps])) if found else ()
    shas = found.shas if found else ()
    shown = _shown(shas, steps, left) if not every_commit else shas
    return BisectView(
        row=row,
        steps=steps,
        commits=_commits(row, shown, steps, left),
        total=len(shas),
        suspected=len(left),
        sentence=_sentence(row, len(left), steps, len(shas)),
    )


def _range(row: Bisect) -> Range | None:
    return range_of(row) if row.good_id and row.bad_id else None


def _steps(row: Bisect) -> tuple[StepLine, ...]:
    found = ComparedWorkload.objects.filter(comparison__bisect_step__bisect=row)
    compared = {one.comparison_id: one for one in found.annotate(measured=Count("pairs"))}
    steps = row.steps.select_related("commit", "comparison__baseline")
    return tuple(
        StepLine(
            row=step,
            compared=compared.get(step.comparison_id),
            pairs=getattr(compared.get(step.comparison_id), "measured", 0),
        )
        for step in steps
    )


def _shown(shas: Sequence[str], steps: Sequence[StepLine], left: Sequence[str]) -> Sequence[str]:
    """All of a short range; of a long one what was measured and the newest suspects."""
    if len(shas) <= LINES_SHOWN:
        return shas
    kept = {step.row.commit.sha for step in steps} | set(left[-LINES_SHOWN:])
    return [sha for sha in shas if sha in kept]


def _commits(
    row: Bisect, shas: Sequence[str], steps: Sequence[StepLine], left: Sequence[str]
) -> tuple[CommitLine, ...]:
    """Lines of commits, newest first."""
    own = {s.row.commit.sha: s for s in steps if s.row.kind != BisectStepKind.CONFIRM}
    known = {
        commit.sha: commit
        for at in range(0, len(shas), 500)
        for commit in Commit.objects.filter(
            repository_id=row.repository_id, sha__in=shas[at : at + 500]
        )
    }
    suspected = set(left)
    culprit = row.culprit.sha if row.culprit else ""

    def fate(sha: str) -> str:
        if sha == culprit:
            return "culprit"
        return "suspect" if sha in suspected else "cleared"

    return tuple(
        CommitLine(commit=known[sha], fate=fate(sha), step=own.get(sha)) for sha in reversed(shas)
    )


def _sentence(row: Bisect, suspected: int, steps: Sequence[StepLine], total: int) -> str:
    """What the page says first; without steps the short form of a list."""
    if row.state == BisectState.RESOLVING:
        return "Looking up the two commits."
    if row.state == BisectState.FAILED:
        return f"The bisect stopped: {printable(row.message, 600)}."
    if row.state == BisectState.CANCELLED:
        return "Cancelled; what was measured is kept."
    if row.state == BisectState.MEASURING:
        return _so_far(row, suspected, steps, total)
    return _found(row, suspected, steps)


def _so_far(row: Bisect, suspected: int, steps: Sequence[StepLine], total: int) -> str:
    kind = steps[-1].row.kind if steps else ""
    if row.culprit is not None:
        return f"{_named(row.culprit)} is the first {row.looked_for} commit; its parent is next."
    if kind == BisectStepKind.ENDS:
        return f"{total} commits lie between. First the two ends are compared."
    if not suspected:
        return (
            f"The ends differ by {change(row.effect)}." if row.effect else "The ends are compared."
        )
    return (
        f"{suspected} of {total} commits are suspected to be {row.looked_for}; "
        f"about {steps_left(suspected) + 1} more comparisons."
    )


def _found(row: Bisect, suspected: int, steps: Sequence[StepLine]) -> str:
    title = METRICS[row.metric].title
    if row.outcome == BisectOutcome.ALIKE:
        return f"Nothing to find between the two ends. {printable(row.message, 600)}"
    if row.outcome == BisectOutcome.SEVERAL:
        many = f"One of {suspected} commits" if suspected else "One of several commits"
        return (
            f"{many} made {title} {row.looked_for}, {change(row.effect)} in all; "
            "no other of them gave an answer."
        )
    culprit = _named(row.culprit)
    if row.outcome == BisectOutcome.UNCONFIRMED:
        return (
            f"{culprit} is the first {row.looked_for} commit, but its own comparison with its "
            f"parent does not confirm it. {printable(row.message, 400)}"
        )
    last = steps[-1] if steps else None
    figures = f", {last.figures} against its parent" if last and last.figures else ""
    return f"{culprit} made {title} {row.looked_for}{figures}{_part(row, last)}."


def _part(row: Bisect, last: StepLine | None) -> str:
    """How much of the change between the ends the culprit makes."""
    effect = last.compared.effect if last and last.compared else None
    if effect is None or not row.effect:
        return ""
    part = math.log1p(effect) / math.log1p(row.effect)
    return f": {share(part)} of the change between the ends"


def _named(commit: Commit | None) -> str:
    return f"{commit.sha[:10]} “{printable(commit.subject, 100)}”" if commit else "A commit"
