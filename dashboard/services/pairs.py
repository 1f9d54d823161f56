"""What a session does to the rows: its plan, its launches, and what its end leads to.

A worker's side of comparisons; people's verbs are in `comparisons`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec
from django.conf import settings
from django.db import transaction

from dashboard.models import (
    Artifact,
    ComparedState,
    ComparedWorkload,
    Comparison,
    ComparisonState,
    FailureKind,
    Launch,
    Pair,
    Run,
    RunState,
    Side,
    Trace,
)
from dashboard.services import artifacts, events, results
from dashboard.services.clock import db_now
from dashboard.services.contract import (
    Launched,
    PlannedPair,
    Rung,
    Session,
    StoredFile,
    SupersededError,
)
from dashboard.services.sources import source_of
from profiler import spec as specs
from profiler.analysis.decide import decide
from profiler.analysis.ladder import Settings, orders
from profiler.analysis.verdict import Pair as Measured
from profiler.analysis.verdict import Verdict
from profiler.errors import UserError, printable
from profiler.metrics import METRICS
from profiler.types import RunSpec

PROFILED_STEPS = 10
"""Steps of the profiled launch of each side: repeats for the operator table."""

TRACE_FILE = "trace.json.gz"


def timed_spec(compared: ComparedWorkload) -> RunSpec:
    """What every launch of a pair runs: no profiler and no operators alone, for half the time."""
    spec = msgspec.convert(compared.spec, RunSpec)
    return dataclasses.replace(spec, profiled_steps=0, micro=0)


def queue_session(compared: ComparedWorkload, at: datetime) -> Run:
    """Queue a session for the pairs that are wanted and not measured yet."""
    comparison = compared.comparison
    spec = timed_spec(compared)
    run = Run.objects.create(
        workload=compared.workload,
        platform=comparison.platform,
        compared=compared,
        spec=dataclasses.asdict(spec),
        spec_hash=specs.spec_hash(spec),
        limit_s=settings.RUN_LIMIT_S,
        not_before=at,
        expires_at=at + timedelta(seconds=settings.QUEUE_TTL_S),
        created_by=comparison.created_by,
        created_at=at,
    )
    compared.state = ComparedState.MEASURING
    compared.save(update_fields=["state"])
    events.record(run, "queued", at, f"pairs of comparison {comparison.pk}")
    events.ring_for_run(run, at)
    return run


def longest_s(run: Run) -> float:
    """Seconds a session may take beyond one launch: builds, and every other launch at its limit."""
    if run.compared is None:
        return 0.0
    launches = 2 * _most(run.compared) + 2
    return 2 * run.compared.comparison.repository.build_limit_s + launches * run.limit_s


def plan(run: Run) -> Session | None:
    """What a session that is claimed has to measure; None for a run that is no session.

    A pair that a lost worker began is begun again: its launches must follow each other.
    """
    compared = run.compared
    if compared is None:
        return None
    comparison = compared.comparison
    if comparison.baseline is None or comparison.candidate is None:
        raise ValueError(f"{comparison} has no commits")
    done = _forget_half_pairs(compared)
    return Session(
        baseline=source_of(comparison.baseline),
        candidate=source_of(comparison.candidate),
        pairs=_todo(compared, done),
        done=len(done),
        total=compared.pairs_wanted,
        most=_most(compared),
        profiled_steps=PROFILED_STEPS if compared.difference_id is None else 0,
    )


def _most(compared: ComparedWorkload) -> int:
    """The pairs of the whole ladder."""
    return max(compared.pairs_wanted, *settings_of(compared.comparison).rungs)


def _todo(compared: ComparedWorkload, done: set[int]) -> tuple[PlannedPair, ...]:
    planned = enumerate(orders(compared.comparison.seed, compared.pairs_wanted))
    return tuple(PlannedPair(number=n, order=order) for n, order in planned if n not in done)


def _forget_half_pairs(compared: ComparedWorkload) -> set[int]:
    """Delete pairs with one launch; the numbers of the pairs that stay."""
    for pair in compared.pairs.prefetch_related("launches"):
        if len(pair.launches.all()) < 2:
            pair.delete()
    return _numbers(compared)


def _numbers(compared: ComparedWorkload) -> set[int]:
    return set(compared.pairs.values_list("number", flat=True))


def climb(run_id: int, fence: int) -> Rung:
    """What a session that has measured its pairs goes on with, while it keeps the device.

    Where the verdict is open and the ladder has a rung left, that rung is due from now on.
    Asked again, it answers the same. Raises `SupersededError` when the session is not ours.
    """
    with transaction.atomic():
        compared = _compared(run_id, fence)
        verdict = verdict_of(compared, compared.metric)
        attempted = verdict.counts.attempted
        due = settings_of(compared.comparison).next_rung(attempted)
        is_open = verdict.state == "inconclusive" and attempted >= compared.pairs_wanted
        if is_open and due is not None:
            compared.pairs_wanted = due
            compared.save(update_fields=["pairs_wanted"])
        return Rung(pairs=_todo(compared, _numbers(compared)), total=compared.pairs_wanted)


def store_launch(run_id: int, fence: int, launched: Launched) -> None:
    """Store one launch of a running session, once however often it is told.

    Raises `SupersededError` when the session is not ours.
    """
    run = _session(run_id, fence)
    launched, values, environment = _read(run, launched)
    files = artifacts.keep_all((file.name, file.path) for file in launched.files)
    with transaction.atomic():
        compared = _compared(run_id, fence)
        if launched.pair is None:
            _store_trace(compared, launched, files)
            return
        pair, _ = Pair.objects.get_or_create(
            compared=compared,
            number=launched.pair.number,
            defaults={"order": launched.pair.order},
        )
        Launch.objects.update_or_create(
            pair=pair,
            side=launched.side,
            defaults={
                "fence": fence,
                "values": values,
                "comparable_hash": environment[0],
                "result": files.get("result.json"),
                "failure_kind": launched.failure_kind[:20],
                "message": printable(launched.message, 1000),
                "took_ns": launched.took_ns,
                "ended_at": db_now(),
            },
        )
        _know_environment(compared, *environment)


def _session(run_id: int, fence: int) -> Run:
    related = ("compared__comparison", "workload")
    run = (
        Run.objects.select_related(*related)
        .filter(pk=run_id, fence=fence, state=RunState.RUNNING, compared__isnull=False)
        .first()
    )
    if run is None:
        raise SupersededError(f"session {run_id} fence {fence}")
    return run


def _compared(run_id: int, fence: int) -> ComparedWorkload:
    """The workload of a running session, locked; raises `SupersededError` when it is not ours."""
    related = ("comparison", "baseline_trace", "candidate_trace")
    rows = ComparedWorkload.objects.select_for_update(of=("self",)).select_related(*related)
    found = rows.get(sessions=_session(run_id, fence))
    _session(run_id, fence)
    return found


_Environment = tuple[str, dict[str, str]]


def _read(run: Run, launched: Launched) -> tuple[Launched, dict[str, float], _Environment]:
    """The launch with its medians and its environment; a result that cannot be is a failure."""
    if launched.failure_kind or launched.pair is None:
        return launched, {}, ("", {})
    try:
        parsed = results.parse(launched.files, run.spec_hash)
    except UserError as error:
        failed = dataclasses.replace(
            launched, failure_kind=FailureKind.INVALID_RESULT, message=error.message, files=()
        )
        return failed, {}, ("", {})
    values = {metric.name: metric.value for metric in parsed.result.metrics}
    return launched, values, (parsed.environment.comparable_hash, parsed.environment.fields)


def _know_environment(compared: ComparedWorkload, mark: str, fields: dict[str, str]) -> None:
    if mark and mark not in compared.environments:
        compared.environments[mark] = fields
        compared.save(update_fields=["environments"])


def _store_trace(
    compared: ComparedWorkload, launched: Launched, files: Mapping[str, Artifact]
) -> None:
    """The trace of a profiled launch is read like one that was uploaded.

    It takes the place of one that an earlier session left: the two that are compared are
    recorded one right after the other.
    """
    raw = files.get(TRACE_FILE)
    field = "baseline_trace" if launched.side == Side.BASELINE else "candidate_trace"
    earlier: Trace | None = getattr(compared, field)
    if raw is None or (earlier is not None and earlier.raw_id == raw.pk):
        return
    now = db_now()
    name = f"comparison-{compared.comparison_id}-{launched.side}-{compared.position}.json.gz"
    trace = Trace.objects.create(name=name, raw=raw, created_at=now)
    events.ring_for_trace(trace, now)
    setattr(compared, field, trace)
    compared.save(update_fields=[field])
    if earlier is not None:
        earlier.delete()


def store_difference(run_id: int, fence: int, file: StoredFile) -> None:
    """Keep what the profiled launches of a session differ in."""
    compared = _session(run_id, fence).compared
    assert compared is not None
    artifact = artifacts.keep(file.path)
    ComparedWorkload.objects.filter(pk=compared.pk).update(difference=artifact)


def settle(run: Run, now: datetime) -> None:
    """A run has ended: when it was a session, its workload is settled or its failure told.

    Called in the transaction that ends the run.
    """
    if run.compared_id is None:
        return
    run = Run.objects.get(pk=run.pk)
    compared = ComparedWorkload.objects.select_related("comparison").get(sessions=run)
    if run.state == RunState.SUCCEEDED:
        write_verdict(compared, verdict_of(compared, compared.metric))
        compared.state = ComparedState.SETTLED
        compared.save(update_fields=["state"])
    elif run.state == RunState.CANCELLED:
        _stop(compared, ComparedState.CANCELLED, run)
    else:
        _stop(compared, ComparedState.FAILED, run)
    close(compared.comparison, now)


def _stop(compared: ComparedWorkload, state: ComparedState, run: Run) -> None:
    compared.state = state
    compared.failure_kind = run.failure_kind
    compared.message = run.failure_message
    compared.hint = run.failure_hint
    compared.save(update_fields=["state", "failure_kind", "message", "hint"])


def close(comparison: Comparison, now: datetime) -> None:
    """End a comparison none of whose workloads is being measured any more."""
    states = set(comparison.workloads.values_list("state", flat=True))
    if states & {ComparedState.WAITING, ComparedState.MEASURING}:
        return
    if ComparedState.SETTLED in states:
        state, told = ComparisonState.ENDED, None
    elif ComparedState.FAILED in states:
        told = comparison.workloads.filter(state=ComparedState.FAILED).first()
        state = ComparisonState.FAILED
    else:
        state, told = ComparisonState.CANCELLED, None
    Comparison.objects.filter(pk=comparison.pk).update(
        state=state,
        ended_at=now,
        failure_kind=told.failure_kind if told else "",
        message=told.message if told else "",
        hint=told.hint if told else "",
    )


def settings_of(comparison: Comparison) -> Settings:
    """The margin and the ladder of a comparison."""
    return Settings(margin=comparison.margin, rungs=tuple(comparison.rungs))


def measured_pairs(pairs: Sequence[Pair], metric: str) -> list[Measured]:
    """The pairs as the statistics want them; their launches must be loaded."""
    return [_measured(pair, metric) for pair in sorted(pairs, key=lambda pair: pair.number)]


def _measured(pair: Pair, metric: str) -> Measured:
    values = {launch.side: launch.values.get(metric) for launch in pair.launches.all()}
    return Measured(
        baseline=values.get(Side.BASELINE),
        candidate=values.get(Side.CANDIDATE),
        order="AB" if pair.order == "AB" else "BA",
    )


def verdict_of(
    compared: ComparedWorkload, metric: str, pairs: Sequence[Pair] | None = None
) -> Verdict:
    """The verdict on one metric from every pair that is stored."""
    if pairs is None:
        pairs = list(compared.pairs.prefetch_related("launches"))
    return decide(
        measured_pairs(pairs, metric),
        METRICS[metric],
        settings_of(compared.comparison),
        obstacles=obstacles(compared, pairs),
    )


def obstacles(compared: ComparedWorkload, pairs: Sequence[Pair]) -> list[str]:
    """What forbids a comparison: environments that differ in what changes numbers."""
    marks = sorted(
        {
            launch.comparable_hash
            for pair in pairs
            for launch in pair.launches.all()
            if launch.comparable_hash
        }
    )
    if len(marks) < 2:
        return []
    known: Mapping[str, Mapping[str, str]] = compared.environments
    names = differing(known.get(marks[0], {}), known.get(marks[1], {}))
    shown = ", ".join(printable(name, 40) for name in names[:5]) or "their marks"
    return [f"the environments of the launches differ in {shown}"]


def differing(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Names of the recorded facts that are not the same in both."""
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def write_verdict(compared: ComparedWorkload, verdict: Verdict) -> None:
    """Keep the verdict on the headline metric with its figures, for lists."""
    compared.verdict = verdict.state
    compared.sentence = verdict.sentence[:1000]
    compared.effect, compared.low, compared.high = verdict.effect, verdict.low, verdict.high
    compared.save(update_fields=["verdict", "sentence", "effect", "low", "high"])
