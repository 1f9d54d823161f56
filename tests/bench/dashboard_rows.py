"""Rows for measuring pages: runs with samples, traces and operators in the numbers asked for.

Runs come in the order in which they would have been made: every workload at a commit, then
the next commit. One model has many more runs than the others, as its page is the slowest.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Model as Rows

from dashboard.models import (
    Artifact,
    Commit,
    ComparedState,
    ComparedWorkload,
    Comparison,
    ComparisonState,
    MetricValue,
    Model,
    Operator,
    Platform,
    Repository,
    Result,
    Run,
    RunState,
    Trace,
    TraceState,
    Workload,
)
from dashboard.services import history
from profiler import spec as specs
from profiler.analysis.report import FindingRow, dump
from profiler.metrics import HEADLINE, METRICS
from profiler.types import SCENARIOS, RunSpec
from tests import factories

MODELS, PLATFORMS, BATCHES = 25, 2, (1, 8)
HEAVY_SHARE = 0.12
"""Part of all runs that the first model on the first platform has."""
SAMPLES, OPERATORS = 20, 100
COMPARISONS = 500
CHUNK = 5_000
START = datetime(2025, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Sizes:
    """How many rows there are to be."""

    runs: int
    operator_rows: int

    @property
    def traces(self) -> int:
        return self.operator_rows // OPERATORS


@dataclass(frozen=True)
class Track:
    """One history: its workload, where, how many runs, and how long a first run took."""

    workload: Workload
    platform: Platform
    spec: RunSpec
    runs: int
    first_ns: float


def fill(sizes: Sizes) -> None:
    """Every row, then the standings; the tables must be empty."""
    with transaction.atomic():
        tracks, commits = _catalogue(sizes)
        runs = list(_runs(tracks, commits))
        _insert(Run, runs)
        ran = zip(runs, _order(tracks), strict=True)
        measured = [(run, track) for run, track in ran if run.state == RunState.SUCCEEDED]
        _results(measured)
        _traces([run for run, _ in measured], sizes)
        _comparisons(tracks, commits)
    _operators()
    _analyse()
    with transaction.atomic():
        history.refresh_all()


def heavy() -> tuple[str, str]:
    """The model and platform with the most runs."""
    return "model-00", "platform-0"


def _catalogue(sizes: Sizes) -> tuple[list[Track], list[Commit]]:
    platforms = [
        Platform.objects.create(slug=f"platform-{n}", title="p", device="cpu", created_at=START)
        for n in range(PLATFORMS)
    ]
    tracks: list[Track] = []
    for number in range(MODELS):
        name = f"model-{number:02}"
        model = Model.objects.create(name=name, title=name, created_at=START)
        for scenario in SCENARIOS:
            for batch in BATCHES:
                spec = RunSpec(model=name, scenario=scenario, batch=batch)
                workload = _workload(model, spec)
                for platform in platforms:
                    tracks.append(Track(workload, platform, spec, 0, 5e6 + 1e5 * len(tracks)))
    counted = _counted(tracks, sizes.runs)
    repository = Repository.objects.create(
        slug="bench",
        address="https://example.org/bench.git",
        allowed_refs=["main"],
        import_paths=["."],
        build_limit_s=60.0,
        default_branch="main",
        created_at=START,
    )
    commits = [_commit(repository, n) for n in range(max(track.runs for track in counted))]
    _insert(Commit, commits)
    return counted, commits


def _workload(model: Model, spec: RunSpec) -> Workload:
    return Workload.objects.create(
        model=model,
        scenario=spec.scenario,
        hash=specs.workload_hash(spec),
        batch=spec.batch,
        prompt_tokens=spec.prompt_tokens,
        output_tokens=spec.output_tokens if spec.scenario == "decode" else None,
        dtype=spec.dtype,
        created_at=START,
    )


def _counted(tracks: Sequence[Track], runs: int) -> list[Track]:
    """The runs dealt out: the heavy model's share, the rest evenly, what remains to the first."""
    model, platform = heavy()
    loaded = [t for t in tracks if (t.spec.model, t.platform.slug) == (model, platform)]
    many = int(runs * HEAVY_SHARE) // len(loaded)
    few = (runs - many * len(loaded)) // (len(tracks) - len(loaded))
    over = runs - many * len(loaded) - few * (len(tracks) - len(loaded))
    counts = [many if track in loaded else few for track in tracks]
    counts[0] += over
    return [dataclasses.replace(t, runs=count) for t, count in zip(tracks, counts, strict=True)]


