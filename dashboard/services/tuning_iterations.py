"""Verbs on iterations: add an idea, measure it, attach a comparison, decide.

A comparison an iteration starts holds its candidate against the kept commit
below it, so that effects chain. Decisions are terminal.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from django.db import transaction
from django.db.models import Max

from dashboard.models import (
    Change,
    Commit,
    Comparison,
    ComparisonState,
    Iteration,
    IterationState,
    Trace,
    Tuning,
    User,
)
from dashboard.models.tuning import DECIDED, FASTER
from dashboard.services import audit, changes, repositories
from dashboard.services.clock import db_now
from dashboard.services.comparisons import NewComparison, create_comparison, specs_for
from dashboard.services.templates import runs_of
from dashboard.services.tuning_ground import Ground, ground_of
from dashboard.services.tuning_measured import Measured, concerns, measured_of
from dashboard.services.tuning_rows import REASON_CHARS, TuningError
from profiler.errors import printable
from profiler.types import RunSpec

HYPOTHESIS_CHARS = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRef:
    """The finding an iteration acts on, as its trace told it.

    `gain_ns` is what a step would save, `share` that of the step.
    """

    kind: str
    subject: str
    title: str
    trace: Trace | None = None
    gain_ns: int | None = None
    share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewIteration:
    """What is to be tried; `predicted_effect` is a relative change of the tuning's metric."""

    hypothesis: str
    finding: FindingRef | None = None
    predicted_effect: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Keep or revert. `despite` says why something that is not verified is kept.

    `commit` names what is kept where no comparison says it.
    """

    keep: bool
    reason: str
    despite: str = ""
    commit: str = ""


def add_iteration(
    tuning: Tuning, wanted: NewIteration, user: User | None, change: Change | None = None
) -> Iteration:
    """The next iteration of an open tuning, an idea until it is measured.

    With `change`, a step back that came after the ladder's last kept commit,
    it is held against the commit of that change and the ladder shows the loss.
    Raises `TuningError` for a closed tuning or an empty hypothesis.
    """
    if not wanted.hypothesis.strip():
        raise TuningError("An iteration says what it tries", "write the hypothesis in a sentence")
    with transaction.atomic():
        tuning = _open(tuning.pk)
        _check_new(tuning, wanted)
        last = tuning.iterations.aggregate(last=Max("number"))["last"] or 0
        ground = ground_of(tuning, change)
        made = Iteration.objects.create(
            tuning=tuning,
            number=last + 1,
            hypothesis=wanted.hypothesis.strip()[:HYPOTHESIS_CHARS],
            predicted_effect=wanted.predicted_effect,
            change=change,
            setback=ground.setback,
            stands_on=ground.stands_on,
            baseline=ground.baseline,
            created_by=user,
            created_at=db_now(),
            **_told(wanted.finding),
        )
        audit.note(user, "iteration.add", _name(made))
    return made


def _check_new(tuning: Tuning, wanted: NewIteration) -> None:
    """A form that is sent twice makes one iteration."""
    same = tuning.iterations.exclude(state__in=DECIDED)
    found = same.filter(hypothesis=wanted.hypothesis.strip()[:HYPOTHESIS_CHARS]).first()
    if found is not None:
        raise TuningError(
            f"{_title(found)} tries the same and is undecided", "go on there, or say what differs"
        )


def finding_key(kind: str, subject: str) -> tuple[str, str]:
    """What makes a finding the same in another trace, as iterations keep it."""
    return _stored(kind, 40), _stored(subject, 500)


def _stored(text: str, limit: int) -> str:
    """Foreign text as a database keeps it: PostgreSQL has no place for NUL."""
    return text.replace("\0", "")[:limit]


def _told(finding: FindingRef | None) -> dict[str, object]:
    if finding is None:
        return {}
    kind, subject = finding_key(finding.kind, finding.subject)
    return {
        "finding_kind": kind,
        "finding_subject": subject,
        "finding_title": _stored(finding.title, 500),
        "trace": finding.trace,
        "predicted_ns": finding.gain_ns,
    }


def measure_iteration(iteration_id: int, candidate: str, user: User | None) -> Comparison:
    """Start the paired comparison of `candidate` against what the iteration stands on now.

    An earlier comparison of the iteration is replaced once it has ended.
    Raises `TuningError` while one is being measured or after the decision,
    and what `create_comparison` raises.
    """
    with transaction.atomic():
        iteration = _undecided(iteration_id)
        if iteration.comparison is not None and not iteration.comparison.is_terminal:
            raise TuningError(
                f"{_title(iteration)} is being measured by comparison {iteration.comparison_id}",
                "wait for it, or cancel it first",
            )
        ground = ground_of(iteration.tuning, iteration.change)
        tuning = iteration.tuning
        made = create_comparison(
            NewComparison(
                repository=tuning.repository,
                baseline=ground.baseline.sha,
                candidate=candidate,
                platform=tuning.platform,
                specs=compared_specs(tuning),
                version=tuning.version,
            ),
            user,
        )
        _stand(iteration, ground, made)
        audit.note(user, "iteration.measure", _name(iteration), {"comparison": made.pk})
    return made


def compared_specs(tuning: Tuning) -> tuple[RunSpec, ...]:
    """The leading workload first, then those the template has of the same model on one device."""
    lead = msgspec.convert(tuning.spec, RunSpec)
    if tuning.version is None:
        return (lead,)
    others = [
        spec for spec in runs_of(tuning.version, device=lead.device) if spec.ranks == lead.ranks
    ]
    known = specs_for(tuning.repository, others)
    return (lead, *(spec for spec in known if spec.model == lead.model))


def attach_comparison(iteration_id: int, comparison_id: int, user: User | None) -> Iteration:
    """Let a comparison that exists speak for an iteration.

    Raises `TuningError` when it measures something else, holds against another
    commit, ended without pairs, or speaks for another iteration already.
    """
    with transaction.atomic():
        iteration = _undecided(iteration_id)
        ground = ground_of(iteration.tuning, iteration.change)
        comparison = Comparison.objects.select_related("baseline").filter(pk=comparison_id).first()
        if comparison is None:
            raise TuningError(f"There is no comparison {comparison_id}", "see the page Compare")
        why = _unfit(iteration, comparison, ground.baseline)
        if why:
            raise TuningError(
                f"Comparison {comparison_id} {why}", "attach another one, or measure the iteration"
            )
        _stand(iteration, ground, comparison)
        audit.note(user, "iteration.attach", _name(iteration), {"comparison": comparison_id})
    return iteration


def _unfit(iteration: Iteration, comparison: Comparison, baseline: Commit) -> str:
    """Why the comparison says nothing of the iteration; empty when it does."""
    tuning = iteration.tuning
    if comparison.repository_id != tuning.repository_id:
        return f"is of another repository than {tuning.repository.slug}"
    if comparison.platform_id != tuning.platform_id:
        return f"was measured on another platform than {tuning.platform.slug}"
    if not comparison.workloads.filter(workload=tuning.workload_id).exists():
        return f"does not measure {tuning.workload}"
    if comparison.state in {ComparisonState.FAILED, ComparisonState.CANCELLED}:
        return "ended without a verdict"
    if comparison.baseline is None:
        return "has not looked up its commits yet"
    if comparison.baseline_id != baseline.pk:
        return (
            f"has the baseline {comparison.baseline.sha[:10]}, "
            f"the ladder stands on {baseline.sha[:10]}"
        )
    taken = tuning.iterations.filter(comparison=comparison).exclude(pk=iteration.pk).first()
    return f"speaks for iteration {taken.number} already" if taken else ""


def _stand(iteration: Iteration, ground: Ground, comparison: Comparison) -> None:
    iteration.comparison = comparison
    iteration.candidate_ref = comparison.candidate_ref
    iteration.baseline, iteration.stands_on = ground.baseline, ground.stands_on
    iteration.setback = ground.setback
    iteration.state = IterationState.MEASURING
    iteration.save(
        update_fields=[
            "comparison",
            "candidate_ref",
            "baseline",
            "stands_on",
            "setback",
            "state",
        ]
    )


def decide_iteration(iteration_id: int, decision: Decision, user: User | None) -> Iteration:
    """Keep or revert, for good; a change that a kept iteration mends is marked fixed.

    Raises `TuningError` without a reason, while it is being measured, twice,
    when another iteration was kept since it was measured, and when something
    unverified is kept without `despite`; `UnknownCommitError` for a `commit`
    that is not known.
    """
    if not decision.reason.strip():
        raise TuningError("A decision needs its reason", "say in a sentence why")
    with transaction.atomic():
        iteration = _undecided(iteration_id)
        if iteration.comparison is not None and not iteration.comparison.is_terminal:
            raise TuningError(
                f"{_title(iteration)} is still being measured",
                f"wait for comparison {iteration.comparison_id}, or cancel it first",
            )
        measured = measured_of(iteration)
        _copy(iteration, measured)
        if decision.keep:
            _keep(iteration, measured, decision)
        else:
            iteration.state = IterationState.REVERTED
        iteration.reason = decision.reason.strip()[:REASON_CHARS]
        iteration.decided_by, iteration.decided_at = user, db_now()
        iteration.save()
        deed = "keep" if decision.keep else "revert"
        audit.note(user, f"iteration.{deed}", _name(iteration), {"verdict": measured.state})
        _mend(iteration, user)
    return iteration


def _copy(iteration: Iteration, measured: Measured) -> None:
    """The verdict as it is now: pairs measured later do not change the ladder."""
    if iteration.comparison is not None:
        iteration.commit = iteration.comparison.candidate
    if measured.verdict is None:
        return
    found = measured.verdict
    iteration.verdict, iteration.effect = found.state, found.effect
    iteration.low, iteration.high = found.low, found.high
    iteration.pairs = found.counts.used


def _keep(iteration: Iteration, measured: Measured, decision: Decision) -> None:
    _check_ground(iteration)
    if iteration.commit is None:
        iteration.commit = _named_commit(iteration, decision.commit)
    against = concerns(iteration, measured)
    if against and not decision.despite.strip():
        raise TuningError(
            f"{_title(iteration)} {'; '.join(against)}",
            "to keep it all the same, say in a sentence why",
        )
    iteration.state = IterationState.KEPT
    iteration.despite = decision.despite.strip()[:REASON_CHARS] if against else ""


def _named_commit(iteration: Iteration, text: str) -> Commit:
    if not text.strip():
        raise TuningError(
            f"{_title(iteration)} names no commit", "measure it, or name the commit that is kept"
        )
    return repositories.resolve(iteration.tuning.repository, text.strip())


def _check_ground(iteration: Iteration) -> None:
    """Effects chain only when each was measured against the one below it."""
    ground = ground_of(iteration.tuning, iteration.change)
    top = ground.stands_on
    if (top.pk if top else None) == iteration.stands_on_id:
        return
    kept = f"iteration {top.number} ({ground.baseline.sha[:10]})" if top else "Day-0"
    raise TuningError(
        f"{_title(iteration)} was held against {iteration.baseline.sha[:10]}, "
        f"but {kept} was kept since",
        "measure it again: the new comparison starts from what is kept now",
    )


def _mend(iteration: Iteration, user: User | None) -> None:
    """A kept, faster iteration that was opened from a change has fixed it."""

    change, commit = iteration.change, iteration.commit
    kept = iteration.state == IterationState.KEPT and iteration.verdict == FASTER
    # One that was rejected, or that later measurements closed already, stays as it is.
    if change is not None and commit is not None and kept and change.state in changes.STANDING:
        changes.mark_fixed(change.pk, commit=commit, user=user)


def _open(tuning_id: int) -> Tuning:
    tuning = Tuning.objects.select_for_update().get(pk=tuning_id)
    if not tuning.is_open:
        raise TuningError(f"Tuning {tuning_id} has ended", "open a new one to go on")
    return tuning


def _undecided(iteration_id: int) -> Iteration:
    """The iteration, its tuning locked; raises `TuningError` once it is decided."""
    tuning_id = Iteration.objects.values_list("tuning_id", flat=True).get(pk=iteration_id)
    tuning = _open(tuning_id)
    related = ("comparison__candidate", "baseline", "change__after_commit", "commit")
    iteration = Iteration.objects.select_related(*related).get(pk=iteration_id)
    iteration.tuning = tuning
    if iteration.state in DECIDED:
        raise TuningError(
            f"{_title(iteration)} was {iteration.state} already",
            "a decision stays; a new iteration corrects it",
        )
    return iteration


def _title(iteration: Iteration) -> str:
    return f"Iteration {iteration.number}"


def _name(iteration: Iteration) -> str:
    return printable(f"iteration {iteration.number} of tuning {iteration.tuning_id}", 200)
