"""Comparisons of the demo: generated launches, and the verdict the real decision makes of them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from dashboard.models import (
    Commit,
    ComparedState,
    ComparedWorkload,
    Comparison,
    ComparisonState,
    Launch,
    Pair,
    Repository,
    Side,
)
from dashboard.services import demo_story as story
from dashboard.services import pairs
from dashboard.services.comparisons import SEED_LIMIT
from dashboard.services.demo_rows import Stage, document_of, environment_at, keep_bytes
from profiler.analysis.ladder import orders
from profiler.types import Result, RunSpec

TOOK_NS = 95_000_000_000


def fill(stage: Stage, comparison: Comparison, effect: float, chance: random.Random) -> None:
    """Give a comparison that was just asked for its commits, its pairs and its verdicts.

    More pairs follow where the ladder of the comparison asks for them, as a worker would.
    """
    known = {commit.sha: commit for commit in stage.commits}
    candidate = known[comparison.candidate_ref]
    comparison.baseline, comparison.candidate = known[comparison.baseline_ref], candidate
    comparison.state = ComparisonState.MEASURING
    comparison.seed = chance.randrange(SEED_LIMIT)
    comparison.save(update_fields=["baseline", "candidate", "state", "seed"])
    # Nothing may be fetched for it: its repository exists in the rows alone.
    Repository.objects.filter(pk=stage.repository.pk).update(wanted_at=None)
    ended = candidate.committed_at + timedelta(hours=5)
    measuring = _Measuring(candidate=candidate, effect=effect, chance=chance, at=ended)
    for compared in comparison.workloads.select_related("comparison", "workload"):
        _measure(compared, measuring)
    pairs.close(comparison, ended)
    Comparison.objects.filter(pk=comparison.pk).update(
        created_at=candidate.committed_at + timedelta(hours=1), key=""
    )
    comparison.refresh_from_db()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measuring:
    """What the pairs of a comparison are to show, and when they were."""

    candidate: Commit
    effect: float
    chance: random.Random
    at: datetime

    def factor(self, noise: float) -> float:
        """One draw of noise around 1."""
        return self.chance.lognormvariate(0, noise)


def _measure(compared: ComparedWorkload, measuring: _Measuring) -> None:
    """Pairs up to the rung at which there is a verdict, or the last one."""
    environment = environment_at(measuring.candidate.position)
    compared.environments = {environment.comparable_hash: environment.fields}
    settings = pairs.settings_of(compared.comparison)
    rung = settings.next_rung(0)
    while rung is not None:
        _add_pairs(compared, rung, measuring)
        verdict = pairs.verdict_of(compared, compared.metric)
        pairs.write_verdict(compared, verdict)
        rung = settings.next_rung(rung) if verdict.state == "inconclusive" else None
    compared.state = ComparedState.SETTLED
    compared.pairs_wanted = compared.pairs.count()
    compared.save(update_fields=["state", "pairs_wanted", "environments"])


def _add_pairs(compared: ComparedWorkload, upto: int, measuring: _Measuring) -> None:
    spec = msgspec.convert(compared.spec, RunSpec)
    base = story.level_ns(spec.scenario, measuring.candidate.position) / (1 + measuring.effect)
    order = orders(compared.comparison.seed, upto)
    for number in range(compared.pairs.count(), upto):
        pair = Pair.objects.create(compared=compared, number=number, order=order[number])
        level = base * measuring.factor(story.LAUNCH_NOISE)  # drift that both launches share
        for side in (Side.BASELINE, Side.CANDIDATE):
            took = level * measuring.factor(story.LAUNCH_NOISE / 2)
            took *= 1 + measuring.effect if side == Side.CANDIDATE else 1
            document = document_of(spec, took, measuring.chance)
            _add_launch(pair, side, document, measuring)


def _add_launch(pair: Pair, side: Side, document: Result, measuring: _Measuring) -> None:
    Launch.objects.create(
        pair=pair,
        side=side,
        fence=1,
        values={metric.name: metric.value for metric in document.metrics},
        comparable_hash=environment_at(measuring.candidate.position).comparable_hash,
        result=keep_bytes(msgspec.json.encode(document)),
        took_ns=TOOK_NS,
        ended_at=measuring.at,
    )
