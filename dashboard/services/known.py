"""What the reader of a run's trace is told: peaks, noise floor, the best comparable past run."""

from __future__ import annotations

import logging

import msgspec

from dashboard.models import MetricValue, NoiseFloor, Run, RunState, Trace, TraceState
from dashboard.services import artifacts
from dashboard.services.calibrations import measured_peaks
from profiler.analysis.bounds import PeakFacts
from profiler.analysis.known import Known
from profiler.analysis.report import Report
from profiler.metrics import HEADLINE, METRICS

logger = logging.getLogger(__name__)


def known_of(trace: Trace) -> Known | None:
    """For the trace of a run; None for one that was uploaded without."""
    run = Run.objects.select_related("workload").filter(traces=trace).first()
    if run is None:
        return None
    best = _best_trace(run, trace.rank)
    report = _report(best) if best is not None else None
    past_run = best.run if best is not None and report is not None else None
    return Known(
        dtype=run.workload.dtype,
        noise=_noise(run),
        step_ns=_timed(run),
        peak=_peak(run),
        past=report.typical if report is not None else [],
        past_run=f"run {past_run.pk}" if past_run is not None else "",
        past_commit=past_run.commit.sha if past_run is not None and past_run.commit else "",
    )


def _environment(run: Run) -> str:
    return str(run.result.comparable_hash) if hasattr(run, "result") else ""


def _best_trace(run: Run, rank: int) -> Trace | None:
    """Of the best earlier run with the same workload, platform and comparable environment."""
    metric = HEADLINE[run.workload.scenario]
    best = "value" if METRICS[metric].direction == "lower" else "-value"
    rows = MetricValue.objects.filter(
        name=metric,
        result__comparable_hash=_environment(run),
        result__run__workload=run.workload_id,
        result__run__platform=run.platform_id,
        result__run__state=RunState.SUCCEEDED,
        result__run__traces__state=TraceState.READY,
        result__run__traces__rank=rank,
        result__run_id__lt=run.pk,
    )
    found = rows.order_by(best, "result__run_id").values_list("result__run_id", flat=True).first()
    if found is None:
        return None
    traces = Trace.objects.select_related("report", "run__commit")
    return traces.get(run=found, rank=rank)


def _report(trace: Trace) -> Report | None:
    """None when it is gone or of a shape of before: then there is no past to hold against."""
    if trace.report is None:
        return None
    try:
        return msgspec.json.decode(artifacts.read(trace.report.sha256), type=Report)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        logger.warning("the report of trace %d cannot be read: no past to compare with", trace.pk)
        return None


def _noise(run: Run) -> float:
    """The newest floor of this workload here; 0 where none was measured."""
    floor = NoiseFloor.objects.filter(
        platform=run.platform_id,
        workload=run.workload_id,
        metric=HEADLINE[run.workload.scenario],
    ).first()
    return floor.floor if floor is not None else 0.0


def _timed(run: Run) -> float | None:
    """The step of the run without a profiler: its headline metric, None before it has a result."""
    values = MetricValue.objects.filter(result__run=run, name=HEADLINE[run.workload.scenario])
    return values.values_list("value", flat=True).first()


def _peak(run: Run) -> PeakFacts | None:
    """What was entered with the run, else measured there; without it the reader's catalogue."""
    flops, bandwidth = run.spec.get("peak_flops"), run.spec.get("peak_bandwidth")
    if not flops and not bandwidth:
        return measured_peaks(run.platform_id)
    return PeakFacts(
        device=run.spec.get("device") or "",
        label="entered",
        source=f"entered with run {run.pk}",
        flops={run.workload.dtype: float(flops)} if flops else {},
        bandwidth=float(bandwidth) if bandwidth else None,
    )
