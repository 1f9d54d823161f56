"""The first page: numbers of every model, what needs a look, what to do when it is empty."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.models import (
    Change,
    ChangeDirection,
    ChangeKind,
    ChangeState,
    ComparedState,
    ComparisonState,
    Run,
    RunState,
)
from dashboard.queries import overview as queries
from tests.dashboard import histories
from tests.factories import (
    make_heartbeat,
    make_metric,
    make_platform,
    make_result,
    make_run,
    make_spec,
    make_trace,
)
from tests.sources import make_comparison


def page_of(client: Client) -> str:
    response = client.get("/")
    assert response.status_code == 200
    return re.sub(r"\s+", " ", response.content.decode())


def summary(page: str) -> str:
    """The words of the sentence that answers."""
    found = re.search(r'aria-label="Summary"> <p>(.*?)</p>', page)
    assert found is not None
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", found[1])).strip()


def measured(value: float = 7.62e6, **fields: object) -> None:
    spec = make_spec(**fields)
    make_result(make_run(RunState.SUCCEEDED, spec=spec), value=value, iqr=2e5)


def test_it_tells_an_operator_what_to_do_first(operator_client: Client) -> None:
    page = page_of(operator_client)
    assert "Nothing has been measured yet" in page
    assert 'href="/runs/new/"' in page
    assert 'href="/traces/upload/"' in page


def test_it_tells_a_viewer_who_can_start(viewer_client: Client) -> None:
    page = page_of(viewer_client)
    assert "An operator or admin can queue the first run" in page
    assert "/runs/new/" not in page


def test_it_shows_the_first_value_with_its_spread(viewer_client: Client) -> None:
    measured()
    page = page_of(viewer_client)
    assert ">7.62 ms ± 100 µs</span>" in page, "half the interquartile range"
    assert ">Day-0</a>" in page, "there is nothing to hold it against yet"
    assert 'title="Time per output token: 7,620,000 ns, run' in page


def test_it_shows_speed_against_day0(viewer_client: Client) -> None:
    measured(12.1e6)
    measured(7.62e6)
    page = page_of(viewer_client)
    assert '<a class="v better" href="/models/llama-tiny/cpu/?decode=' in page
    assert ">1.59x faster</a>" in page
    assert summary(page) == (
        "Nothing needs a look. Since Day-0 llama-tiny decode on cpu is 1.59x faster."
    )


def test_several_workloads_count_by_their_geometric_mean(viewer_client: Client) -> None:
    for batch, last in ((1, 5e6), (8, 20e6)):
        measured(10e6, batch=batch)
        measured(last, batch=batch)
    cell = queries.overview().rows[0].cells[1]
    assert cell is not None
    assert cell.ratio == pytest.approx(1.0), "twice as fast, and half as fast"
    assert (cell.ratios, cell.others) == (2, 1)


def test_it_marks_an_environment_that_changed_since_day0(viewer_client: Client) -> None:
    histories.measured(8e6)
    assert "The environment changed since Day-0" not in page_of(viewer_client)
    histories.measured(8e6, mark="b")
    assert "The environment changed since Day-0" in page_of(viewer_client)


def test_it_says_that_all_is_well(viewer_client: Client) -> None:
    measured()
    measured(scenario="prefill")
    page = page_of(viewer_client)
    assert summary(page) == (
        "Nothing needs a look. 2 of 2 workloads are measured; none has moved since Day-0."
    )
    assert "not assessed<br>yet" in page, "readiness"
    assert "not known" in page, "the roofline"


@pytest.mark.parametrize(
    "state", [RunState.FAILED, RunState.TIMED_OUT, RunState.LOST, RunState.EXPIRED]
)
def test_it_names_a_workload_whose_newest_run_did_not_succeed(
    viewer_client: Client, state: RunState
) -> None:
    measured()
    make_run(state, failure_message="It <b>broke</b>")
    page = page_of(viewer_client)
    assert summary(page).startswith("1 thing needs a look: the newest run of llama-tiny decode on")
    assert "It &lt;b&gt;broke&lt;/b&gt;" in page
    assert "7.62 ms" in page, "the last good number stays"


def test_it_forgets_a_failure_after_a_success(viewer_client: Client) -> None:
    make_run(RunState.FAILED)
    measured()
    page = page_of(viewer_client)
    assert summary(page).startswith("Nothing needs a look.")
    assert "Nothing: no confirmed slow-down" in page


def test_a_confirmed_slow_down_comes_first(viewer_client: Client) -> None:
    make_run(RunState.FAILED, spec=make_spec(model="other"))
    first, second = histories.commits(2)
    workload = histories.measured(8e6, first).workload
    change = Change.objects.create(
        repository=first.repository,
        workload=workload,
        platform=make_platform(),
        metric="tpot",
        comparable_hash="a" * 64,
        kind=ChangeKind.STEP,
        direction=ChangeDirection.SLOWER,
        before_commit=first,
        after_commit=second,
        before_value=8e6,
        after_value=8.4e6,
        effect=0.05,
        measured_effect=0.048,
        p_value=1e-5,
        state=ChangeState.CONFIRMED,
        culprit="aten::<b>mm",
        found_at=timezone.now(),
        state_at=timezone.now(),
    )
    page = page_of(viewer_client)
    assert summary(page).startswith(
        "1 confirmed slow-down needs a look: llama-tiny decode on cpu +4.8 % with "
        f"{second.sha[:10]}, and 1 more."
    )
    assert "Most of it: aten::&lt;b&gt;mm." in page
    Change.objects.filter(pk=change.pk).update(state=ChangeState.ACKNOWLEDGED, reason="known")
    assert queries.overview().slower == 0


def test_it_names_what_nobody_measured_for_long_or_ever(db: None) -> None:
    old = histories.measured(8e6)
    assert queries.overview().attention == ()
    Run.objects.filter(pk=old.pk).update(ended_at=timezone.now() - 2 * queries.STALE_AFTER)
    make_run(RunState.CANCELLED, spec=make_spec(model="never"))
    found = [(item.kind, item.model) for item in queries.overview().attention]
    assert found == [("never", "never"), ("stale", "llama-tiny")]


def test_it_shows_the_last_verdict(viewer_client: Client) -> None:
    made = make_comparison(state=ComparisonState.ENDED, ended_at=timezone.now())
    made.workloads.update(verdict="faster", effect=-0.062, state=ComparedState.SETTLED)
    measured()
    page = page_of(viewer_client)
    assert f'<a href="/compare/{made.pk}/"><span class="chip better">▼ faster −6.2 %</span>' in page


def test_it_does_not_count_a_cancelled_run_as_a_problem(viewer_client: Client) -> None:
    measured()
    make_run(RunState.CANCELLED)
    assert queries.overview().attention_total == 0


def test_it_counts_what_is_still_on_its_way(viewer_client: Client) -> None:
    make_run(RunState.RUNNING)
    make_heartbeat("worker")
    assert summary(page_of(viewer_client)) == "Nothing is measured yet; 1 run running, 0 queued."


def test_it_says_when_nobody_takes_queued_runs(viewer_client: Client) -> None:
    make_run(RunState.QUEUED)
    page = page_of(viewer_client)
    assert summary(page) == "Queued runs wait for a worker on cpu: none is alive."
    assert "Not heard of: keeper, worker, ingest." in page


def test_it_draws_the_values_of_earlier_runs(viewer_client: Client) -> None:
    for value in (9e6, 8e6, 7e6):
        measured(value)
    cell = queries.overview().rows[0].cells[1]
    assert cell is not None and cell.measure is not None
    assert cell.measure.recent == (9e6, 8e6, 7e6)
    assert "<polyline points=" in page_of(viewer_client)


def test_it_keeps_platforms_apart(db: None) -> None:
    measured(5e6)
    far = make_platform("h100")
    make_result(make_run(RunState.SUCCEEDED, platform=far), value=1e6)
    rows = queries.overview().rows
    cells = {row.platform: row.cells[1] for row in rows}
    values = {name: cell.measure.value for name, cell in cells.items() if cell and cell.measure}
    assert values == {"cpu": 5e6, "h100": 1e6}


def test_it_shows_the_workload_that_ran_last_and_counts_the_others(db: None) -> None:
    measured(5e6, batch=1)
    measured(6e6, batch=8)
    cell = queries.overview().rows[0].cells[1]
    assert cell is not None and cell.measure is not None
    assert (cell.workload, cell.others, cell.measure.value) == ("b8 in128 out32 float32", 1, 6e6)


def test_it_shows_no_spread_for_a_single_sample(viewer_client: Client) -> None:
    result = make_result(iqr=None)
    make_metric(result, "ttft")
    assert "± " not in page_of(viewer_client).split("<tbody>")[1]


def test_it_mentions_rejected_traces_of_the_day(viewer_client: Client) -> None:
    measured()
    make_trace("rejected")
    make_trace("rejected", ended_at=timezone.now() - timedelta(days=2))
    assert "1 trace rejected" in page_of(viewer_client)


def test_it_needs_as_many_queries_for_many_models_as_for_one(viewer_client: Client) -> None:
    def count() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries_made:
            page_of(viewer_client)
        return len(queries_made)

    measured()
    make_run(RunState.FAILED, spec=make_spec(model="other"))
    one = count()
    for place in range(5):
        measured(model=f"model-{place}")
        make_run(RunState.FAILED, spec=make_spec(model=f"bad-{place}"))
    assert count() == one
    assert one <= 12
