"""Panel: how device work was launched and linked to the host."""

from __future__ import annotations

from collections.abc import Iterator

from dashboard.panels.base import Fact, Panel, no_device_work
from dashboard.panels.table import Column, Table
from profiler import units
from profiler.analysis.report import Launches, Percentiles, Report

FACTS = "dashboard/partials/panel_facts.html"
Rule = tuple[str, int]
_RULES = {
    "correlation": "correlation number of the launching call",
    "flow": "flow arrow of the recording",
    "external_id": "external number of the operator",
}


def device_ns(report: Report) -> int:
    """The sum of all device work, attributed to operators or not."""
    return report.quality.attributed_device_ns + report.quality.unattributed_device_ns


def why_empty(report: Report) -> str:
    """Launches without work are a recording without its device; the sentence says so."""
    if report.launches.calls or report.launches.linked or report.launches.unlinked:
        return ""
    return no_device_work(report)


def facts(report: Report) -> tuple[Fact, ...]:
    """Links, work from before the recording, delays, queue, graphs, blocking calls."""
    found = report.launches
    whole_ns = device_ns(report)
    return (
        *_calls(found),
        *_before(found, whole_ns),
        *_percentiles("launch delay", found.delay_ns, "ns", "end of the call to start of its work"),
        *_queue(found),
        *_graphs(found, whole_ns),
        *_blocking(found),
    )


def _calls(found: Launches) -> Iterator[Fact]:
    yield Fact(
        term="launching calls",
        shown=units.count(found.calls),
        note=f"{units.count(found.calls_with_work)} of them with recorded device work",
    )
    events = found.linked + found.unlinked
    yield Fact(
        term="device events linked to a call",
        shown=f"{units.count(found.linked)} of {units.count(events)}",
        note=f"{units.count(found.unlinked)} without one" if found.unlinked else "",
    )
    if found.short_kernels:
        yield Fact(
            term="shorter than their launch",
            shown=f"{units.count(found.short_kernels)} device events",
            note="the host takes longer to launch them than they run",
        )


def _before(found: Launches, whole_ns: int) -> Iterator[Fact]:
    if not found.before_window:
        yield Fact(term="launched before the recording", shown="none")
        return
    yield Fact(
        term="launched before the recording",
        shown=f"{units.duration(found.before_window_ns)} "
        f"({units.share(found.before_window_ns / max(whole_ns, 1))} of device time)",
        exact=f"{found.before_window_ns:,} ns",
        note=f"{units.count(found.before_window)} events whose launch the recording does not hold",
    )


def _percentiles(term: str, found: Percentiles | None, unit: str, note: str) -> Iterator[Fact]:
    if found is None:
        yield Fact(term=term, shown=units.MISSING, note="no call with exactly one piece of work")
        return
    shown = [units.quantity(value, unit) for value in (found.p50, found.p90, found.p99)]
    yield Fact(
        term=term,
        shown=f"median {shown[0]}, 90 % within {shown[1]}, 99 % within {shown[2]}",
        exact=f"{found.p50:,} / {found.p90:,} / {found.p99:,} {unit}",
        note=note,
    )


def _queue(found: Launches) -> Iterator[Fact]:
    note = "work launched and not yet started on the same stream, seen at each launch"
    for fact in _percentiles("queue depth", found.queue_depth, "count", note):
        most = f", at most {units.count(found.queue_depth_max)}" if found.queue_depth else ""
        yield Fact(term=fact.term, shown=f"{fact.shown}{most}", note=fact.note)


def _graphs(found: Launches, whole_ns: int) -> Iterator[Fact]:
    if not found.graph_calls:
        yield Fact(term="graph launches", shown="none")
        return
    yield Fact(
        term="graph launches",
        shown=f"{units.duration(found.graph_device_ns)} "
        f"({units.share(found.graph_device_ns / max(whole_ns, 1))} of device time) is opaque",
        exact=f"{found.graph_device_ns:,} ns",
        note=f"{units.count(found.graph_calls)} launches replay {units.count(found.graph_events)} "
        "device events; which operators they stand for is not recorded",
    )


def _blocking(found: Launches) -> Iterator[Fact]:
    yield Fact(
        term="blocking calls",
        shown=f"{units.count(found.blocking_calls)} calls, {units.duration(found.blocking_ns)}"
        if found.blocking_calls
        else "none",
        exact=f"{found.blocking_ns:,} ns",
        note="the host waits in them for the device" if found.blocking_calls else "",
    )


def table(report: Report) -> Table[Rule] | None:
    """By which rule device events found their launch."""
    found = report.launches
    rows = [*found.by_rule.items()]
    if found.unlinked:
        rows.append(("none", found.unlinked))
    whole = found.linked + found.unlinked
    columns: tuple[Column[Rule], ...] = (
        Column(
            key="rule",
            title="Linked by",
            value=lambda row: _RULES.get(row[0], "no launch found"),
            kind="text",
        ),
        Column(key="events", title="Device events", value=lambda row: row[1], kind="count"),
        Column(
            key="share",
            title="Share of events",
            value=lambda row: row[1] / whole if whole else None,
            kind="share",
        ),
    )
    return Table(
        name="launches",
        noun="rules",
        about="How device events found their launch; the rules are tried in this order.",
        rows=rows,
        columns=columns,
    )


PANEL = Panel(
    name="launches",
    title="Launches",
    about="from the host's call to the device's work",
    why_empty=why_empty,
    table=table,
    facts=facts,
    template=FACTS,
)
