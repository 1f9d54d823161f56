"""Operators of one trace against the roofline: which calls count, their cost, time and bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.analysis.operators import OperatorTimes, operator_times
from profiler.analysis.roofline.calls import parse_call
from profiler.analysis.roofline.cost import Cost
from profiler.analysis.roofline.peaks import Peaks
from profiler.analysis.roofline.registry import cost_of, has_formula, is_matrix
from profiler.trace.batch import Bool, Int32
from profiler.trace.clock import Int64
from profiler.trace.codes import grouped
from profiler.trace.link import Structure
from profiler.trace.model import Trace
from profiler.trace.nest import nearest

LAUNCH_FLOOR_NS = 3_000
"""What starting one kernel takes on any device of today; below twice this, launching decides."""


@dataclass(frozen=True, slots=True)
class Signature:
    """One operator with one set of inputs (JSON texts as recorded)."""

    name: str
    shapes: str
    dtypes: str
    scalars: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineRow:
    """All counted calls of one signature.

    `total_ns` is device time of the calls with everything inside them, on a
    CPU their host time. `bound_ns` is the least time of one call, None where
    the deciding peak is not known or not verified; `efficiency` is bound over
    measured. `limit` is one of compute, memory, launch, host (no device time,
    or on a processor a call too short for anything but its dispatch), unknown.
    """

    signature: Signature
    calls: int
    total_ns: int
    cost: Cost
    bound_ns: float | None
    limit: str
    efficiency: float | None
    flop_rate: float
    read_rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncounted:
    """An operator without a formula, or whose inputs do not say enough, with its share of time."""

    name: str
    calls: int
    total_ns: int
    share: float
    reason: str


@dataclass(frozen=True, slots=True)
class Roofline:
    """Costs of a trace's operators.

    `signature` gives per position of `Structure.ops` the index into
    `signatures` of its counted call, -1 for calls that are not counted on
    their own; `timed` that of every call with time of its own, counted or
    not; `costs` are aligned with `signatures`. `time_ns` is per position:
    device time (`on_device`), else host time; `total_ns` that of all operators.
    """

    rows: tuple[RooflineRow, ...]
    uncounted: tuple[Uncounted, ...]
    signatures: tuple[Signature, ...]
    costs: tuple[Cost, ...]
    signature: Int64
    timed: Int64
    time_ns: Int64
    counted_share: float
    on_device: bool
    total_ns: int


def roofline(
    trace: Trace,
    structure: Structure,
    peaks: Peaks | None = None,
    times: OperatorTimes | None = None,
) -> Roofline:
    """The roofline of a trace; without usable peaks every bound is None.

    A matrix operator counts as a whole with all it calls; of other operators
    the innermost with a formula counts, so no time counts twice. `times` are
    those of `operator_times` where they are known already.
    """
    times = times or operator_times(trace, structure)
    on_device = bool(times.device_total.any())
    time_ns = times.device_total if on_device else times.host_total
    number, signatures = _signatures(trace, structure)
    costs = [_cost(signature) for signature in signatures]
    known = np.fromiter((c is not None for c in costs), np.bool_, len(costs))
    has_cost = known[number] if len(costs) else np.zeros(0, np.bool_)
    matrix = np.fromiter((is_matrix(s.name) for s in signatures), np.bool_, len(signatures))
    counted = _counted(structure, has_cost, matrix[number] if len(costs) else has_cost)
    signature = np.where(counted, number, -1)
    usable = peaks if peaks is not None and peaks.usable else None
    sums = _sums(signature, time_ns, len(signatures))
    rows = _rows(sums, signatures, costs, peaks=usable, on_device=on_device)
    kept = tuple(c if c is not None else _NOTHING for c in costs)
    own = _own_times(structure, times, counted, on_device=on_device)
    total = int(own.sum())
    uncounted = _uncounted(signature, own, signatures, number)
    missing = sum(row.total_ns for row in uncounted)
    return Roofline(
        rows=rows,
        uncounted=uncounted,
        signatures=tuple(signatures),
        costs=kept,
        signature=signature,
        timed=np.where(counted | (own > 0), number, -1),
        time_ns=time_ns,
        counted_share=1 - missing / total if total else 0.0,
        on_device=on_device,
        total_ns=total,
    )


_NOTHING = Cost(flops=0, size_bytes=0, unit="move", dtype="float32")


def _signatures(trace: Trace, structure: Structure) -> tuple[Int64, list[Signature]]:
    """Per position of `ops` the number of its signature, and the signatures."""
    events, rows = trace.events, structure.ops.rows
    codes = [events.name[rows].astype(np.int64)]
    number = codes[0]
    found, number = grouped(number, len(trace.strings))
    for column in ("shapes", "dtypes", "concrete"):
        codes.append(np.full(len(rows), -1, np.int64))
        if column in events.sparse and len(events.sparse[column].rows):
            codes[-1] = events.dense(column)[rows]
            used, place = grouped(codes[-1] + 1, len(trace.strings) + 1)
            found, number = grouped(number * len(used) + place, len(found) * len(used))
    first = np.empty(len(found), np.int64)
    first[number] = np.arange(len(number))
    texts = [*trace.strings, ""]
    made = [Signature(*(texts[int(column[at])] for column in codes)) for at in first.tolist()]
    return number, made


def _cost(signature: Signature) -> Cost | None:
    if not signature.shapes or not has_formula(signature.name):
        return None
    try:
        call = parse_call(signature.name, signature.shapes, signature.dtypes, signature.scalars)
    except ValueError:
        return None
    return cost_of(call)


def _counted(structure: Structure, has_cost: Bool, matrix: Bool) -> Bool:
    parent = structure.ops.parent
    heavy = has_cost & matrix
    counted_matrix = heavy & ~_above(parent, heavy)
    inside = nearest(parent, counted_matrix) >= 0 if len(parent) else has_cost
    light = has_cost & ~matrix & ~inside
    return np.asarray(counted_matrix | (light & ~_above(parent, light | counted_matrix)))


def _above(parent: Int32, chosen: Bool) -> Bool:
    """Positions that have a chosen one somewhere inside them."""
    out = np.zeros(len(parent), np.bool_)
    at = parent[chosen]
    while len(at):
        at = at[at >= 0]
        at = np.unique(at[~out[at]])
        out[at] = True
        at = parent[at]
    return out


def _sums(signature: Int64, time_ns: Int64, size: int) -> tuple[Int64, Int64]:
    """Calls and time of each signature."""
    chosen = signature >= 0
    total = np.zeros(size, np.int64)
    np.add.at(total, signature[chosen], time_ns[chosen])
    return np.bincount(signature[chosen], minlength=size), total


def _rows(
    sums: tuple[Int64, Int64],
    signatures: list[Signature],
    costs: list[Cost | None],
    *,
    peaks: Peaks | None,
    on_device: bool,
) -> tuple[RooflineRow, ...]:
    calls, total = (column.tolist() for column in sums)
    out = []
    for at, cost in enumerate(costs):
        if cost is None or not calls[at]:
            continue
        limit = _limit(cost, total[at] / calls[at], peaks, on_device=on_device)
        out.append(_row(signatures[at], (calls[at], total[at]), cost, peaks=peaks, limit=limit))
    return tuple(sorted(out, key=lambda row: (-row.total_ns, row.signature.name)))


def _limit(cost: Cost, each_ns: float, peaks: Peaks | None, *, on_device: bool) -> str:
    if not each_ns or each_ns < 2 * LAUNCH_FLOOR_NS:
        return "launch" if on_device and each_ns else "host"
    if peaks is None or peaks.bound_ns(cost) is None:
        return "unknown"
    return peaks.limited_by(cost)


def _row(
    signature: Signature,
    sums: tuple[int, int],
    cost: Cost,
    *,
    peaks: Peaks | None,
    limit: str,
) -> RooflineRow:
    calls, total_ns = sums
    each = total_ns / calls
    bound = peaks.bound_ns(cost) if peaks is not None else None
    return RooflineRow(
        signature=signature,
        calls=calls,
        total_ns=total_ns,
        cost=cost,
        bound_ns=bound,
        limit=limit,
        efficiency=bound / each if bound is not None and each else None,
        flop_rate=cost.flops / each * 1e9 if each else 0.0,
        read_rate=cost.size_bytes / each * 1e9 if each else 0.0,
    )


def _own_times(
    structure: Structure, times: OperatorTimes, counted: Bool, *, on_device: bool
) -> Int64:
    """Self times, with those inside counted calls moved to the counted call."""
    own = (times.device_self if on_device else times.host_self).copy()
    if not len(own):
        return own
    home = nearest(structure.ops.parent, counted)
    inside = (home >= 0) & ~counted
    np.add.at(own, home[inside], own[inside])
    own[inside] = 0
    return own


def _uncounted(
    signature: Int64, own: Int64, signatures: list[Signature], number: Int64
) -> tuple[Uncounted, ...]:
    total = int(own.sum())
    groups: dict[str, list[int]] = {}
    reasons: dict[str, str] = {}
    left = np.flatnonzero((signature < 0) & (own > 0))
    calls = np.bincount(number[left], minlength=len(signatures)).tolist()
    sums = np.zeros(len(signatures), np.int64)
    np.add.at(sums, number[left], own[left])
    for at in np.unique(number[left]).tolist():
        group = groups.setdefault(signatures[at].name, [0, 0])
        group[0] += calls[at]
        group[1] += int(sums[at])
        reasons.setdefault(signatures[at].name, _reason(signatures[at]))
    rows = [
        Uncounted(name=n, calls=c, total_ns=ns, share=ns / total, reason=reasons[n])
        for n, (c, ns) in groups.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.total_ns, row.name)))


def _reason(signature: Signature) -> str:
    if not has_formula(signature.name):
        return "no formula"
    return "its inputs do not say enough" if signature.shapes else "shapes were not recorded"
