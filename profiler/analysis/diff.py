"""The difference of two traces per step: by module, operator and shapes, with nothing lost.

All times are ns per step. Those of one side add up: matched + only on this
side + opaque + outside operators + unlinked is the device time of a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from profiler.analysis.matching import Bucket, How, Match, buckets, match
from profiler.analysis.stats import discovery_adjusted, paired_t_p
from profiler.analysis.stepprofile import Part, StepProfile
from profiler.units import middle

SCHEMA = 1
FLOOR = 0.005
"""Operators below this share of a step's time on both sides are not tested."""

FALSE_DISCOVERIES = 0.05
FEWEST_STEPS = 3
KERNELS_SHOWN = 3
KERNEL_NAME_CHARS = 200

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
    with the parts make a step.
    """

    modules: tuple[str, ...]
    names: tuple[str, ...]
    calls: float
    host_ns: int
    device_ns: int
    shown_ns: int
    kernels: tuple[KernelShare, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorChange:
    """One operator on both sides, or on one.

    `change_ns` is candidate minus baseline in the time that is measured
    (device, else host). `p_adjusted` is the Benjamini-Hochberg p of the paired
    t test on log ratios of the steps, None where it was not tested.
    """

    module: str
    operator: str
    shapes: str
    dtypes: str
    how: How
    baseline: OperatorSide | None
    candidate: OperatorSide | None
    change_ns: int
    p_value: float | None = None
    p_adjusted: float | None = None
    significant: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleChange:
    """Operators of one module that are on one side only: what became of what.

    `renamed` one for one, `fused` several to fewer, `split` fewer to more,
    `replaced` as many by as many, else only `vanished` or only `appeared`.
    """

    kind: Change
    module: str
    vanished: tuple[str, ...]
    appeared: tuple[str, ...]
    baseline_ns: int
    candidate_ns: int
    baseline_shown_ns: int
    candidate_shown_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartTime:
    """Wall time of a step that belongs to no operator."""

    kind: str
    name: str
    total_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffSide:
    """One side: what a step takes and where its measured time goes, ns per step.

    `total_ns` = `matched_ns` + `unmatched_ns` + `opaque_ns` + `outside_ns` +
    `unlinked_ns`. Matched are operators that both sides have by canonical
    name; `matched_share` is their part of the operators' time alone.
    """

    path: str
    device_kind: str
    torch_version: str | None
    steps: int
    step_ns: int
    total_ns: int
    matched_ns: int
    unmatched_ns: int
    opaque_ns: int
    outside_ns: int
    unlinked_ns: int
    matched_share: float | None
    parts: tuple[PartTime, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """Two traces compared; rows by the size of their change."""

    measure: str
    baseline: DiffSide
    candidate: DiffSide
    change_ns: int
    rows: tuple[OperatorChange, ...]
    modules: tuple[ModuleChange, ...]
    tested: int
    notes: tuple[str, ...]
    schema: int = SCHEMA


def apportion(totals: Sequence[int], steps: int) -> list[int]:
    """Each total per step as whole ns, so that they add up to the rounded sum per step.

    Largest remainders first, earlier ones at equality.
    """
    shares = [total // steps for total in totals]
    missing = (2 * sum(totals) + steps) // (2 * steps) - sum(shares)
    order = sorted(range(len(totals)), key=lambda at: -(totals[at] % steps))
    for at in order[:missing]:
        shares[at] += 1
    return shares


def diff(baseline: StepProfile, candidate: StepProfile, *, fold_layers: bool = True) -> Diff:
    """Compare two profiles; `fold_layers` counts equal layers as one (`layers.*.mlp`)."""
    both = (baseline, candidate)
    measure = "device" if all(p.measure == "device" for p in both) else "host"
    found = match(*(buckets(p, fold_layers=fold_layers) for p in both))
    left = _Totals(baseline, [one.baseline for one in found], measure)
    right = _Totals(candidate, [one.candidate for one in found], measure)
    tested = [_p_value(one, left, right) for one in found]
    adjusted = discovery_adjusted(tested)
    rows = [
        _row(one, left.sides[at], right.sides[at], measure, p=tested[at], adjusted=adjusted[at])
        for at, one in enumerate(found)
    ]
    order = sorted(range(len(rows)), key=lambda at: (-abs(rows[at].change_ns), rows[at].operator))
    return Diff(
        measure=measure,
        baseline=left.side(found),
        candidate=right.side(found),
        change_ns=right.step_ns - left.step_ns,
        rows=tuple(rows[at] for at in order),
        modules=_modules([rows[at] for at in order], measure),
        tested=sum(p is not None for p in tested),
        notes=_notes(baseline, candidate),
    )


class _Totals:
    """One side's times per step, shared out so that they add up."""

    def __init__(
        self, profile: StepProfile, groups: Sequence[tuple[Bucket, ...]], measure: str
    ) -> None:
        self.profile = profile
        self.groups = groups
        self.measure = measure
        self.steps = len(profile.steps)
        rest = (profile.opaque_ns, profile.outside_ns, profile.unlinked_ns)
        device = [sum(int(b.device.sum()) for b in group) for group in groups]
        *own, opaque, outside, unlinked = apportion([*device, *map(sum, rest)], self.steps)
        self.device = own
        self.rest = (opaque, outside, unlinked) if measure == "device" else (0, 0, 0)
        self.host = apportion([sum(int(b.host.sum()) for b in g) for g in groups], self.steps)
        parts = [part.total_ns for part in profile.parts]
        shown = apportion([*(sum(b.shown for b in g) for g in groups), *parts], self.steps)
        self.shown, self.parts = shown[: len(groups)], shown[len(groups) :]
        self.step_ns = sum(shown)
        self.measured = self.device if measure == "device" else self.host
        self.sides = [self._side(at) for at in range(len(groups))]

    def _side(self, at: int) -> OperatorSide | None:
        group = self.groups[at]
        if not group:
            return None
        members = [row for bucket in group for row in bucket.members]
        return OperatorSide(
            modules=tuple(sorted({b.module for b in group})),
            names=tuple(sorted({row.name for row in members})),
            calls=sum(int(b.calls.sum()) for b in group) / self.steps,
            host_ns=self.host[at],
            device_ns=self.device[at],
            shown_ns=self.shown[at],
            kernels=self._kernels(group),
        )

    def _kernels(self, group: tuple[Bucket, ...]) -> tuple[KernelShare, ...]:
        sums: dict[str, list[int]] = {}
        for kernel in (k for b in group for row in b.members for k in row.kernels):
            have = sums.setdefault(kernel.name, [0, 0])
            have[0] += kernel.count
            have[1] += kernel.device_ns
        longest = sorted(sums.items(), key=lambda item: (-item[1][1], item[0]))[:KERNELS_SHOWN]
        return tuple(
            KernelShare(
                name=middle(name, KERNEL_NAME_CHARS),
                count=count / self.steps,
                device_ns=round(ns / self.steps),
            )
            for name, (count, ns) in longest
        )

    def side(self, found: Sequence[Match]) -> DiffSide:
        """The totals of this side."""
        own = zip(found, self.measured, strict=True)
        matched = sum(ns for one, ns in own if one.how not in ("vanished", "appeared"))
        linked = sum(self.measured)
        opaque, outside, unlinked = self.rest
        return DiffSide(
            path=self.profile.path,
            device_kind=self.profile.device_kind,
            torch_version=self.profile.torch_version,
            steps=self.steps,
            step_ns=self.step_ns,
            total_ns=linked + opaque + outside + unlinked,
            matched_ns=matched,
            unmatched_ns=linked - matched,
            opaque_ns=opaque,
            outside_ns=outside,
            unlinked_ns=unlinked,
            matched_share=matched / linked if linked else None,
            parts=tuple(map(_part, self.profile.parts, self.parts)),
        )

    def per_step(self, group: tuple[Bucket, ...]) -> list[int]:
        """The measured time of a group in each step."""
        columns = [b.device if self.measure == "device" else b.host for b in group]
        return [int(v) for v in np.sum(columns, axis=0)] if columns else []


