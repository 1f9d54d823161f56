"""Operators on both sides or on one, and what became of those of a module. Times per step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from profiler.analysis.matching import How

Change = Literal["renamed", "fused", "split", "replaced", "vanished", "appeared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelShare:
    """Device work of one name under an operator, per step."""

    name: str
    count: float
    device_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSide:
    """One side of an operator: recorded names, calls and times per step.

    `shown_ns` is what it takes of the wall time (see `window`); all of them
    with the parts make a step. The `usual` times are those of an ordinary
    step, the median of the steps instead of their mean: one step in which
    something came in between does not move them.
    """

    modules: tuple[str, ...]
    names: tuple[str, ...]
    calls: float
    host_ns: int
    device_ns: int
    shown_ns: int
    kernels: tuple[KernelShare, ...]
    usual_ns: int
    usual_shown_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorChange:
    """One operator on both sides, or on one.

    `change_ns` is candidate minus baseline in the time that is measured
    (device, else host), `usual_change_ns` the same of an ordinary step.
    `p_adjusted` is the Benjamini-Hochberg p of the paired t test on log ratios
    of the steps, None where it was not tested.
    """

    module: str
    operator: str
    shapes: str
    dtypes: str
    how: How
    baseline: OperatorSide | None
    candidate: OperatorSide | None
    change_ns: int
    usual_change_ns: int
    p_value: float | None = None
    p_adjusted: float | None = None
    significant: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleChange:
    """Operators of one module that are on one side only: what became of what.

    `renamed` one for one, `fused` several to fewer, `split` fewer to more,
    `replaced` as many by as many, else only `vanished` or only `appeared`. The
    `usual` times are the shown ones of an ordinary step.
    """

    kind: Change
    module: str
    vanished: tuple[str, ...]
    appeared: tuple[str, ...]
    baseline_ns: int
    candidate_ns: int
    baseline_shown_ns: int
    candidate_shown_ns: int
    baseline_usual_ns: int
    candidate_usual_ns: int


def measured_ns(side: OperatorSide | None, measure: str) -> int:
    """The time of a side in what is measured, 0 without that side."""
    if side is None:
        return 0
    return side.device_ns if measure == "device" else side.host_ns


def module_changes(rows: Sequence[OperatorChange], measure: str) -> tuple[ModuleChange, ...]:
    """Rows of one side only, grouped by the module that holds them on both sides.

    Without a module only operators count that the other side has not at all.
    """
    timed = [r for r in rows if r.change_ns and one_sided(r)]
    loose = {
        "vanished": [r for r in timed if r.baseline],
        "appeared": [r for r in timed if r.candidate],
    }
    homes = {side: {r.module for r in found} for side, found in loose.items()}
    groups: dict[str, list[OperatorChange]] = {}
    for side, other in (("vanished", "appeared"), ("appeared", "vanished")):
        for row in loose[side]:
            groups.setdefault(_home(row.module, homes[other]), []).append(row)
    made = [_module_change(module, found, measure) for module, found in groups.items()]
    return tuple(sorted(made, key=lambda m: -abs(m.candidate_ns - m.baseline_ns)))


def usual_ns(side: OperatorSide | None) -> int:
    """The measured time of a side in an ordinary step, 0 without that side."""
    return 0 if side is None else side.usual_ns


def one_sided(row: OperatorChange) -> bool:
    """Whether a row counts with its module: on one side only, and not merely by its shapes."""
    alone = row.baseline is None or row.candidate is None
    return alone and (row.how != "unpaired" or bool(row.module))


def _home(module: str, others: set[str]) -> str:
    """The outermost of `others` around `module` (or itself), else the module itself."""
    around = [o for o in others if o == module or (o and module.startswith(f"{o}."))]
    return min(around, key=len, default=module)


def _module_change(module: str, rows: Sequence[OperatorChange], measure: str) -> ModuleChange:
    gone = [row for row in rows if row.baseline]
    new = [row for row in rows if row.candidate]
    vanished, appeared = _operators(gone), _operators(new)
    return ModuleChange(
        kind=_kind(len(vanished), len(appeared)),
        module=module,
        vanished=vanished,
        appeared=appeared,
        baseline_ns=sum(measured_ns(row.baseline, measure) for row in gone),
        candidate_ns=sum(measured_ns(row.candidate, measure) for row in new),
        baseline_shown_ns=sum(row.baseline.shown_ns for row in gone if row.baseline),
        candidate_shown_ns=sum(row.candidate.shown_ns for row in new if row.candidate),
        baseline_usual_ns=sum(row.baseline.usual_shown_ns for row in gone if row.baseline),
        candidate_usual_ns=sum(row.candidate.usual_shown_ns for row in new if row.candidate),
    )


def _operators(rows: Sequence[OperatorChange]) -> tuple[str, ...]:
    """Names of the operators, those with the largest change first."""
    return tuple(dict.fromkeys(row.operator for row in rows))


def _kind(vanished: int, appeared: int) -> Change:
    if not appeared:
        return "vanished"
    if not vanished:
        return "appeared"
    if vanished == appeared:
        return "renamed" if vanished == 1 else "replaced"
    return "fused" if vanished > appeared else "split"
