"""The roofline of a trace as rows of its report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date

from profiler.analysis.bounds import BoundRow, PeakFacts, RooflineReport, UncountedRow
from profiler.analysis.roofline.peaks import Peaks
from profiler.analysis.roofline.table import Roofline, RooflineRow, Uncounted
from profiler.trace.vendors import rules


def roofline_report(roof: Roofline, peaks: Peaks | None) -> RooflineReport:
    """Counted operators by name, and by name with shapes and types; the rest with its share."""
    is_communication = rules().names["communication_op"].search
    moving = [row for row in roof.uncounted if is_communication(row.name)]
    silent = [row for row in roof.uncounted if not is_communication(row.name)]
    total = roof.total_ns
    by_name = [
        *_grouped(roof.rows, total, by_shapes=False),
        *(_communication(row) for row in moving),
    ]
    return RooflineReport(
        time="device" if roof.on_device else "host",
        peak=None if peaks is None else peak_facts(peaks),
        counted_share=1 - sum(r.total_ns for r in silent) / total if total else 0.0,
        operators=sorted(by_name, key=_place),
        shapes=sorted(_grouped(roof.rows, total, by_shapes=True), key=_place),
        uncounted=[_uncounted(row) for row in silent],
    )


def peaks_from(facts: PeakFacts) -> Peaks:
    """The peaks that `peak_facts` described."""
    known = facts.label in ("measured", "entered")
    return Peaks(
        device=facts.device,
        flops=facts.flops,
        bandwidth=facts.bandwidth,
        memory_bytes=facts.memory_bytes,
        origin=facts.label if known else "datasheet",
        source=facts.source,
        as_of=date.fromisoformat(facts.as_of) if facts.as_of else None,
        verified=facts.label == "datasheet",
    )


def peak_facts(peaks: Peaks) -> PeakFacts:
    """The peaks with the word that says how far to trust them."""
    label = peaks.origin if peaks.usable else "unverified"
    return PeakFacts(
        device=peaks.device,
        label=label,
        source=peaks.source,
        as_of=peaks.as_of.isoformat() if peaks.as_of is not None else None,
        flops=dict(peaks.flops),
        bandwidth=peaks.bandwidth,
        memory_bytes=peaks.memory_bytes,
    )


def _place(row: BoundRow) -> tuple[int, str, str, str]:
    return (-row.total_ns, row.name, row.shapes, row.dtypes)


def _grouped(rows: Iterable[RooflineRow], total_ns: int, *, by_shapes: bool) -> list[BoundRow]:
    """Rows that differ only in scalar arguments, or in anything but the name, together."""
    groups: dict[tuple[str, str, str], list[RooflineRow]] = {}
    for row in rows:
        made = row.signature
        key = (made.name, made.shapes, made.dtypes) if by_shapes else (made.name, "", "")
        groups.setdefault(key, []).append(row)
    return [_bound_row(key, mine, total_ns) for key, mine in groups.items()]


def _bound_row(key: tuple[str, str, str], rows: list[RooflineRow], total_ns: int) -> BoundRow:
    name, shapes, dtypes = key
    own_ns = sum(row.total_ns for row in rows)
    flops = sum(row.cost.flops * row.calls for row in rows)
    moved = sum(row.cost.size_bytes * row.calls for row in rows)
    bounds = [row.bound_ns * row.calls for row in rows if row.bound_ns is not None]
    bound_ns = sum(bounds) if len(bounds) == len(rows) else None
    return BoundRow(
        name=name,
        shapes=shapes,
        dtypes=dtypes,
        calls=sum(row.calls for row in rows),
        total_ns=own_ns,
        share=own_ns / total_ns if total_ns else 0.0,
        flops=flops,
        bytes=moved,
        flop_rate=flops / own_ns * 1e9 if own_ns else None,
        byte_rate=moved / own_ns * 1e9 if own_ns else None,
        bound=_most({row.limit: 0 for row in rows}, ((r.limit, r.total_ns) for r in rows)),
        bound_ns=round(bound_ns) if bound_ns is not None else None,
        efficiency=bound_ns / own_ns if bound_ns is not None and own_ns else None,
        dtype=_most({}, ((r.cost.dtype, r.total_ns) for r in rows)),
    )


def _most(start: Mapping[str, int], pairs: Iterable[tuple[str, int]]) -> str:
    """The word with the most time."""
    sums = dict(start)
    for word, ns in pairs:
        sums[word] = sums.get(word, 0) + ns
    return max(sums, key=lambda word: (sums[word], word))


def _communication(row: Uncounted) -> BoundRow:
    """What it moves is in the table of collectives; it has no arithmetic."""
    return BoundRow(
        name=row.name,
        calls=row.calls,
        total_ns=row.total_ns,
        share=row.share,
        flops=None,
        bytes=None,
        flop_rate=None,
        byte_rate=None,
        bound="communication",
        bound_ns=None,
        efficiency=None,
    )


def _uncounted(row: Uncounted) -> UncountedRow:
    return UncountedRow(
        name=row.name,
        calls=row.calls,
        total_ns=row.total_ns,
        share=row.share,
        reason=row.reason,
    )