def _part(part: Part, ns: int) -> PartTime:
    return PartTime(kind=part.kind, name=part.name, total_ns=ns)


def _p_value(one: Match, left: _Totals, right: _Totals) -> float | None:
    """The paired t test on the log ratios of the steps; None where it cannot be made."""
    a, b = left.per_step(one.baseline), right.per_step(one.candidate)
    steps = min(len(a), len(b))
    if steps < FEWEST_STEPS or min(*a[:steps], *b[:steps]) <= 0:
        return None
    floors = (sum(a) >= FLOOR * sum(left.measured) * left.steps) or (
        sum(b) >= FLOOR * sum(right.measured) * right.steps
    )
    ratios = np.log(np.array(b[:steps], float)) - np.log(np.array(a[:steps], float))
    return paired_t_p(ratios) if floors else None


def _row(
    one: Match,
    baseline: OperatorSide | None,
    candidate: OperatorSide | None,
    measure: str,
    *,
    p: float | None,
    adjusted: float | None,
) -> OperatorChange:
    heaviest = max((*one.baseline, *one.candidate), key=lambda bucket: bucket.weight)
    texts = {(b.shapes, b.dtypes) for b in (*one.baseline, *one.candidate)}
    shapes, dtypes = texts.pop() if len(texts) == 1 else ("", "")
    return OperatorChange(
        module=heaviest.module,
        operator=one.label,
        shapes=shapes,
        dtypes=dtypes,
        how=one.how,
        baseline=baseline,
        candidate=candidate,
        change_ns=_time(candidate, measure) - _time(baseline, measure),
        p_value=p,
        p_adjusted=adjusted,
        significant=adjusted is not None and adjusted <= FALSE_DISCOVERIES,
    )


def _time(side: OperatorSide | None, measure: str) -> int:
    if side is None:
        return 0
    return side.device_ns if measure == "device" else side.host_ns


def _modules(rows: Sequence[OperatorChange], measure: str) -> tuple[ModuleChange, ...]:
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
        baseline_ns=sum(_time(row.baseline, measure) for row in gone),
        candidate_ns=sum(_time(row.candidate, measure) for row in new),
        baseline_shown_ns=sum(row.baseline.shown_ns for row in gone if row.baseline),
        candidate_shown_ns=sum(row.candidate.shown_ns for row in new if row.candidate),
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


def _notes(baseline: StepProfile, candidate: StepProfile) -> tuple[str, ...]:
    """What a reader must know before believing the figures."""
    out = ["one recording of each side: what differs between launches is not in it"]
    if baseline.device_kind != candidate.device_kind:
        kinds = f"{baseline.device_kind} and {candidate.device_kind}"
        out.append(f"different kinds of device ({kinds}): this compares them, not a change of code")
    if baseline.measure != candidate.measure:
        out.append("only one side has device work, so host times are compared")
    for name, profile in (("baseline", baseline), ("candidate", candidate)):
        if not profile.marked:
            out.append(f"the {name} has no steps: the whole trace counts as one")
        if profile.left_out_steps:
            out.append(f"the {name} has {profile.left_out_steps} more steps than are compared")
    fewest = min(len(baseline.steps), len(candidate.steps))
    if fewest < FEWEST_STEPS:
        out.append(f"nothing is tested: that takes {FEWEST_STEPS} steps on both sides")
    return tuple(out)
