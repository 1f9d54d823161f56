"""Panels of one trace together, as its own page and the page of its run show them.

The first ones are drawn with the page; the others load by themselves, so that
none waits for another and none takes another with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dashboard.forms.traces import OperatorFilterForm
from dashboard.models import Trace, TraceState
from dashboard.panels.base import KERNELS_MISSING, Panel, no_device_work
from dashboard.panels.findings import FindingsPanel, findings_panel
from dashboard.panels.flame import FlamePanel, GraphPanel, flame_panel, graph_panel
from dashboard.panels.operators import OperatorsPanel, operators_panel
from dashboard.panels.privacy import found_kinds
from dashboard.panels.registry import ORDER
from dashboard.panels.timeline import DeviceBar, device_bars
from dashboard.queries.reports import read_report
from profiler.analysis.report import Report
from profiler.errors import UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class TopOperator:
    """The operator that takes the largest share of the self time of all."""

    name: str
    self_ns: int
    share: float
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """Panels the trace has nothing for, all for the same reason."""

    titles: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePanels:
    """Everything that was read from a trace; `problem` says why the report is missing."""

    row: Trace
    operators: OperatorsPanel | None = None
    flame: FlamePanel | None = None
    graph: GraphPanel | None = None
    problem: str = ""
    devices: tuple[DeviceBar, ...] = ()
    no_device: str = ""
    top: TopOperator | None = None
    findings: FindingsPanel | None = None
    private: str = ""
    later: tuple[Panel, ...] = ()
    absent: tuple[Absent, ...] = ()

    @property
    def ready(self) -> bool:
        return self.row.state == TraceState.READY

    @property
    def gives_secrets_away(self) -> bool:
        """Whether the raw file holds more than names: credentials or a whole environment."""
        return "credential" in self.private or "environment" in self.private

    @property
    def kernels_missing(self) -> bool:
        """Whether work was launched that the recording does not hold."""
        return self.no_device.startswith(KERNELS_MISSING)

    @property
    def no_device_reason(self) -> str:
        """Why there is no device work, without the words that the heading already says."""
        return self.no_device.removeprefix(KERNELS_MISSING).strip()


def _top(report: Report) -> TopOperator | None:
    """The operator with the most device self time, or host self time without a device."""
    on_device = any(row.device_self_ns for row in report.operators)
    times = [row.device_self_ns if on_device else row.host_self_ns for row in report.operators]
    whole = sum(times)
    if not whole:
        return None
    place = max(range(len(times)), key=times.__getitem__)
    return TopOperator(
        name=report.operators[place].name,
        self_ns=times[place],
        share=times[place] / whole,
        where="device" if on_device else "host",
    )


def _absent(reasons: dict[str, str]) -> Iterator[Absent]:
    """Panels without content, those with the same reason together."""
    for reason in dict.fromkeys(filter(None, reasons.values())):
        titles = tuple(panel.title for panel in ORDER if reasons[panel.name] == reason)
        yield Absent(titles=titles, reason=reason)


def trace_panels(trace: Trace, form: OperatorFilterForm) -> TracePanels:
    """The panels; a report that cannot be read takes none of the others with it."""
    if trace.state != TraceState.READY or trace.report is None:
        return TracePanels(row=trace)
    operators, flame = operators_panel(trace, form), flame_panel(trace)
    try:
        report = read_report(trace.report.sha256)
    except UserError as error:
        graph = graph_panel(trace, None)
        return TracePanels(
            row=trace, operators=operators, flame=flame, graph=graph, problem=error.line()
        )
    reasons = {panel.name: panel.why_empty(report) for panel in ORDER}
    return TracePanels(
        row=trace,
        operators=operators,
        flame=flame,
        graph=graph_panel(trace, report.quality),
        devices=device_bars(report),
        no_device=no_device_work(report),
        top=_top(report),
        findings=findings_panel(report, trace),
        private=found_kinds(report),
        later=tuple(panel for panel in ORDER if not reasons[panel.name]),
        absent=tuple(_absent(reasons)),
    )