def _commit(repository: Repository, number: int) -> Commit:
    moment = START + timedelta(hours=number)
    return Commit(
        repository=repository,
        sha=hashlib.sha1(str(number).encode()).hexdigest(),
        position=number + 1,
        author="Ann Author",
        authored_at=moment,
        committed_at=moment,
        subject=f"Change {number} of the kernels",
    )


def _order(tracks: Sequence[Track]) -> Iterator[Track]:
    """Every history once per commit, as long as it has runs."""
    for number in range(max(track.runs for track in tracks)):
        yield from (track for track in tracks if number < track.runs)


def _runs(tracks: Sequence[Track], commits: Sequence[Commit]) -> Iterator[Run]:
    made: dict[int, int] = {}
    for number, track in enumerate(_order(tracks)):
        place = made.get(id(track), 0)
        made[id(track)] = place + 1
        failed = number % 50 == 49
        moment = commits[place].committed_at + timedelta(seconds=number % 3600)
        yield Run(
            workload=track.workload,
            platform=track.platform,
            commit=commits[place],
            spec=dataclasses.asdict(track.spec),
            spec_hash=track.workload.hash,
            state=RunState.FAILED if failed else RunState.SUCCEEDED,
            failure_kind="crashed" if failed else "",
            failure_message="It broke" if failed else "",
            attempt=1,
            fence=1,
            worker="bench:1",
            limit_s=3600.0,
            not_before=moment,
            expires_at=moment + timedelta(days=7),
            created_at=moment,
            started_at=moment,
            ended_at=moment + timedelta(minutes=2),
        )


def _results(measured: Sequence[tuple[Run, Track]]) -> None:
    environments = [_environment(mark) for mark in "ab"]
    results, values = [], []
    for number, (run, track) in enumerate(measured):
        assert run.commit is not None
        late = run.commit.position > track.runs // 2
        environment = environments[late]
        result = Result(
            run=run,
            attempt=1,
            fence=1,
            digest="c" * 64,
            document=_document(run, track),
            environment=environment,
            comparable_hash=environment["comparable_hash"],
            exact_hash="b" * 64,
            stored_at=run.created_at,
        )
        results.append(result)
        values.append(_value(result, track, number))
    _insert(Result, results)
    _insert(MetricValue, values)


def _environment(mark: str) -> dict[str, Any]:
    fields = {f"field{n}": f"value {n}" for n in range(40)} | {"torch": mark}
    return {
        "fields": fields,
        "missing": [],
        "comparable_hash": mark * 64,
        "exact_hash": "b" * 64,
        "schema": 1,
    }


def _document(run: Run, track: Track) -> dict[str, Any]:
    facts = {"name": track.spec.model, "architecture": "Llama", "parameters": 1}
    return {"spec": run.spec, "spec_hash": run.spec_hash, "model": facts, "metrics": []}


def _value(result: Result, track: Track, number: int) -> MetricValue:
    """A history that gets faster over time, with a noise of about 2 %."""
    assert result.run.commit is not None
    gained = 0.4 * result.run.commit.position / max(1, track.runs)
    value = track.first_ns * (1 - gained) * (1 + (number * 7919 % 401 - 200) / 10_000)
    samples = [round(value * (1 + (place * 37 % 21 - 10) / 500), 1) for place in range(SAMPLES)]
    name = HEADLINE[track.spec.scenario]
    definition = METRICS[name]
    return MetricValue(
        result=result,
        name=name,
        unit=definition.unit,
        direction=definition.direction,
        definition=definition.version,
        phase="timed",
        method="median of samples",
        value=value,
        n=SAMPLES,
        minimum=min(samples),
        maximum=max(samples),
        iqr=value * 0.02,
        cov=0.01,
        percentiles={"p50": value},
        samples=samples,
    )


