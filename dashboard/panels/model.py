"""The first sentence of a model's page, and what is left to win."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.panels.standing import ScenarioWords, roofline_words, scenario_words
from dashboard.queries.history import ModelHistory
from dashboard.queries.standings import FindingFact, StandingDetail


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What the newest trace of a workload leaves to win."""

    standing: StandingDetail
    roofline: str
    findings: tuple[FindingFact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """How it moved, how good it got, what is left."""

    scenarios: tuple[ScenarioWords, ...]
    left: tuple[Left, ...]
    other_environment: tuple[str, ...]
    """Scenarios whose Day-0 was measured in an environment that is not comparable."""

    @property
    def best_finding(self) -> FindingFact | None:
        """The one with the largest price over all scenarios."""
        priced = [one for left in self.left for one in left.findings if one.gain_ns]
        return max(priced, key=lambda one: one.gain_ns or 0, default=None)


def model_answer(view: ModelHistory) -> ModelAnswer:
    """The answer of the workloads that are drawn."""
    chosen = [one.facts for one in view.histories]
    return ModelAnswer(
        scenarios=scenario_words(chosen),
        left=tuple(map(_left, chosen)),
        other_environment=_elsewhere(chosen),
    )


def _left(one: StandingDetail) -> Left:
    return Left(standing=one, roofline=roofline_words(one), findings=one.findings)


def _elsewhere(chosen: Sequence[StandingDetail]) -> tuple[str, ...]:
    return tuple(one.scenario for one in chosen if one.measure and not one.measure.same_environment)
