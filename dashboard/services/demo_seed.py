"""The demo for newcomers: a model with a history, changes, a tuning and traces, all generated.

Rows, verdicts, detection and traces go through the same code as measurements;
only the numbers are made up, from a seed, and every name says so.
"""

from __future__ import annotations

import gzip
import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from django.db import transaction

from dashboard.models import (
    Announcement,
    Artifact,
    Change,
    ChangeState,
    Comparison,
    Iteration,
    IterationState,
    Model,
    Platform,
    Repository,
    Run,
    RunArtifact,
    TargetKind,
    Trace,
    TraceState,
    Tuning,
    User,
)
from dashboard.services import artifacts, history
from dashboard.services import demo_story as story
from dashboard.services.change_scan import scan_series
from dashboard.services.changes import confirm_change, settle_confirmations
from dashboard.services.clock import db_now
from dashboard.services.contract import StoredFile, TraceOutcome
from dashboard.services.demo_pairs import fill
from dashboard.services.demo_rows import (
    Stage,
    Wanted,
    keep_bytes,
    keep_log,
    make_runs,
    set_stage,
)
from dashboard.services.demo_trace import Extra, write_trace
from dashboard.services.difference import difference_between
from dashboard.services.traces import deliver_trace
from dashboard.services.tuning import (
    Decision,
    FindingRef,
    NewIteration,
    NewTuning,
    Target,
    add_iteration,
    decide_iteration,
    measure_iteration,
    open_tuning,
)
from profiler.analysis.changepoints import change_points, slow_leak
from profiler.errors import UserError
from profiler.types import Scenario

TRIES_OF_CHANCE = 50
NUMERICS = "Whether the answers are still right is not checked in this demo."


class DemoError(UserError):
    """The demo is there already, or is not."""

    kind = "demo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeded:
    """What was made."""

    runs: int
    commits: int
    changes: int
    kept: int
    reverted: int
    traces: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recorded:
    """One generated trace, read by the real ingest: where the file and the results lie."""

    path: Path
    results: Path

    def outcome(self) -> TraceOutcome:
        """As a worker would deliver it."""
        files = tuple(StoredFile(name=one.name, path=one) for one in self.results.iterdir())
        return TraceOutcome(state=TraceState.READY, files=files)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sides:
    """The profiled launches around a step, and the document of their difference."""

    step: story.Step
    before: _Recorded
    after: _Recorded
    difference: bytes


def is_seeded() -> bool:
    """Whether any row carries the demo's name."""
    return (
        Platform.objects.filter(slug=story.PLATFORM).exists()
        or Model.objects.filter(name=story.MODEL).exists()
        or Repository.objects.filter(slug=story.REPOSITORY).exists()
        or User.objects.filter(username=story.PERSON).exists()
    )


def seed_demo(seed: int) -> Seeded:
    """Make the demo; the same seed gives the same numbers. Raises `DemoError` when it is there."""
    if is_seeded():
        raise DemoError(
            "The demo data is there already", "remove it by `manage.py seed_demo --remove` first"
        )
    chance = random.Random(f"{story.MARK} {seed}")
    plan = _plan(seed)
    with tempfile.TemporaryDirectory() as folder:
        sides = [_sides(Path(folder), step) for step in (story.FASTER, story.SLOWER)]
        log = keep_log()
        with transaction.atomic():
            stage = set_stage(seed, log, db_now().replace(minute=0, second=0, microsecond=0))
            runs = make_runs(stage, plan, chance)
            _read_traces(runs, sides)
            _tell_changes(stage, runs, sides, chance)
            _tell_tuning(stage, runs, chance)
            for workload in {run.workload for run in runs}:
                history.refresh(workload, stage.platform)
            return _counted(stage)


