"""Rows of repositories, commits and comparisons for tests."""

# ruff: noqa: ANN401 - the values of columns are of any type

from __future__ import annotations

import dataclasses
import hashlib
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.utils import timezone

from dashboard.models import (
    Commit,
    ComparedState,
    ComparedWorkload,
    Comparison,
    ComparisonState,
    FetchState,
    Launch,
    Pair,
    Repository,
    Side,
)
from profiler.metrics import HEADLINE
from profiler.types import RunSpec
from tests.factories import (
    make_artifact,
    make_platform,
    make_spec,
    make_workload,
    store_artifact,
)
from tests.profiler.analysis.layered import Layered
from workers import difference


def make_repository(slug: str = "models", **fields: Any) -> Repository:
    """A repository that was fetched, without commits."""
    now = timezone.now()
    values = {
        "address": "https://example.org/models.git",
        "allowed_refs": ["main"],
        "import_paths": ["."],
        "build_limit_s": 60.0,
        "state": FetchState.READY,
        "fetched_at": now,
        "default_branch": "main",
        "created_at": now,
    }
    return Repository.objects.create(slug=slug, **(values | fields))


def make_commit(repository: Repository, subject: str = "a change", **fields: Any) -> Commit:
    """The next commit of `main`, child of the one before."""
    before = Commit.objects.filter(repository=repository).order_by("-position").first()
    position = before.position + 1 if before else 1
    moment = timezone.now() - timedelta(days=1)
    values = {
        "sha": hashlib.sha1(f"{repository.slug} {position}".encode()).hexdigest(),
        "parents": [before.sha] if before else [],
        "position": position,
        "author": "Ann Author",
        "authored_at": moment,
        "committed_at": moment,
        "subject": subject,
    }
    commit = Commit.objects.create(repository=repository, **(values | fields))
    repository.heads = {**repository.heads, "refs/heads/main": commit.sha}
    repository.head_sha = commit.sha
    repository.save()
    return commit


def make_comparison(**fields: Any) -> Comparison:
    """A comparison of two commits that is being measured, with one workload and no pair yet."""
    repository = fields.pop("repository", None) or make_repository()
    now = timezone.now()
    values = {
        "baseline_ref": "main~",
        "candidate_ref": "main",
        "baseline": make_commit(repository, "the old way"),
        "candidate": make_commit(repository, "fuse softmax"),
        "platform": make_platform(),
        "seed": 5,
        "margin": 0.02,
        "rungs": [10, 20, 40],
        "state": ComparisonState.MEASURING,
        "created_at": now,
    }
    made = Comparison.objects.create(repository=repository, **(values | fields))
    make_compared(made)
    return made


def make_compared(comparison: Comparison, spec: RunSpec | None = None) -> ComparedWorkload:
    """One more workload of a comparison."""
    spec = spec or make_spec()
    return ComparedWorkload.objects.create(
        comparison=comparison,
        position=comparison.workloads.count(),
        workload=make_workload(spec),
        spec=dataclasses.asdict(spec),
        metric=HEADLINE[spec.scenario],
        pairs_wanted=10,
        state=ComparedState.MEASURING,
        environments={"a" * 64: {"torch": "2.13.0"}, "b" * 64: {"torch": "2.12.0"}},
    )


def make_pair(
    compared: ComparedWorkload,
    baseline: float | None = 1e6,
    candidate: float | None = 9e5,
    *,
    mark: str = "a",
    why: str = "it broke",
) -> Pair:
    """The next pair; a side without a value is one that failed."""
    number = compared.pairs.count()
    pair = Pair.objects.create(
        compared=compared, number=number, order=("AB", "BA", "BA", "AB")[number % 4]
    )
    sides = {Side.BASELINE: (baseline, "a"), Side.CANDIDATE: (candidate, mark)}
    for side, (value, environment) in sides.items():
        Launch.objects.create(
            pair=pair,
            side=side,
            fence=1,
            values={} if value is None else {compared.metric: value},
            comparable_hash="" if value is None else environment * 64,
            result=None if value is None else make_artifact(),
            failure_kind="crashed" if value is None else "",
            message=why if value is None else "",
            took_ns=1_000_000_000,
            ended_at=timezone.now(),
        )
    return pair


def make_explained(comparison: Comparison, base: Layered | None = None) -> Comparison:
    """The first workload of it has a stored difference: a fused operator took the place of two."""
    fused = Layered(operators=("aten::linear>aten::addmm", "my::fused<b>"))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "difference.json.gz"
        one = (base or Layered()).build().write(Path(folder) / "base.json")
        difference.write(one, fused.build().write(Path(folder) / "cand.json"), out)
        stored = store_artifact(out.read_bytes())
    comparison.workloads.filter(position=0).update(difference=stored)
    return comparison
