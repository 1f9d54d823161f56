"""Which operators of two traces are the same thing, in passes from sure to loose."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from profiler.analysis.stepprofile import OperatorTime, StepProfile
from profiler.trace.clock import Int64

How = Literal[
    "same", "other shapes", "moved", "other implementation", "unpaired", "vanished", "appeared"
]
"""How a pair was found: same module, operator and shapes; same module and operator; same operator
in another module; a common operator around both in the same module. On one side only: calls of an
operator that the other side has too, or an operator that it has not."""

_LAYER = re.compile(r"\.\d+(?=\.|$)")
_INSTANCE = re.compile(r"_\d+(?=\.|$)")


@dataclass(slots=True)
class Bucket:
    """Operators of one side that count as one: arrays hold a value per step."""

    module: str
    operator: str
    shapes: str
    dtypes: str
    around: tuple[str, ...]
    members: list[OperatorTime]
    calls: Int64
    host: Int64
    device: Int64
    shown: int

    @property
    def weight(self) -> int:
        """Time that says which bucket matters more."""
        return int(self.device.sum() or self.host.sum())


@dataclass(frozen=True, slots=True)
class Match:
    """What stands for one thing on each side; one of them may be empty."""

    how: How
    label: str
    baseline: tuple[Bucket, ...]
    candidate: tuple[Bucket, ...]


def folded(module: str) -> str:
    """A module path for all its layers: `layers.3.mlp` and `layers.4.mlp` are `layers.*.mlp`."""
    return _INSTANCE.sub("", _LAYER.sub(".*", module))


def buckets(profile: StepProfile, *, fold_layers: bool) -> list[Bucket]:
    """The operators of a profile by module, canonical operator, shapes and types."""
    found: dict[Hashable, Bucket] = {}
    for row in profile.operators:
        module = folded(row.module) if fold_layers else row.module
        key = (module, row.operator, row.shapes, row.dtypes, row.around)
        calls, host, device = (
            np.array(v, np.int64) for v in (row.calls, row.host_ns, row.device_ns)
        )
        if key in found:
            have = found[key]
            have.members.append(row)
            have.calls += calls
            have.host += host
            have.device += device
            have.shown += row.shown_ns
        else:
            found[key] = Bucket(
                module, row.operator, row.shapes, row.dtypes, row.around, [row],
                calls, host, device, row.shown_ns,
            )  # fmt: skip
    return list(found.values())


def match(baseline: Sequence[Bucket], candidate: Sequence[Bucket]) -> list[Match]:
    """Every bucket of both sides in exactly one match."""
    passes: tuple[tuple[How, Callable[[Bucket], Hashable]], ...] = (
        ("same", lambda b: (b.module, b.operator, b.shapes, b.dtypes)),
        ("other shapes", lambda b: (b.module, b.operator)),
        ("moved", lambda b: (b.operator, b.shapes, b.dtypes)),
        ("moved", lambda b: b.operator),
    )
    left, right = list(baseline), list(candidate)
    out: list[Match] = []
    for how, key in passes:
        found, left, right = _by_key(how, left, right, (key, key))
        out += found
    outer = _outer_names(left, right)
    found, left, right = _by_key(
        "other implementation", left, right, tuple(_by_outer(names) for names in outer)
    )
    out += [_named_by_outer(one, outer[0]) for one in found]
    out += [_alone(b, "vanished", {other.operator for other in candidate}) for b in left]
    out += [_alone(b, "appeared", {other.operator for other in baseline}) for b in right]
    return out


def _alone(bucket: Bucket, side: Literal["vanished", "appeared"], others: set[str]) -> Match:
    how: How = "unpaired" if bucket.operator in others else side
    gone, new = ((bucket,), ()) if side == "vanished" else ((), (bucket,))
    return Match(how, bucket.operator, gone, new)


def _by_key(
    how: How,
    left: list[Bucket],
    right: list[Bucket],
    keys: tuple[Callable[[Bucket], Hashable], ...],
) -> tuple[list[Match], list[Bucket], list[Bucket]]:
    """Matches of equal keys, and what is left on both sides; a key of None matches nothing."""
    sides = (_grouped(left, keys[0]), _grouped(right, keys[1]))
    common = [key for key in sides[0] if key in sides[1] and key is not None]
    out = []
    for key in common:
        one, other = tuple(sides[0][key]), tuple(sides[1][key])
        out.append(Match(how, one[0].operator, one, other))
    taken = set(common)
    rest = [b for b in left if keys[0](b) not in taken]
    return out, rest, [b for b in right if keys[1](b) not in taken]


def _grouped(
    rows: Iterable[Bucket], key: Callable[[Bucket], Hashable]
) -> dict[Hashable, list[Bucket]]:
    out: dict[Hashable, list[Bucket]] = {}
    for row in rows:
        out.setdefault(key(row), []).append(row)
    return out


OuterNames = dict[int, tuple[str, str]]


def _outer_names(left: list[Bucket], right: list[Bucket]) -> tuple[OuterNames, OuterNames]:
    """Per bucket (by id) the module and the innermost operator around it that both sides know."""
    known = [
        {(b.module, name) for b in side for name in (*b.around, b.operator)}
        for side in (left, right)
    ]
    common = known[0] & known[1]
    out: tuple[OuterNames, OuterNames] = ({}, {})
    for side, names in zip((left, right), out, strict=True):
        for bucket in side:
            for name in (bucket.operator, *reversed(bucket.around)):
                if (bucket.module, name) in common:
                    names[id(bucket)] = (bucket.module, name)
                    break
    return out


def _by_outer(names: OuterNames) -> Callable[[Bucket], Hashable]:
    return lambda bucket: names.get(id(bucket))


def _named_by_outer(found: Match, names: OuterNames) -> Match:
    label = names[id(found.baseline[0])][1]
    return Match(found.how, label, found.baseline, found.candidate)