def _plan(seed: int) -> list[Wanted]:
    """Every run in the order of time; of the first chances the one whose steps are found."""
    for place in range(TRIES_OF_CHANCE):
        chance = random.Random(f"{story.MARK} history {seed} {place}")
        plan = list(_wanted(chance))
        if _is_clear(plan):
            return plan
    raise AssertionError(f"no history of seed {seed} shows its steps")


def _wanted(chance: random.Random) -> Iterator[Wanted]:
    """A decode and a prefill run of each commit; training where the tuning stands."""
    tried = [one.commit for one in story.TRIES if one.keep]
    training = [story.DAY0_COMMIT] * 3 + tried + [story.COMMITS]
    for number in range(1, story.COMMITS + 1):
        scenarios: list[Scenario] = ["decode", "prefill"]
        scenarios += ["training"] * training.count(number)
        for scenario in scenarios:
            level = story.level_ns(scenario, number)
            launch = story.launch_ns(level, chance)
            yield Wanted(spec=story.spec_of(scenario), number=number, launch_ns=launch)


def _is_clear(plan: Sequence[Wanted]) -> bool:
    """Whether the detection sees the two steps of decode where they are, and nothing else."""
    found = []
    for scenario in ("decode", "prefill"):
        for stack in (False, True):
            part = [
                item
                for item in plan
                if item.spec.scenario == scenario and (item.number >= story.NEW_STACK_AT) == stack
            ]
            values = [item.launch_ns for item in part]
            steps = change_points(values, noise_floor=0.0)
            found += [(scenario, part[step.index].number) for step in steps]
            if slow_leak(values, direction="lower", steps=steps, noise_floor=0.0) is not None:
                return False
    return found == [("decode", story.FASTER.commit), ("decode", story.SLOWER.commit)]


def _sides(folder: Path, step: story.Step) -> _Sides:
    """Two traces read as a worker reads them; the slower one runs the operator of the step."""
    from profiler.analysis.ingest import ingest

    levels = [story.level_ns("decode", number) for number in (step.commit - 1, step.commit)]
    slower = max(levels)
    recorded = []
    for name, level in zip(("before", "after"), levels, strict=True):
        place = folder / f"{step.commit}-{name}"
        place.mkdir()
        share = 1 - min(levels) / slower
        extra = Extra(operator=step.operator, share=share) if level == slower else None
        path = write_trace(place / f"{story.MARK}-{step.commit}-{name}.json.gz", level, extra)
        ingest([path], place / "results")
        recorded.append(_Recorded(path=path, results=place / "results"))
    before, after = recorded
    document = msgspec.json.encode(difference_between(before.path, after.path))
    return _Sides(
        step=step, before=before, after=after, difference=gzip.compress(document, mtime=0)
    )


def _read_traces(runs: Sequence[Run], sides: Sequence[_Sides]) -> None:
    """The first and the newest decode run have traces."""
    decode = [run for run in runs if run.workload.scenario == "decode"]
    for run, recorded in ((decode[0], sides[0].before), (decode[-1], sides[1].after)):
        raw = artifacts.keep(recorded.path)
        RunArtifact.objects.create(run=run, attempt=1, name="trace.json.gz", artifact=raw)
        _deliver(recorded, raw, run.created_at, run)


def _deliver(recorded: _Recorded, raw: Artifact, at: datetime, run: Run | None = None) -> Trace:
    """A trace that was being read, and its results, by the way a worker takes."""
    trace = Trace.objects.create(
        run=run,
        name=recorded.path.name,
        raw=raw,
        state=TraceState.INGESTING,
        attempt=1,
        fence=1,
        lease_until=db_now(),
        created_at=at,
    )
    deliver_trace(trace.pk, 1, recorded.outcome())
    Trace.objects.filter(pk=trace.pk).update(ended_at=at)
    return trace


