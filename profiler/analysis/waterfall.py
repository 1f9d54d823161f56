"""From the step of the baseline to that of the candidate in bars that add up exactly."""

from __future__ import annotations

from dataclasses import dataclass

from profiler.analysis.changes import ModuleChange, one_sided
from profiler.analysis.diff import Diff, DiffSide

BARS_SHOWN = 12
OPERATORS_NAMED = 3
REST = "everything else"
UNEVEN = "steps out of the ordinary"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One reason for a difference: wall time per step on both sides, ns."""

    kind: str
    name: str
    baseline_ns: int
    candidate_ns: int
    change_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Waterfall:
    """`baseline_ns` plus the changes of all bars is `candidate_ns`, to the nanosecond."""

    baseline_ns: int
    candidate_ns: int
    bars: tuple[Bar, ...]


def waterfall(found: Diff, bars: int = BARS_SHOWN) -> Waterfall:
    """The `bars` largest changes of an ordinary step, then everything else, then the uneven rest.

    Operators on both sides count by name over all modules, those on one side
    only by their module; device time that other work hides is in none of them.
    The last bar is what steps out of the ordinary add to the mean of a side.
    """
    sums: dict[tuple[str, str], list[int]] = {}
    for row in found.rows:
        if not one_sided(row) or not row.change_ns:
            both = (row.baseline, row.candidate)
            wall = [side.usual_shown_ns if side else 0 for side in both]
            _add(sums, "operator", row.operator, *wall)
    for module in found.modules:
        _add(sums, "module", _name(module), module.baseline_usual_ns, module.candidate_usual_ns)
    _add_parts(sums, found.baseline, 0)
    _add_parts(sums, found.candidate, 1)
    ordered = sorted(sums.items(), key=lambda item: (-abs(item[1][1] - item[1][0]), item[0]))
    shown = [_bar(kind, name, *both) for (kind, name), both in ordered[:bars]]
    rest = [both for _, both in ordered[bars:]]
    if rest:
        shown.append(_bar("rest", REST, sum(b[0] for b in rest), sum(b[1] for b in rest)))
    sides = (found.baseline.step_ns, found.candidate.step_ns)
    uneven = [ns - sum(both[at] for both in sums.values()) for at, ns in enumerate(sides)]
    if any(uneven):
        shown.append(_bar("uneven", UNEVEN, *uneven))
    return Waterfall(
        baseline_ns=found.baseline.step_ns, candidate_ns=found.candidate.step_ns, bars=tuple(shown)
    )


def _name(module: ModuleChange) -> str:
    """What became of what: `mlp: aten::silu + aten::mul → fused_silu_mul`."""
    words = [_few(names) for names in (module.vanished, module.appeared) if names]
    what = " → ".join(words)
    if len(words) == 1:
        what = f"{what} ({module.kind})"
    return f"{module.module}: {what}" if module.module else what


def _few(names: tuple[str, ...]) -> str:
    shown = " + ".join(names[:OPERATORS_NAMED])
    more = len(names) - OPERATORS_NAMED
    return f"{shown} + {more} more" if more > 0 else shown


def _add(
    sums: dict[tuple[str, str], list[int]], kind: str, name: str, baseline: int, candidate: int
) -> None:
    have = sums.setdefault((kind, name), [0, 0])
    have[0] += baseline
    have[1] += candidate


def _add_parts(sums: dict[tuple[str, str], list[int]], side: DiffSide, at: int) -> None:
    for part in side.parts:
        sums.setdefault((part.kind, part.name), [0, 0])[at] += part.usual_ns


def _bar(kind: str, name: str, baseline: int, candidate: int) -> Bar:
    change = candidate - baseline
    return Bar(kind=kind, name=name, baseline_ns=baseline, candidate_ns=candidate, change_ns=change)
