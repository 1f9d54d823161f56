"""Reads behind the page of a set of traces: its ranks, and what comparing them gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from dashboard.models import Run, Trace, TraceSet, TraceState
from dashboard.queries.replays import read_steps
from dashboard.queries.reports import read_report
from dashboard.services import artifacts
from profiler.analysis.bounds import SplitRow
from profiler.analysis.findings.imbalance import cause, of_set
from profiler.analysis.findings.types import Finding
from profiler.analysis.report import CollectiveRow, RankRow, RankSet, Report
from profiler.errors import TraceError, UserError

KEPT = 4
CALLS_LIMIT = 200_000
"""Collectives compared over all ranks together, so that a page stays quick."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankView:
    """One rank of a set: its trace, and what is known of it once it was read."""

    number: int
    trace: Trace
    report: Report | None
    compared: RankRow | None
    problem: str
    straggles: bool

    @property
    def span_ns(self) -> int | None:
        return self.report.span_ns if self.report else None

    @property
    def busy_ns(self) -> int | None:
        """Work of the devices; without one, what the host computes and waits for in its steps."""
        if not self._on_host:
            return self._summed("busy_ns")
        return sum(row.compute_ns + row.exposed_comm_ns for row in self._on_host)

    @property
    def busy_share(self) -> float | None:
        """Busy time by the span of the devices, or by the steps of the host."""
        spans = sum(row.span_ns for row in self._on_host)
        whole = spans if self._on_host else self._summed("span_ns")
        return (self.busy_ns or 0) / whole if whole else None

    @property
    def comm_ns(self) -> int | None:
        return self._summed("comm_ns")

    @property
    def exposed_comm_ns(self) -> int | None:
        """Communication that no compute hides."""
        if not self._on_host:
            return self._summed("exposed_comm_ns")
        return sum(row.exposed_comm_ns for row in self._on_host)

    @property
    def _on_host(self) -> tuple[SplitRow, ...]:
        """Steps of a rank without a device, split into compute, communication and the rest."""
        rows = self.report.splits if self.report else ()
        return tuple(row for row in rows if row.kind == "step" and not row.device)

    @property
    def slowest(self) -> CollectiveRow | None:
        """The collective that takes most time on this rank."""
        return self.report.collectives[0] if self.report and self.report.collectives else None

    @property
    def kernels_missing(self) -> bool:
        """Whether work was launched but none recorded: then nothing is known of its device."""
        return bool(self.report and self.report.launches.calls and not self.report.timeline)

    def _summed(self, name: str) -> int | None:
        """A field of the timeline over all devices; None where no device work was recorded."""
        if self.report is None or not self.report.timeline:
            return None
        return sum(int(getattr(row, name)) for row in self.report.timeline)


@dataclass(frozen=True, slots=True, kw_only=True)
class RanksView:
    """All ranks together. `why_not` says why they are not compared.

    `uneven` is what even ranks would win, priced on the lowest rank that waits; None where they
    are even, or there are no steps to price it on (`unpriced` says what is wrong with them).
    """

    rows: tuple[RankView, ...]
    compared: RankSet | None
    why_not: str
    renumbered: bool
    uneven: Finding | None = None
    unpriced: str = ""

    @property
    def waiting(self) -> int:
        return sum(not row.trace.is_terminal for row in self.rows)

    @property
    def progress(self) -> str:
        """How far reading has come, in words."""
        read = sum(row.trace.state == TraceState.READY for row in self.rows)
        return f"{read} of {len(self.rows)} ranks read"

    @property
    def left_out(self) -> tuple[int, ...]:
        """Ranks that were read but could not be compared with the others."""
        if self.compared is None:
            return ()
        return tuple(row.number for row in self.rows if row.report and not row.compared)

    @property
    def most_shift_ns(self) -> int:
        """The largest clock shift between two ranks."""
        shifts = [row.clock_shift_ns for row in self.compared.ranks] if self.compared else [0]
        return max(shifts) - min(shifts)


