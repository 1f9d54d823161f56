"""Reads of the tuning loop: the roofline, amounts, calibration, today's trace."""

from __future__ import annotations

import pytest

from dashboard.models import Iteration, MetricValue, Run, RunState, Standing, TraceState
from dashboard.queries.tuning_calibration import SAID_FROM, calibration
from dashboard.queries.tuning_ceiling import at_share, newest_of, share_at
from dashboard.queries.tuning_next import todays_trace
from dashboard.queries.tuning_target import amount
from dashboard.services.tuning import TuningError
from profiler.metrics import METRICS
from tests.factories import make_metric, make_platform, make_result, make_run, make_trace
from tests.tunings import make_iteration, make_kept, make_tuning, measure, revert

TPOT = METRICS["tpot"]


def measured(value: float, **shares: float) -> Run:
    run = make_run(RunState.SUCCEEDED)
    result = make_result(run, value=value)
    for name, share in shares.items():
        make_metric(result, name, value=share)
    return run


@pytest.mark.django_db
def test_the_ceiling_is_from_the_newest_run() -> None:
    measured(9e6, mbu=0.1)
    run = measured(8e6, mbu=0.25, mfu=0.02)
    found = newest_of(run.workload, run.platform, TPOT)
    assert found is not None
    assert (found.run_id, found.value, found.share, found.ceiling) == (run.pk, 8e6, 0.25, 2e6)


@pytest.mark.django_db
def test_the_ceiling_of_a_rate_lies_above() -> None:
    run = measured(8e6, mbu=0.25)
    make_metric(run.result, "decode_rate", value=100.0)
    found = newest_of(run.workload, run.platform, METRICS["decode_rate"])
    assert found is not None and found.ceiling == 400.0


@pytest.mark.django_db
def test_the_ceiling_is_else_from_the_newest_trace() -> None:
    run = measured(8e6)
    trace = make_trace(TraceState.READY, run=run)
    Standing.objects.update_or_create(
        workload=run.workload,
        platform=run.platform,
        defaults={"metric": "tpot", "trace": trace, "roofline": 0.5, "counted": 0.9},
    )
    found = newest_of(run.workload, run.platform, TPOT)
    assert found is not None and found.ceiling == 4e6
    assert found.source == f"operators with a bound in trace {trace.pk}, 90.0 % of time"


@pytest.mark.django_db
def test_no_peak_is_no_ceiling() -> None:
    run = measured(8e6)
    found = newest_of(run.workload, run.platform, TPOT)
    assert found is not None and found.ceiling is None
    assert "calibrate the platform" in found.source
    assert newest_of(run.workload, make_platform("moon"), TPOT) is None


@pytest.mark.django_db
def test_runs_that_failed_say_nothing() -> None:
    run = measured(8e6)
    other = make_run(RunState.FAILED)
    make_result(other, value=1.0)
    found = newest_of(run.workload, run.platform, TPOT)
    assert found is not None and found.run_id == run.pk
    assert MetricValue.objects.count() == 2


@pytest.mark.parametrize(("direction", "value"), [("lower", 4.0), ("higher", 1.0)])
def test_a_share_of_the_roofline_is_a_value_and_back(direction: str, value: float) -> None:
    assert at_share(2.0, 0.5, direction) == value  # type: ignore[arg-type]
    assert share_at(2.0, value, direction) == 0.5  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "metric", "value"),
    [
        ("4.6 ms", "tpot", 4.6e6),
        ("750us", "tpot", 750e3),
        (" 1,200 µs ", "tpot", 1.2e6),
        (".5 s", "tpot", 5e8),
        ("12 ns", "tpot", 12.0),
        ("1200", "decode_rate", 1200.0),
        ("1.2 ktok/s", "decode_rate", 1200.0),
        ("1200 tok/s", "decode_rate", 1200.0),
    ],
)
def test_it_reads_amounts_with_their_unit(text: str, metric: str, value: float) -> None:
    assert amount(text, METRICS[metric]) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "metric"),
    [
        ("", "tpot"),
        ("4.6", "tpot"),
        ("4.6 tok/s", "tpot"),
        ("-3 ms", "tpot"),
        ("1e6 ns", "tpot"),
        ("nan", "tpot"),
        ("5 ms", "decode_rate"),
        ("5 xtok/s", "decode_rate"),
    ],
)
def test_it_refuses_what_is_no_amount(text: str, metric: str) -> None:
    with pytest.raises(TuningError, match="is no value of"):
        amount(text, METRICS[metric])


@pytest.mark.django_db
def test_a_kind_has_a_factor_from_five_predictions_on() -> None:
    tuning = make_tuning()
    for number, effect in enumerate((-0.04, -0.06, -0.08, -0.09, 0.05)):
        assert calibration().factor("fusable_chain") is None
        made = make_iteration(tuning, f"try {number}", predicted=-0.1)
        Iteration.objects.filter(pk=made.pk).update(finding_kind="fusable_chain")
        measure(made, effect)
        revert(made)
    known = calibration()
    assert len(known.rows) == SAID_FROM
    assert known.factor("fusable_chain") == pytest.approx(0.6, abs=0.01)
    assert [round(row.ratio, 1) for row in known.rows] == [0.4, 0.6, 0.8, 0.9, -0.5]
    assert known.factor("host_wait") is None


@pytest.mark.django_db
def test_what_was_not_predicted_or_not_measured_calibrates_nothing() -> None:
    tuning = make_tuning()
    revert(make_iteration(tuning, "never measured"))
    silent = make_iteration(tuning, "nothing said", predicted=None)
    measure(silent, -0.1)
    revert(silent)
    open_ = make_iteration(tuning, "undecided")
    measure(open_, -0.1)
    assert calibration().rows == ()


@pytest.mark.django_db
def test_todays_trace_is_the_newest_of_a_run_until_something_is_kept() -> None:
    tuning = make_tuning()
    assert todays_trace(tuning, []) is None
    old = make_trace(TraceState.READY, run=tuning.day0_runs.get())
    new = make_trace(TraceState.READY, run=make_run(RunState.SUCCEEDED))
    make_trace(TraceState.PENDING, run=make_run(RunState.SUCCEEDED))
    assert old != new
    assert todays_trace(tuning, []) == new


@pytest.mark.django_db
def test_todays_trace_is_that_of_the_last_kept_candidate() -> None:
    tuning = make_tuning()
    run_trace = make_trace(TraceState.READY, run=tuning.day0_runs.get())
    kept = make_kept(tuning)
    assert todays_trace(tuning, [kept]) == run_trace
    candidate = make_trace(TraceState.READY)
    assert kept.comparison is not None
    kept.comparison.workloads.update(candidate_trace=candidate)
    assert todays_trace(tuning, [kept]) == candidate
