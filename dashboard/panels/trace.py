"""Panels of one trace together, as its own page and the page of its run show them."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.forms.traces import OperatorFilterForm
from dashboard.models import Trace, TraceState
from dashboard.panels.flame import FlamePanel, flame_panel
from dashboard.panels.operators import OperatorsPanel, operators_panel
from dashboard.panels.timeline import DeviceBar, device_bars
from dashboard.queries.reports import read_report
from profiler.analysis.report import KernelRow, Report, ThreadRow
from profiler.errors import UserError

KERNELS_SHOWN = 50
THREADS_SHOWN = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class TopOperator:
    """The operator that takes the largest share of the self time of all."""

    name: str
    self_ns: int
    share: float
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePanels:
    """Everything that was read from a trace; `problem` says why the report is missing."""

    row: Trace
    operators: OperatorsPanel | None = None
    flame: FlamePanel | None = None
    report: Report | None = None
    problem: str = ""
    devices: tuple[DeviceBar, ...] = ()
    top: TopOperator | None = None

    @property
    def ready(self) -> bool:
        return self.row.state == TraceState.READY

    @property
    def threads(self) -> tuple[ThreadRow, ...]:
        """Threads that ran operators, the busiest first."""
        found = [row for row in (self.report.threads if self.report else ()) if row.union_ns]
        return tuple(sorted(found, key=lambda row: -row.union_ns)[:THREADS_SHOWN])

    @property
    def kernels(self) -> tuple[KernelRow, ...]:
        """Device work by name, the longest in all first."""
        return tuple(self.report.kernels[:KERNELS_SHOWN]) if self.report else ()

    @property
    def kernels_total_ns(self) -> int:
        return sum(row.total_ns for row in self.report.kernels) if self.report else 0


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


def trace_panels(trace: Trace, form: OperatorFilterForm) -> TracePanels:
    """The panels; a report that cannot be read takes none of the others with it."""
    if trace.state != TraceState.READY or trace.report is None:
        return TracePanels(row=trace)
    report, problem = None, ""
    try:
        report = read_report(trace.report.sha256)
    except UserError as error:
        problem = error.line()
    return TracePanels(
        row=trace,
        operators=operators_panel(trace, form),
        flame=flame_panel(trace),
        report=report,
        problem=problem,
        devices=device_bars(report) if report else (),
        top=_top(report) if report else None,
    )
