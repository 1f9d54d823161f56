"""Reads behind the pages of traces: the list, one trace, and its operator table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.db.models import F, Q, QuerySet, Sum
from django.db.models.expressions import OrderBy

from dashboard.models import Operator, Trace
from dashboard.queries.columns import constant

PAGE_SIZE = 50
OPERATORS_SIZE = 25
EXPORT_LIMIT = 50_000

TRACE_SORTS: dict[str, tuple[str, ...]] = {
    "trace": ("id",),
    "name": ("name", "id"),
    "state": ("state", "id"),
    "events": ("events", "id"),
    "span": ("span_ns", "id"),
    "size": ("raw__size_bytes", "id"),
}
OPERATOR_SORTS: dict[str, str] = {
    "name": "name",
    "calls": "count",
    "self": "host_self_ns",
    "total": "host_total_ns",
    "device_self": "device_self_ns",
    "device_total": "device_total_ns",
}
"""Columns a reader may sort by; ties are broken by the row's number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFilter:
    """What a reader asks the list of traces for."""

    state: str = ""
    source: str = ""
    text: str = ""
    sort: str = "-trace"
    page: int = 1

    @property
    def narrows(self) -> bool:
        return any((self.state, self.source, self.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePage:
    """One page of traces, and how many there are in all."""

    rows: tuple[Trace, ...]
    total: int
    page: int
    pages: int
    same: dict[str, str]
    """Columns that say the same in every row of the whole list, with what they say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorFilter:
    """What a reader asks the operator table for. `sort` empty: device self time, or host self
    time where no device was recorded."""

    text: str = ""
    sort: str = ""
    page: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRow:
    """One operator; `share` is its part of the sum of the sorted kind of self time."""

    name: str
    canonical: str
    count: int
    host_self_ns: int
    host_total_ns: int
    device_self_ns: int
    device_total_ns: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorPage:
    """One page of the operator table with the sums over the whole trace."""

    rows: tuple[OperatorRow, ...]
    total: int
    page: int
    pages: int
    first: int
    sort: str
    host_self_ns: int
    device_self_ns: int

    @property
    def on_device(self) -> bool:
        """Whether shares are of device time."""
        return self.device_self_ns > 0

    @property
    def largest_share(self) -> float:
        return max((row.share for row in self.rows), default=0.0)


_COLUMNS: dict[str, Callable[[Trace], str]] = {"device": lambda row: row.device_kind}


def get_trace(trace_id: int) -> Trace | None:
    """The trace with the rows its pages name."""
    related = (
        "raw",
        "report",
        "flame",
        "graph",
        "columns",
        "redacted",
        "uploaded_by",
        "run__workload__model",
        "run__platform",
        "pin__created_by",
    )
    return Trace.objects.select_related(*related).filter(pk=trace_id).first()


def trace_page(wanted: TraceFilter) -> TracePage:
    """The page asked for; a page past the end is the last one."""
    found = _found(wanted)
    total = found.count()
    pages = max(1, -(-total // PAGE_SIZE))
    page = min(wanted.page, pages)
    start = (page - 1) * PAGE_SIZE
    rows = found.select_related("raw", "uploaded_by", "run__workload__model")
    rows = rows.order_by(*_order(TRACE_SORTS[wanted.sort.lstrip("-")], wanted.sort))
    shown = tuple(rows[start : start + PAGE_SIZE])
    # On one of several pages equal rows say nothing of the other pages.
    same = constant(shown, _COLUMNS) if pages == 1 else {}
    return TracePage(rows=shown, total=total, page=page, pages=pages, same=same)


def _found(wanted: TraceFilter) -> QuerySet[Trace]:
    traces = Trace.objects.all()
    if wanted.state:
        traces = traces.filter(state=wanted.state)
    if wanted.source:
        traces = traces.filter(run__isnull=wanted.source == "uploaded")
    if wanted.text:
        hit = Q(name__icontains=wanted.text) | Q(reason__icontains=wanted.text)
        traces = traces.filter(hit | Q(uploaded_by__username__icontains=wanted.text))
    return traces


def _order(columns: tuple[str, ...], sort: str) -> list[OrderBy]:
    down = sort.startswith("-")
    return [F(c).desc(nulls_last=True) if down else F(c).asc(nulls_last=True) for c in columns]


def operator_page(trace: Trace, wanted: OperatorFilter) -> OperatorPage:
    """The page asked for, with sums over every operator of the trace."""
    sums = trace.operators.aggregate(host=Sum("host_self_ns"), device=Sum("device_self_ns"))
    host_ns, device_ns = sums["host"] or 0, sums["device"] or 0
    sort = wanted.sort or ("-device_self" if device_ns else "-self")
    found = _operators(trace, wanted.text, sort)
    total = found.count()
    pages = max(1, -(-total // OPERATORS_SIZE))
    page = min(wanted.page, pages)
    start = (page - 1) * OPERATORS_SIZE
    return OperatorPage(
        rows=tuple(_row(row, host_ns, device_ns) for row in found[start : start + OPERATORS_SIZE]),
        total=total,
        page=page,
        pages=pages,
        first=start + 1 if total else 0,
        sort=sort,
        host_self_ns=host_ns,
        device_self_ns=device_ns,
    )


def operator_export(trace: Trace, wanted: OperatorFilter) -> QuerySet[Operator]:
    """Every operator the filter leaves, in the order of the page."""
    return _operators(trace, wanted.text, wanted.sort or "-device_self")[:EXPORT_LIMIT]


def _operators(trace: Trace, text: str, sort: str) -> QuerySet[Operator]:
    found = trace.operators.filter(name__icontains=text) if text else trace.operators.all()
    sign = "-" if sort.startswith("-") else ""
    column = OPERATOR_SORTS[sort.removeprefix("-")]
    # Without a device every device time is zero: host self time then decides.
    return found.order_by(f"{sign}{column}", "-host_self_ns", "id")


def _row(row: Operator, host_ns: int, device_ns: int) -> OperatorRow:
    part, whole = (row.device_self_ns, device_ns) if device_ns else (row.host_self_ns, host_ns)
    return OperatorRow(
        name=row.name,
        canonical=row.canonical,
        count=row.count,
        host_self_ns=row.host_self_ns,
        host_total_ns=row.host_total_ns,
        device_self_ns=row.device_self_ns,
        device_total_ns=row.device_total_ns,
        share=part / whole if whole else 0.0,
    )
