"""The difference of two traces per step: by module, operator and shapes, with nothing lost.

All times are ns per step. Those of one side add up: matched + only on this
side + opaque + outside operators + unlinked is the device time of a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profiler.analysis.changes import (
    KernelShare,
    ModuleChange,
    OperatorChange,
    OperatorSide,
    measured_ns,
    module_changes,
    usual_ns,
)
from profiler.analysis.matching import Bucket, Match, buckets, match
from profiler.analysis.stats import apart, discovery_adjusted, paired_t_p
from profiler.analysis.stepprofile import Part, StepProfile
from profiler.units import middle

SCHEMA = 2
FLOOR = 0.005
"""Operators below this share of a step's time on both sides are not tested."""

FALSE_DISCOVERIES = 0.05
FEWEST_STEPS = 3
KERNELS_SHOWN = 3
KERNEL_NAME_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PartTime:
    """Wall time of a step that belongs to no operator; `usual_ns` is that of an ordinary step."""

    kind: str
    name: str
    total_ns: int
    usual_ns: int


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
    """Two traces compared.

    Rows are in the order of the change of an ordinary step, the largest first:
    whether the steps tell a row apart from noise is said beside it.
    """

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


def is_steady(group: Sequence[Bucket]) -> bool:
    """Whether operators are called in every step alike; else no step is the ordinary one."""
    calls = np.sum([b.calls for b in group], axis=0)
    return not group or bool((calls == calls[0]).all())


def usual(total_ns: int, per_step: Sequence[int]) -> int:
    """What an ordinary step has of `total_ns`, the mean of `per_step`: their median's part of it.

    All of it where the steps are not known.
    """
    whole = sum(per_step)
    if not whole:
        return total_ns
    return round(total_ns * float(np.median(per_step)) * len(per_step) / whole)


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
    rows.sort(key=_order)
    return Diff(
        measure=measure,
        baseline=left.side(found),
        candidate=right.side(found),
        change_ns=right.step_ns - left.step_ns,
        rows=tuple(rows),
        modules=module_changes(rows, measure),
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
        steps = self.per_step(group) if is_steady(group) else []
        return OperatorSide(
            modules=tuple(sorted({b.module for b in group})),
            names=tuple(sorted({row.name for row in members})),
            calls=sum(int(b.calls.sum()) for b in group) / self.steps,
            host_ns=self.host[at],
            device_ns=self.device[at],
            shown_ns=self.shown[at],
            kernels=self._kernels(group),
            usual_ns=usual(self.measured[at], steps),
            usual_shown_ns=usual(self.shown[at], steps),
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
    found = usual(ns, part.per_step_ns)
    return PartTime(kind=part.kind, name=part.name, total_ns=ns, usual_ns=found)


def _p_value(one: Match, left: _Totals, right: _Totals) -> float | None:
    """The paired t test on the log ratios of the steps; None where it cannot be made.

    Steps whose ratio stands apart from the others' are left out, as pairs of launches are.
    """
    a, b = left.per_step(one.baseline), right.per_step(one.candidate)
    steps = min(len(a), len(b))
    if steps < FEWEST_STEPS or min(*a[:steps], *b[:steps]) <= 0:
        return None
    floors = (sum(a) >= FLOOR * sum(left.measured) * left.steps) or (
        sum(b) >= FLOOR * sum(right.measured) * right.steps
    )
    ratios = np.log(np.array(b[:steps], float)) - np.log(np.array(a[:steps], float))
    used = ratios[~apart(ratios)]
    return paired_t_p(used) if floors and len(used) >= FEWEST_STEPS else None


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
        change_ns=measured_ns(candidate, measure) - measured_ns(baseline, measure),
        usual_change_ns=usual_ns(candidate) - usual_ns(baseline),
        p_value=p,
        p_adjusted=adjusted,
        significant=adjusted is not None and adjusted <= FALSE_DISCOVERIES,
    )


def _order(row: OperatorChange) -> tuple[int, bool, str]:
    """By the change of an ordinary step, the largest first."""
    return -abs(row.usual_change_ns), not row.significant, row.operator


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