def get_set(set_id: int) -> TraceSet | None:
    """The set with who uploaded it."""
    return TraceSet.objects.select_related("uploaded_by").filter(pk=set_id).first()


def rank_traces(owner: TraceSet | Run) -> tuple[Trace, ...]:
    """The traces of a set or a run, by rank and then in the order they came."""
    related = ("raw", "report", "collectives", "replay")
    return tuple(owner.traces.select_related(*related).order_by("rank", "id"))


def ranks_view(traces: Sequence[Trace]) -> RanksView:
    """Every rank with its report; compared as soon as two of them were read.

    Where two files claim the same rank, all are numbered in the order they came.
    """
    renumbered = len({trace.rank for trace in traces}) < len(traces)
    ordered = sorted(traces, key=lambda trace: trace.pk) if renumbered else traces
    numbered = list(enumerate(ordered)) if renumbered else [(row.rank, row) for row in ordered]
    read = [(number, trace, *_report(trace)) for number, trace in numbered]
    ready = tuple((number, trace.pk) for number, trace, report, _ in read if report)
    compared, why_not = _compared(ready, [trace for _, trace, report, _ in read if report])
    rows = {row.rank: row for row in compared.ranks} if compared else {}
    straggler = compared.straggler if compared else None
    steps = {n: row.replay.sha256 for n, row in numbered if row.replay and n in rows}
    uneven, unpriced = _uneven(steps, compared) if compared else (None, "")
    return RanksView(
        rows=tuple(
            RankView(
                number=number,
                trace=trace,
                report=report,
                compared=rows.get(number),
                problem=problem,
                straggles=straggler is not None and straggler == number,
            )
            for number, trace, report, problem in read
        ),
        compared=compared,
        why_not=why_not,
        renumbered=renumbered,
        uneven=uneven,
        unpriced=unpriced,
    )


def _uneven(steps: Mapping[int, str], compared: RankSet) -> tuple[Finding | None, str]:
    """Priced on the lowest rank that waits for another, and why it cannot be."""
    subject = cause(compared)
    waiting = sorted(steps, key=lambda number: (number == subject, number))
    if subject is None or not waiting:
        return None, ""
    try:
        found = of_set(read_steps(steps[waiting[0]]), compared, waiting[0])
    except UserError as error:
        return None, error.line()
    return found, ""


def _report(trace: Trace) -> tuple[Report | None, str]:
    if trace.state != TraceState.READY or trace.report is None:
        return None, ""
    try:
        return read_report(trace.report.sha256), ""
    except UserError as error:
        return None, error.line()


def _compared(
    ready: tuple[tuple[int, int], ...], traces: Sequence[Trace]
) -> tuple[RankSet | None, str]:
    if len(ready) < 2:
        return None, "Ranks are compared once two of them have been read."
    hashes = tuple(
        (number, row.report.sha256 if row.report else "", row.collectives.sha256)
        for (number, _), row in zip(ready, traces, strict=True)
        if row.collectives
    )
    if len(hashes) < 2:
        return None, "No communication between ranks was recorded, so they cannot be aligned."
    try:
        return compare(hashes), ""
    except UserError as error:
        return None, error.line()


@lru_cache(maxsize=KEPT)
def compare(ranks: tuple[tuple[int, str, str], ...]) -> RankSet:
    """Ranks as (number, hash of the report, hash of the collectives); raises `UserError`."""
    # Loaded with the first set that is looked at: most web processes never need them.
    from profiler.analysis.calls import load_calls
    from profiler.analysis.ranks import RankInput, rank_set

    most = CALLS_LIMIT // len(ranks)
    inputs = []
    for number, report_hash, calls_hash in ranks:
        report = read_report(report_hash)
        try:
            calls = load_calls(artifacts.read(calls_hash), most)
        except OSError as error:
            reason = error.strerror or str(error)
            raise TraceError(
                f"The collectives of rank {number} cannot be read: {reason}", "read it again"
            ) from None
        inputs.append(RankInput(number, report, calls, report.trace.base_ns))
    return rank_set(inputs)
