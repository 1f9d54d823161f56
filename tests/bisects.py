"""Rows of bisects for tests, and a worker whose launches take what a test says."""

# ruff: noqa: ANN401 - the values of columns are of any type

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dashboard.models import (
    Bisect,
    BisectState,
    Commit,
    Launch,
    Pair,
    Repository,
    Run,
)
from dashboard.services import lifecycle, pairs
from dashboard.services.bisect import NewBisect, create_bisect
from dashboard.services.clock import db_now
from dashboard.services.comparisons import resolve_waiting
from dashboard.services.contract import Claim, Launched, Outcome, PlannedPair, Session, Source
from profiler.analysis.ladder import Settings
from profiler.metrics import HEADLINE
from profiler.types import Result, RunSpec
from tests.dashboard.services.scene import WORKER, metric, outcome_files, result
from tests.factories import make_artifact, make_platform, make_spec, make_workload
from tests.sources import make_commit, make_repository

SHORT = Settings(rungs=(10, 20))
"""A short ladder: what is open after it stays open."""


def make_bisect(**fields: Any) -> Bisect:
    """A bisect of three commits that is being measured, without a step."""
    repository = fields.pop("repository", None) or make_repository(slug="bisected")
    spec = make_spec()
    good = make_commit(repository, "good")
    make_commit(repository, "between")
    values = {
        "good_ref": "v1",
        "bad_ref": "main",
        "good": good,
        "bad": make_commit(repository, "bad"),
        "platform": make_platform(),
        "workload": make_workload(spec),
        "spec": dataclasses.asdict(spec),
        "metric": HEADLINE[spec.scenario],
        "margin": 0.02,
        "rungs": [10, 20, 40],
        "seed": 5,
        "state": BisectState.MEASURING,
        "created_at": db_now(),
    }
    return Bisect.objects.create(repository=repository, **(values | fields))


def make_line(repository: Repository, count: int) -> list[Commit]:
    """`count` commits, each the child of the one before."""
    return [make_commit(repository, f"change {number}") for number in range(count)]


def start_bisect(
    repository: Repository, good: Commit, bad: Commit, *, good_ref: str = ""
) -> Bisect:
    """As a person asks for it; its repository has been fetched since."""
    wanted = NewBisect(
        repository=repository,
        good=good_ref or good.sha,
        bad=bad.sha,
        platform=make_platform(),
        spec=make_spec(),
        settings=SHORT,
        seed=7,
    )
    made = create_bisect(wanted, None)
    fetched(repository)
    return made


def fetched(repository: Repository) -> None:
    """The fetch that was asked for has been made."""
    Repository.objects.filter(pk=repository.pk).update(fetched_at=db_now(), wanted_at=None)


Stand = Callable[[Commit, int], float | None]
"""What a launch of a commit takes in pair number n, in ns; None for one that crashes."""


@dataclasses.dataclass
class Bench:
    """A worker without a machine: claims sessions and delivers launches that take what is said.

    Commits of `unbuilt` do not build. Launches come as files through the worker's verb when
    `by_files`, else as the rows that it would leave, which is far quicker.
    """

    folder: Path
    takes: Stand
    unbuilt: frozenset[str] = frozenset()
    by_files: bool = False

    def work(self) -> int:
        """Look up what waits for its commits and measure it to the end; how many sessions."""
        for repository in Repository.objects.all():
            fetched(repository)
        resolve_waiting()
        waiting = lifecycle.next_runs(WORKER.platform, 10)
        for run_id, attempt in waiting:
            claim = lifecycle.claim_run(run_id, attempt, WORKER)
            assert claim is not None and claim.session is not None
            lifecycle.deliver_run(run_id, claim.fence, self._session(claim, claim.session))
        return len(waiting)

    def _session(self, claim: Claim, session: Session) -> Outcome:
        for side, source in _sources(session).items():
            if source.sha in self.unbuilt:
                told = f"The {side}: The build of it ended with exit code 2"
                return Outcome(state="failed", failure_kind="build_failed", message=told)
        todo = session.pairs
        while todo:
            self._measure(claim, session, todo)
            todo = pairs.climb(claim.run_id, claim.fence).pairs
        return Outcome(state="succeeded")

    def _measure(self, claim: Claim, session: Session, todo: Sequence[PlannedPair]) -> None:
        if self.by_files:
            for pair in todo:
                for side in _sources(session):
                    self._launch(claim, session, pair, side)
            return
        compared = Run.objects.get(pk=claim.run_id).compared
        assert compared is not None
        rows = [Pair(compared=compared, number=p.number, order=p.order) for p in todo]
        made = Pair.objects.bulk_create(rows)
        commits = {side: _commit(source) for side, source in _sources(session).items()}
        Launch.objects.bulk_create(
            _row(pair, side, self.takes(commit, pair.number), compared.metric)
            for pair in made
            for side, commit in commits.items()
        )

    def _launch(self, claim: Claim, session: Session, pair: PlannedPair, side: str) -> None:
        value = self.takes(_commit(_sources(session)[side]), pair.number)
        told = Launched(pair=pair, side=side, took_ns=1_000_000)
        if value is None:
            told = dataclasses.replace(told, failure_kind="crashed", message="it broke")
        else:
            spec = msgspec.json.decode(claim.spec, type=RunSpec)
            told = dataclasses.replace(told, files=outcome_files(self.folder, _answer(spec, value)))
        pairs.store_launch(claim.run_id, claim.fence, told)


def _sources(session: Session) -> dict[str, Source]:
    return {"baseline": session.baseline, "candidate": session.candidate}


def _commit(source: Source) -> Commit:
    return Commit.objects.get(sha=source.sha)


def _row(pair: Pair, side: str, value: float | None, metric_name: str) -> Launch:
    """A launch as `store_launch` leaves it."""
    return Launch(
        pair=pair,
        side=side,
        fence=1,
        values={} if value is None else {metric_name: value},
        comparable_hash="" if value is None else "c" * 64,
        result=None if value is None else make_artifact(b"{}"),
        failure_kind="crashed" if value is None else "",
        message="it broke" if value is None else "",
        took_ns=1_000_000,
        ended_at=db_now(),
    )


def _answer(spec: RunSpec, value: float) -> Result:
    measured = metric(name=HEADLINE[spec.scenario], value=value, samples=(value,), n=1)
    return dataclasses.replace(result(spec), metrics=(measured,))