def _tell_changes(
    stage: Stage, runs: Sequence[Run], sides: Sequence[_Sides], chance: random.Random
) -> None:
    """What the detection finds in the decode history, confirmed by generated pairs."""
    workload = next(run.workload_id for run in runs if run.workload.scenario == "decode")
    found = scan_series(workload, stage.platform.pk)
    for change in sorted(found, key=lambda one: one.after_commit.position):
        of = next(one for one in sides if one.step.commit == change.after_commit.position)
        comparison = confirm_change(change.pk, stage.person).comparison
        assert comparison is not None, "a change that is being confirmed has its comparison"
        fill(stage, comparison, of.step.effect, chance)
        _profile(comparison, of)
    settle_confirmations(limit=len(found))
    for change in Change.objects.filter(platform=stage.platform).select_related("after_commit"):
        at = change.after_commit.committed_at + timedelta(hours=6)
        Change.objects.filter(pk=change.pk).update(found_at=at, state_at=at)
    # Nobody is told of changes that never happened.
    Announcement.objects.filter(change__platform=stage.platform).delete()


def _profile(comparison: Comparison, sides: _Sides) -> None:
    """The profiled launch of each side, and how they differ."""
    assert comparison.ended_at is not None, "its pairs were measured"
    compared = comparison.workloads.get()
    at = comparison.ended_at
    compared.baseline_trace = _deliver(sides.before, artifacts.keep(sides.before.path), at)
    compared.candidate_trace = _deliver(sides.after, artifacts.keep(sides.after.path), at)
    compared.difference = keep_bytes(sides.difference)
    compared.save(update_fields=["baseline_trace", "candidate_trace", "difference"])


def _tell_tuning(stage: Stage, runs: Sequence[Run], chance: random.Random) -> None:
    """A tuning of the training workload: every try measured by pairs and decided."""
    day0 = [run for run in runs if run.workload.scenario == "training"][:3]
    level = story.level_ns("training", story.DAY0_COMMIT)
    tuning = open_tuning(
        NewTuning(
            workload=day0[0].workload,
            platform=stage.platform,
            repository=stage.repository,
            target=Target(kind=TargetKind.VALUE, value=round(level * 0.6)),
            runs=tuple(run.pk for run in day0),
        ),
        stage.person,
    )
    began = stage.commit(story.DAY0_COMMIT).committed_at
    Tuning.objects.filter(pk=tuning.pk).update(created_at=began + timedelta(hours=8))
    for one in story.TRIES:
        _try(stage, tuning, one, chance)


def _try(stage: Stage, tuning: Tuning, one: story.Try, chance: random.Random) -> None:
    commit = stage.commit(one.commit)
    gain_ns = round(-one.predicted * story.level_ns("training", one.commit - 1))
    finding = FindingRef(
        kind=one.finding,
        subject=one.about,
        title=f"{one.about} (generated finding)",
        gain_ns=gain_ns,
        share=-one.predicted,
    )
    iteration = add_iteration(
        tuning,
        NewIteration(hypothesis=one.hypothesis, finding=finding, predicted_effect=one.predicted),
        stage.person,
    )
    fill(stage, measure_iteration(iteration.pk, commit.sha, stage.person), one.effect, chance)
    decision = Decision(keep=one.keep, reason=one.reason, despite=NUMERICS if one.keep else "")
    decide_iteration(iteration.pk, decision, stage.person)
    Iteration.objects.filter(pk=iteration.pk).update(
        created_at=commit.committed_at - timedelta(hours=4),
        decided_at=commit.committed_at + timedelta(hours=7),
    )


def _counted(stage: Stage) -> Seeded:
    states = list(
        Iteration.objects.filter(tuning__platform=stage.platform).values_list("state", flat=True)
    )
    confirmed = Change.objects.filter(platform=stage.platform, state=ChangeState.CONFIRMED)
    return Seeded(
        runs=Run.objects.filter(platform=stage.platform).count(),
        commits=len(stage.commits),
        changes=confirmed.count(),
        kept=states.count(IterationState.KEPT),
        reverted=states.count(IterationState.REVERTED),
        traces=Trace.objects.filter(name__startswith=story.MARK).count(),
    )