def _traces(runs: Sequence[Run], sizes: Sizes) -> None:
    """Traces spread evenly over the runs, each with the same operators in different times."""
    stored = _report()
    every = max(1, len(runs) // max(1, sizes.traces))
    traces = [
        Trace(
            run=run,
            name="trace.json.gz",
            raw=stored,
            report=stored,
            flame=stored,
            state=TraceState.READY,
            attempt=1,
            fence=1,
            device_kind="cpu",
            events=1000,
            span_ns=5_000_000,
            steps=5,
            created_at=run.created_at,
            ended_at=run.ended_at,
        )
        for run in runs[::every][: sizes.traces]
    ]
    _insert(Trace, traces)


def _report() -> Artifact:
    """One small report stands for that of every trace."""
    finding = FindingRow(
        kind="host_wait",
        title="The device waits for the host",
        subject="aten::item",
        recoverable_ns_per_step=1_740_000,
        share=0.2,
        evidence={},
        advice="Move it.",
    )
    return factories.store_artifact(dump(factories.make_report(findings=[finding])))


def _operators() -> None:
    """One statement in the database: five million rows would take Python half an hour.

    The indexes are made anew behind it, which is quicker than keeping them while rows come.
    """
    indexes = list(Operator._meta.indexes)
    with connection.schema_editor() as editor:
        for index in indexes:
            editor.remove_index(Operator, index)
    names = ["(%s, %s)"] * OPERATORS
    parameters = [part for n in range(OPERATORS) for part in (f"aten::operator_{n:03}", n)]
    table, traces = Operator._meta.db_table, Trace._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} (trace_id, name, canonical, count, host_total_ns, host_self_ns,"
            " device_total_ns, device_self_ns)"
            f" WITH named(name, n) AS (VALUES {', '.join(names)})"
            " SELECT t.id, o.name, o.name, 10 + o.n, 2000000 / (1 + o.n) + t.id * 31 %% 9973,"
            " 1000000 / (1 + o.n) + t.id * 17 %% 4999, 0, 0"
            f" FROM {traces} t CROSS JOIN named o ORDER BY t.id",
            parameters,
        )
    with connection.schema_editor() as editor:
        for index in indexes:
            editor.add_index(Operator, index)


def _comparisons(tracks: Sequence[Track], commits: Sequence[Commit]) -> None:
    repository = commits[0].repository
    pairs = min(COMPARISONS, (len(commits) - 1) * len(tracks))
    for number in range(pairs):
        track, place = tracks[number % len(tracks)], number % (len(commits) - 1)
        made = Comparison.objects.create(
            repository=repository,
            baseline_ref="main~",
            candidate_ref="main",
            baseline=commits[place],
            candidate=commits[place + 1],
            platform=track.platform,
            seed=1,
            margin=0.02,
            rungs=[10, 20, 40],
            state=ComparisonState.ENDED,
            created_at=START,
            ended_at=START + timedelta(minutes=number),
        )
        ComparedWorkload.objects.create(
            comparison=made,
            position=0,
            workload=track.workload,
            spec=dataclasses.asdict(track.spec),
            metric=HEADLINE[track.spec.scenario],
            pairs_wanted=10,
            state=ComparedState.SETTLED,
            verdict=("faster", "slower", "no change")[number % 3],
            effect=-0.03,
        )


def _insert(kind: type[Rows], rows: Sequence[Rows]) -> None:
    for start in range(0, len(rows), CHUNK):
        kind._default_manager.bulk_create(rows[start : start + CHUNK], batch_size=500)


def _analyse() -> None:
    """What PostgreSQL does by itself after a while: statistics for its planner. SQLite does not."""
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
