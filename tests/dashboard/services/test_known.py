"""What the reader of a run's trace is told beside it."""

from __future__ import annotations

import pytest

from dashboard.models import NoiseFloor, Run, RunState, Trace
from dashboard.services.known import known_of
from dashboard.services.traces import claim_trace
from profiler.analysis.bounds import TypicalCall
from profiler.types import RunSpec
from tests import factories
from tests.dashboard.services import scene

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store_root")]


def past(value: float, median_ns: int, environment: str = "a" * 64) -> Run:
    """A run that succeeded, with the trace of rank 0 read."""
    run = factories.make_run(RunState.SUCCEEDED)
    factories.make_result(run, value=value, comparable_hash=environment)
    call = TypicalCall(name="aten::mm", calls=3, median_ns=median_ns, noise_ns=10)
    factories.make_ready_trace(run=run, report=factories.make_report(typical=[call]))
    return run


def present(spec: RunSpec | None = None) -> Trace:
    run = factories.make_run(RunState.SUCCEEDED, spec=spec)
    factories.make_result(run)
    return factories.make_trace(run=run)


def test_it_passes_the_calls_of_the_best_comparable_run() -> None:
    past(9e6, 900)
    best = past(5e6, 500)
    past(7e6, 700)
    known = known_of(present())
    assert known is not None
    assert known.past_run == f"run {best.pk}"
    assert [call.median_ns for call in known.past] == [500]


def test_it_leaves_other_environments_and_later_runs_out() -> None:
    past(5e6, 500, "c" * 64)
    trace = present()
    past(4e6, 400)
    known = known_of(trace)
    assert known is not None
    assert (known.past, known.past_run) == ([], "")


def test_it_goes_on_without_a_past_whose_report_is_gone() -> None:
    run = past(5e6, 500)
    Trace.objects.filter(run=run).update(report=factories.make_artifact(b"not stored"))
    known = known_of(present())
    assert known is not None
    assert known.past == []


def test_it_passes_type_noise_floor_and_entered_peaks() -> None:
    spec = factories.make_spec(peak_flops=2e12, peak_bandwidth=3e10)
    trace = present(spec)
    assert trace.run is not None
    NoiseFloor.objects.create(
        group=factories.make_group(),
        platform=trace.run.platform,
        workload=trace.run.workload,
        metric="tpot",
        n=8,
        floor=0.012,
        worst=0.02,
        comparable_hash="a" * 64,
        measured_at=trace.created_at,
    )
    known = known_of(trace)
    assert known is not None
    assert known.peak is not None
    assert (known.dtype, known.noise) == (spec.dtype, 0.012)
    assert known.step_ns == 7.62e6, "the headline metric: what a step takes without a profiler"
    assert (known.peak.label, known.peak.bandwidth) == ("entered", 3e10)
    assert known.peak.flops == {spec.dtype: 2e12}


def test_a_claim_carries_it_and_an_upload_has_none() -> None:
    mine, upload = present(), factories.make_trace()
    claims = [claim_trace(trace.pk, 1, scene.WORKER) for trace in (mine, upload)]
    assert claims[0] is not None and claims[0].known is not None
    assert claims[1] is not None and claims[1].known is None
