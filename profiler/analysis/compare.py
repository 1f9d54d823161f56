"""The launches of two sides compared: what forbids it, then one verdict per metric."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from profiler.analysis.decide import decide
from profiler.analysis.ladder import Settings
from profiler.analysis.results import Launch
from profiler.analysis.verdict import Pair, State, Verdict
from profiler.errors import ExitCode, UserError, printable
from profiler.metrics import HEADLINE, METRICS
from profiler.spec import workload_hash
from profiler.types import EXACT_ONLY, Environment, Metric, Result

SCHEMA = 1

FIELDS_NAMED = 5

EXIT_CODES: dict[State, ExitCode] = {
    "faster": ExitCode.FINE,
    "no change": ExitCode.FINE,
    "slower": ExitCode.REGRESSED,
    "inconclusive": ExitCode.INCONCLUSIVE,
    "not comparable": ExitCode.NOT_COMPARABLE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDifference:
    """A field of the environment or spec that differs; None where a side lacks it.

    `matters` is False for fields that tell runs apart without changing numbers.
    """

    name: str
    baseline: str | None
    candidate: str | None
    matters: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What `compare --json` prints. `metric` is the one that decides state and exit code."""

    state: State
    exit_code: int
    sentence: str
    metric: str
    launches: tuple[int, int]
    verdicts: tuple[Verdict, ...]
    environment: tuple[FieldDifference, ...]
    obstacles: tuple[str, ...]
    notes: tuple[str, ...]
    schema: int = SCHEMA


def compare_launches(
    baseline: Sequence[Launch],
    candidate: Sequence[Launch],
    settings: Settings | None = None,
    metric: str | None = None,
) -> Comparison:
    """Compare two sides; the first launch of each is a pair, the second, and so on.

    `metric` names the one that decides, by default the scenario's headline.
    Raises `UserError` when no launch of either side finished or the metric is unknown.
    """
    results = [launch.result for launch in (*baseline, *candidate) if launch.result]
    if not results:
        raise UserError("no launch of either side finished", "see their error.json and logs")
    chosen = metric or HEADLINE[results[0].spec.scenario]
    known = _known(results)
    if chosen not in known:
        listed = ", ".join(known) or "none"
        raise UserError(f"metric {printable(chosen)} is not in the results", f"they have {listed}")
    differences = environment_differences(_environment(baseline), _environment(candidate))
    found = obstacles(baseline, candidate)
    verdicts = {
        name: decide(_pairs(baseline, candidate, name), METRICS[name], settings, obstacles=found)
        for name in known
    }
    deciding = verdicts.pop(chosen)
    return Comparison(
        state=deciding.state,
        exit_code=int(EXIT_CODES[deciding.state]),
        sentence=deciding.sentence,
        metric=chosen,
        launches=(len(baseline), len(candidate)),
        verdicts=(deciding, *verdicts.values()),
        environment=differences,
        obstacles=found,
        notes=_notes(baseline, candidate),
    )


def obstacles(baseline: Sequence[Launch], candidate: Sequence[Launch]) -> tuple[str, ...]:
    """Why the two sides must not be compared, a phrase each; empty when they may."""
    out = [*_workload_obstacles(baseline, candidate)]
    for side, launches in (("baseline", baseline), ("candidate", candidate)):
        finished = [launch for launch in launches if launch.result]
        told = [launch.environment for launch in finished if launch.environment]
        if len(told) < len(finished):
            out.append(f"the {side} has no env.json, so its environment is unknown")
        if len({environment.comparable_hash for environment in told}) > 1:
            out.append(f"the {side}'s own launches ran in different environments")
    one, other = _environment(baseline), _environment(candidate)
    if one and other and one.comparable_hash != other.comparable_hash:
        out.append(f"different environments ({_named(environment_differences(one, other))})")
    return tuple(out)


