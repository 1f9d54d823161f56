"""Several ranks of one run: clocks aligned by their collectives, waiting, and the straggler."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from profiler import units
from profiler.analysis.collectives import Calls
from profiler.analysis.launches import percentiles
from profiler.analysis.report import RankRow, RankSet, Report
from profiler.trace.clock import Int64


@dataclass(slots=True)
class RankInput:
    """What the comparison needs of one rank; `base_ns` is added to its times."""

    rank: int
    report: Report
    calls: Calls
    base_ns: int


@dataclass(slots=True)
class Matched:
    """Collectives found on every rank: (instances, ranks) arrays of starts and durations."""

    start: Int64
    dur: Int64


def rank_set(inputs: list[RankInput]) -> RankSet:
    """Align and compare ranks.

    The n-th call of a collective (kind and group) is the same instance on all
    ranks. Nobody can leave before the last one has arrived, so ends coincide:
    that aligns the clocks, and the shortest duration is the transfer, the rest
    of each duration waiting. The rank with the shortest duration came last;
    the straggler is the rank the others waited for longest in sum.
    """
    matched = _match(inputs)
    count = len(inputs)
    shift = np.zeros(count, np.int64)
    waited = np.zeros(count, np.int64)
    late = np.zeros(count, np.int64)
    skew = np.empty(0, np.int64)
    if len(matched.dur):
        end = matched.start + matched.dur
        shift = np.median(end - end[:, :1], axis=0).astype(np.int64)
        aligned = matched.start - shift
        skew = aligned.max(axis=1) - aligned.min(axis=1)
        shortest = matched.dur.min(axis=1, keepdims=True)
        waited = (matched.dur - shortest).sum(axis=0)
        last = matched.dur.argmin(axis=1)
        others = (matched.dur - shortest).sum(axis=1) // max(count - 1, 1)
        np.add.at(late, last, others)
    straggler = inputs[int(late.argmax())].rank if late.any() else None
    rows = [_row(one, int(shift[n]), int(late[n]), int(waited[n])) for n, one in enumerate(inputs)]
    return RankSet(
        ranks=rows,
        straggler=straggler,
        matched_collectives=len(matched.dur),
        skew_ns=percentiles(skew),
        explanation=_explanation(rows, straggler, len(matched.dur)),
    )


def _match(inputs: list[RankInput]) -> Matched:
    """Instances every rank has, in the order of the first rank."""
    tables = []
    for one in inputs:
        seen: Counter[tuple[str, int]] = Counter()
        table = {}
        groups = {g: n for n, g in enumerate(dict.fromkeys(one.calls.group.tolist()))}
        columns = (one.calls.group, one.calls.ts, one.calls.dur)
        for kind, (group, ts, dur) in zip(
            one.calls.kind, zip(*(c.tolist() for c in columns), strict=True), strict=True
        ):
            key = (kind, groups[group])
            table[(*key, seen[key])] = (ts + one.base_ns, dur)
            seen[key] += 1
        tables.append(table)
    keys = [key for key in tables[0] if all(key in table for table in tables[1:])]
    cells = np.array([[table[key] for table in tables] for key in keys], np.int64)
    if not len(cells):
        empty = np.empty((0, len(inputs)), np.int64)
        return Matched(empty, empty)
    return Matched(cells[:, :, 0], cells[:, :, 1])


def _row(one: RankInput, shift: int, late: int, waited: int) -> RankRow:
    timeline = one.report.timeline
    return RankRow(
        rank=one.rank,
        path=one.report.trace.path,
        span_ns=one.report.span_ns,
        busy_ns=sum(row.busy_ns for row in timeline),
        comm_ns=sum(row.comm_ns for row in timeline),
        exposed_comm_ns=sum(row.exposed_comm_ns for row in timeline),
        compute_ns=sum(row.compute_ns for row in timeline),
        clock_shift_ns=shift,
        late_ns=late,
        waited_ns=waited,
    )


def _explanation(rows: list[RankRow], straggler: int | None, matched: int) -> str:
    if straggler is None:
        return (
            "no collective was found on every rank"
            if not matched
            else "no rank arrived later than the others"
        )
    mine = next(row for row in rows if row.rank == straggler)
    return (
        f"rank {straggler} arrived last: the other ranks waited "
        f"{units.duration(mine.late_ns)} for it on average over {units.count(matched)} collectives"
    )
