"""What a keeper does to bisects: look at the step that is measured, then ask for the next.

Every call reads the rows and does the one thing that is due, so that it may
be repeated, interrupted and done by any keeper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
from django.db import transaction

from dashboard.models import (
    Bisect,
    BisectAnswer,
    BisectOutcome,
    BisectState,
    BisectStep,
    BisectStepKind,
    Commit,
    ComparedWorkload,
    Comparison,
    ComparisonState,
)
from dashboard.services import comparisons
from dashboard.services.bisect_range import (
    Answers,
    Node,
    Range,
    next_probe,
    parent_of,
    range_between,
    suspects,
)
from dashboard.services.clock import db_now
from dashboard.services.pairs import verdict_of
from profiler.analysis.ladder import Settings
from profiler.analysis.verdict import Verdict
from profiler.errors import UserError, printable
from profiler.types import RunSpec

LARGEST_THRESHOLD = 0.9
HISTORY_CHUNK = 2_000
UNBUILT = ("build_failed", "build_timed_out", "checkout_failed")
"""Kinds of failure that say something of a commit, not of the machine."""


class StuckError(UserError):
    """A bisect that cannot go on."""

    kind = "bisect"


def advance_all() -> int:
    """Do what is due for every open bisect; how many went on. For the keeper, again and again."""
    open_ = (BisectState.RESOLVING, BisectState.MEASURING)
    found = Bisect.objects.filter(state__in=open_).order_by("pk").values_list("pk", flat=True)
    return sum(advance(pk) for pk in list(found))


def advance(bisect_id: int) -> bool:
    """Do what is due for one bisect; whether something was."""
    with transaction.atomic():
        bisect = Bisect.objects.select_for_update().get(pk=bisect_id)
        if bisect.is_terminal:
            return False
        try:
            with transaction.atomic():
                return _resolve(bisect) if bisect.state == BisectState.RESOLVING else _look(bisect)
        except UserError as error:
            _fail(bisect, error)
            return True


def range_of(bisect: Bisect) -> Range:
    """The commits between both ends; raises `RangeError` when there are none."""
    assert bisect.good is not None and bisect.bad is not None
    history = _history(bisect, max(bisect.good.position, bisect.bad.position))
    return range_between(history, bisect.good.sha, bisect.bad.sha)


def answers_of(steps: list[BisectStep]) -> Answers:
    """What the measured commits said; the step that confirms the culprit says nothing of others."""
    said: dict[str, set[str]] = {name: set() for name in BisectAnswer.values}
    for step in steps:
        if step.answer and step.kind != BisectStepKind.CONFIRM:
            said[step.answer].add(step.commit.sha)
    return Answers(
        good=frozenset(said[BisectAnswer.GOOD]),
        bad=frozenset(said[BisectAnswer.BAD]),
        silent=frozenset(said[BisectAnswer.SKIPPED] | said[BisectAnswer.UNSURE]),
    )


def _history(bisect: Bisect, top: int) -> Iterator[Node]:
    """Commits from `top` down, page by page: whoever reads may stop at any."""
    rows = Commit.objects.filter(repository_id=bisect.repository_id).order_by("-position")
    found = rows.values_list("position", "sha", "parents")
    while page := list(found.filter(position__lte=top)[:HISTORY_CHUNK]):
        for _, sha, parents in page:
            yield Node(sha=sha, parents=tuple(parents))
        top = page[-1][0] - 1


def _resolve(bisect: Bisect) -> bool:
    """Look both commits up, then have them compared."""
    refs = (bisect.good_ref, bisect.bad_ref)
    found = comparisons.commits_of(bisect.repository, refs, bisect.created_at)
    if found is None:
        return False
    bisect.good, bisect.bad = found
    range_of(bisect)
    bisect.state = BisectState.MEASURING
    bisect.save(update_fields=["good", "bad", "state"])
    _start(bisect, BisectStepKind.ENDS, bisect.bad, bisect.margin)
    return True


def _look(bisect: Bisect) -> bool:
    """Take the answer of the newest step once its comparison has ended."""
    step = bisect.steps.select_related("comparison", "commit").order_by("-number").first()
    if step is None:
        raise StuckError("The bisect has no step", "start it again")
    if not step.comparison.is_terminal:
        return False
    _TAKE[BisectStepKind(step.kind)](bisect, step)
    return True


def _take_ends(bisect: Bisect, step: BisectStep) -> None:
    """The change between both ends: half of it parts good from bad commits."""
    verdict = _verdict(step.comparison)
    if verdict.state == "not comparable":
        raise StuckError(verdict.sentence, "choose two ends that can be compared")
    if verdict.state not in {"slower", "faster"} or verdict.effect is None:
        _answer(step, BisectAnswer.UNSURE, verdict.sentence)
        return _end(bisect, BisectOutcome.ALIKE, verdict.sentence)
    bisect.looked_for, bisect.effect = verdict.state, verdict.effect
    half = abs(verdict.effect) / 2
    bisect.threshold = min(LARGEST_THRESHOLD, max(bisect.margin, half))
    bisect.save(update_fields=["looked_for", "effect", "threshold"])
    _answer(step, BisectAnswer.BAD, verdict.sentence)
    _go_on(bisect)


def _take_probe(bisect: Bisect, step: BisectStep) -> None:
    """Good, bad, or no answer; whatever it is, another commit may say more."""
    comparison = step.comparison
    if comparison.state == ComparisonState.FAILED and _is_of_commit(comparison):
        _answer(step, BisectAnswer.SKIPPED, comparison.message)
    else:
        verdict = _verdict(comparison)
        _answer(step, _meaning(bisect, verdict), verdict.sentence)
    _go_on(bisect)


def _meaning(bisect: Bisect, verdict: Verdict) -> BisectAnswer:
    if verdict.state == "inconclusive":
        return BisectAnswer.UNSURE
    if verdict.state == "not comparable":
        return BisectAnswer.SKIPPED
    return BisectAnswer.BAD if verdict.state == bisect.looked_for else BisectAnswer.GOOD


def _take_culprit(bisect: Bisect, step: BisectStep) -> None:
    """Whether the culprit against its own parent shows the change too."""
    comparison = step.comparison
    if comparison.state == ComparisonState.FAILED and comparison.failure_kind in UNBUILT:
        _answer(step, BisectAnswer.SKIPPED, comparison.message)
        return _end(bisect, BisectOutcome.UNCONFIRMED, comparison.message)
    verdict = _verdict(comparison)
    said = _meaning(bisect, verdict)
    _answer(step, said, verdict.sentence)
    confirmed = said == BisectAnswer.BAD
    outcome = BisectOutcome.CONFIRMED if confirmed else BisectOutcome.UNCONFIRMED
    _end(bisect, outcome, verdict.sentence)


_TAKE: dict[BisectStepKind, Callable[[Bisect, BisectStep], None]] = {
    BisectStepKind.ENDS: _take_ends,
    BisectStepKind.PROBE: _take_probe,
    BisectStepKind.CONFIRM: _take_culprit,
}
"""What is done with the step of each kind once its comparison has ended."""


def _is_of_commit(comparison: Comparison) -> bool:
    """Whether it failed by the commit that was tried; the good one worked before."""
    return comparison.failure_kind in UNBUILT and not comparison.message.startswith("The baseline")


def _verdict(comparison: Comparison) -> Verdict:
    """The verdict of an ended comparison; raises `StuckError` when it has none."""
    if comparison.state == ComparisonState.CANCELLED:
        raise StuckError(
            f"Comparison {comparison.pk} was cancelled", "start the bisect again to go on"
        )
    if comparison.state == ComparisonState.FAILED:
        raise StuckError(
            f"Comparison {comparison.pk} failed: {comparison.message}", comparison.hint
        )
    compared: ComparedWorkload = comparison.workloads.select_related("comparison").get()
    verdict = verdict_of(compared, compared.metric)
    if verdict.reason == "no baseline":
        raise StuckError(verdict.sentence, "see the log of its session, then start it again")
    return verdict


def _go_on(bisect: Bisect) -> None:
    """The next probe, or what is left when none would narrow it further."""
    found = range_of(bisect)
    answers = answers_of(list(bisect.steps.select_related("commit")))
    probe = next_probe(found, answers)
    if probe is not None:
        assert bisect.threshold is not None
        return _start(bisect, BisectStepKind.PROBE, _commit(bisect, probe), bisect.threshold)
    left = suspects(found, answers)
    if len(left) > 1:
        return _end(bisect, BisectOutcome.SEVERAL, "")
    bisect.culprit = _commit(bisect, left[0])
    bisect.save(update_fields=["culprit"])
    _start(bisect, BisectStepKind.CONFIRM, bisect.culprit, bisect.margin, parent_of(found, left[0]))


def _commit(bisect: Bisect, sha: str) -> Commit:
    return Commit.objects.get(repository_id=bisect.repository_id, sha=sha)


def _start(
    bisect: Bisect, kind: BisectStepKind, commit: Commit, margin: float, against: str = ""
) -> None:
    """One more step: `commit` is compared with the good one, or with `against`."""
    assert bisect.good is not None
    number = bisect.steps.count()
    made = comparisons.create_comparison(
        comparisons.NewComparison(
            repository=bisect.repository,
            baseline=against or bisect.good.sha,
            candidate=commit.sha,
            platform=bisect.platform,
            specs=(msgspec.convert(bisect.spec, RunSpec),),
            settings=Settings(margin=margin, rungs=tuple(bisect.rungs)),
            seed=bisect.seed + number,
        ),
        bisect.created_by,
    )
    BisectStep.objects.create(
        bisect=bisect, number=number, kind=kind, commit=commit, comparison=made
    )


def _answer(step: BisectStep, answer: BisectAnswer, reason: str) -> None:
    step.answer, step.reason = answer, printable(reason, 500)
    step.save(update_fields=["answer", "reason"])


def _end(bisect: Bisect, outcome: BisectOutcome, message: str) -> None:
    bisect.state, bisect.outcome, bisect.ended_at = BisectState.ENDED, outcome, db_now()
    bisect.message = printable(message, 1000)
    bisect.save(update_fields=["state", "outcome", "ended_at", "message"])


def _fail(bisect: Bisect, error: UserError) -> None:
    """What went wrong; the commits that were looked up before stay."""
    fresh = Bisect.objects.get(pk=bisect.pk)
    fresh.state, fresh.ended_at = BisectState.FAILED, db_now()
    fresh.failure_kind = error.kind[:20]
    fresh.message, fresh.hint = printable(error.message, 1000), printable(error.hint, 500)
    fresh.save(update_fields=["state", "ended_at", "failure_kind", "message", "hint"])