def _workload_obstacles(baseline: Sequence[Launch], candidate: Sequence[Launch]) -> tuple[str, ...]:
    one, other = _first(baseline), _first(candidate)
    if one is None or other is None:
        return ()
    out = []
    if workload_hash(one.spec) != workload_hash(other.spec):
        out.append(f"different workloads ({_named(_spec_differences(one, other))})")
    for side, launches in (("baseline", baseline), ("candidate", candidate)):
        hashes = {workload_hash(launch.result.spec) for launch in launches if launch.result}
        if len(hashes) > 1:
            out.append(f"the {side}'s own launches ran different workloads")
    mine, theirs = _metrics(one), _metrics(other)
    changed = [n for n in mine if n in theirs and mine[n].definition != theirs[n].definition]
    if changed:
        out.append(f"metrics defined differently ({', '.join(changed)})")
    return tuple(out)


def environment_differences(
    baseline: Environment | None, candidate: Environment | None
) -> tuple[FieldDifference, ...]:
    """Fields that differ, those that matter first; empty when a side is unknown."""
    if baseline is None or candidate is None:
        return ()
    return _differences(baseline.fields, candidate.fields)


def _spec_differences(one: Result, other: Result) -> tuple[FieldDifference, ...]:
    sides = [{k: str(v) for k, v in dataclasses.asdict(r.spec).items()} for r in (one, other)]
    return _differences(*sides)


def _differences(one: dict[str, str], other: dict[str, str]) -> tuple[FieldDifference, ...]:
    found = [
        FieldDifference(
            name=name,
            baseline=one.get(name),
            candidate=other.get(name),
            matters=name not in EXACT_ONLY,
        )
        for name in sorted(one.keys() | other.keys())
        if one.get(name) != other.get(name)
    ]
    return tuple(sorted(found, key=lambda field: not field.matters))


def _named(fields: Sequence[FieldDifference]) -> str:
    """The first fields that matter, in words."""
    mattering = [field for field in fields if field.matters]
    said = [
        f"{field.name} {_shown(field.baseline)} against {_shown(field.candidate)}"
        for field in mattering[:FIELDS_NAMED]
    ]
    if len(mattering) > FIELDS_NAMED:
        said.append(f"{len(mattering) - FIELDS_NAMED} more")
    return ", ".join(said) or "the hashes differ"


def _shown(value: str | None) -> str:
    return "unknown" if value is None else printable(value, 60)


def _first(launches: Sequence[Launch]) -> Result | None:
    return next((launch.result for launch in launches if launch.result), None)


def _environment(launches: Sequence[Launch]) -> Environment | None:
    return next((launch.environment for launch in launches if launch.environment), None)


def _metrics(result: Result) -> dict[str, Metric]:
    return {metric.name: metric for metric in result.metrics}


def _known(results: Sequence[Result]) -> list[str]:
    """Metrics with a definition that any result holds, in the order of the definitions."""
    held = {metric.name for result in results for metric in result.metrics}
    return [name for name in METRICS if name in held]


def _pairs(baseline: Sequence[Launch], candidate: Sequence[Launch], name: str) -> list[Pair]:
    """The launches side by side; one without a partner is a pair with a failed launch."""
    count = max(len(baseline), len(candidate))
    sides = [[_value(launch, name) for launch in side] for side in (baseline, candidate)]
    one, other = ([*side, *[None] * (count - len(side))] for side in sides)
    return [Pair(baseline=a, candidate=b) for a, b in zip(one, other, strict=True)]


def _value(launch: Launch, name: str) -> float | None:
    """The launch's median of the metric, None when it has none."""
    found = _metrics(launch.result).get(name) if launch.result else None
    return found.value if found else None


def _notes(baseline: Sequence[Launch], candidate: Sequence[Launch]) -> tuple[str, ...]:
    out = []
    if len(baseline) == len(candidate) == 1:
        out.append("one launch a side says nothing about noise: measure pairs of launches in turns")
    elif len(baseline) != len(candidate):
        out.append(f"{len(baseline)} launches against {len(candidate)}: some have no partner")
    if max(len(baseline), len(candidate)) > 1:
        out.append("launches are paired by the order of their names: measure them in turns, else "
                   "a drift of the machine looks like a change")  # fmt: skip
    for side, launches in (("baseline", baseline), ("candidate", candidate)):
        failed = [launch for launch in launches if launch.result is None]
        out += [f"{side} {printable(one.name)} failed: {printable(one.failure)}" for one in failed]
    return tuple(out)
