"""The whole loop in one process: finding, hypothesis, commit, pairs, decision, next baseline."""

from __future__ import annotations

import dataclasses

import pytest
from django.test import Client

from dashboard.models import (
    Change,
    ChangeState,
    Commit,
    ComparedWorkload,
    Comparison,
    ComparisonState,
    Iteration,
    Repository,
    Run,
    RunState,
    TemplateVersion,
    TraceState,
    Tuning,
    Workload,
)
from dashboard.services import comparisons, pairs
from dashboard.services.clock import db_now
from profiler.analysis.ladder import orders
from tests.dashboard.test_findings_panel import finding
from tests.factories import make_ready_trace, make_report, make_result, make_run, make_spec
from tests.histories import make_change
from tests.sources import make_commit, make_pair, make_repository

pytestmark = pytest.mark.django_db

LEAD = make_spec(batch=2, prompt_tokens=32, output_tokens=8)


@pytest.fixture
def repository() -> Repository:
    row = make_repository("kernels")
    make_commit(row, "Day-0")
    return row


def text(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


def send(client: Client, address: str, **form: str) -> str:
    """Where a form that works leads."""
    response = client.post(address, form)
    assert response.status_code == 302, response.content.decode()
    return response.headers["Location"]


def measured(commit: Commit, value: float) -> Run:
    run = make_run(RunState.SUCCEEDED, commit=commit, spec=LEAD)
    make_result(run, value=value)
    return run


def look_up(repository: Repository) -> None:
    """The keeper fetched the repository: waiting comparisons get their commits and sessions."""
    Repository.objects.filter(pk=repository.pk).update(fetched_at=db_now())
    comparisons.resolve_waiting()


def work(comparison: Comparison, effects: dict[Workload, float]) -> None:
    """What a worker does: measure the pairs of every session, end it, until all is settled."""
    for _ in range(5 * len(effects)):
        session = Run.objects.filter(compared__comparison=comparison, state=RunState.QUEUED).first()
        if session is None:
            break
        compared = ComparedWorkload.objects.select_related("workload").get(sessions=session)
        for _ in orders(comparison.seed, compared.pairs_wanted)[compared.pairs.count() :]:
            make_pair(compared, 1e6, 1e6 * (1 + effects[compared.workload]))
        ended = {"state": RunState.SUCCEEDED, "ended_at": db_now(), "attempt": 1, "fence": 1}
        Run.objects.filter(pk=session.pk).update(**ended)
        session.refresh_from_db()
        pairs.settle(session, db_now())
    comparison.refresh_from_db()
    assert comparison.state == ComparisonState.ENDED


def tried(
    client: Client, tuning: Tuning, repository: Repository, hypothesis: str
) -> tuple[str, Iteration]:
    """A new commit on main as the next iteration, its comparison ready to measure."""
    make_commit(repository, hypothesis)
    page = send(client, f"/tuning/{tuning.pk}/new/", hypothesis=hypothesis, candidate="main")
    look_up(repository)
    return page, tuning.iterations.get(hypothesis=hypothesis)


def test_it_goes_round(
    operator_client: Client, repository: Repository, mine: TemplateVersion
) -> None:
    client = operator_client
    day0 = measured(repository.commits.get(), 8e6)
    first = finding(subject="aten::cat", title="The cache grows by cat")
    second = finding(subject="aten::mm", kind="roofline_gap", title="Slow product")
    report = dataclasses.replace(make_report(), findings=[first, second])
    trace = make_ready_trace(run=day0, report=report)

    # From the finding to an open tuning, and on to its first iteration.
    query = f"trace={trace.pk}&kind=redundant_copy&subject=aten::cat"
    started = client.get(f"/tuning/start/?{query}").headers["Location"]
    place = f"{day0.workload_id}-{day0.platform_id}"
    told = {"trace": str(trace.pk), "kind": "redundant_copy", "subject": "aten::cat"}
    target = {"target": "value", "value": "5 ms", "template": mine.template.name}
    form = {"place": place, "repository": "kernels", **target, **told}
    new = send(client, started, **form)
    tuning = Tuning.objects.get()
    assert 'value="5.0"' in text(client, new)

    # The commit exists: measured at once, with the template's other workloads.
    fused = make_commit(repository, "pre-allocate the cache")
    page = send(client, new, hypothesis="Pre-allocate", gain="25", candidate="main")
    made = Iteration.objects.get()
    assert made.comparison is not None and made.finding_subject == "aten::cat"
    look_up(repository)
    comparison = Comparison.objects.get()
    assert comparison.candidate == fused
    workloads = [row.workload for row in comparison.workloads.all()]
    assert workloads[0] == tuning.workload and len(workloads) > 1
    effects = dict.fromkeys(workloads, 0.0)
    work(comparison, {**effects, tuning.workload: -0.2})
    assert "Waits for a decision: faster, time per output token −20.0 %" in text(client, page)
    send(client, f"{page}decide/", decision="keep", reason="faster", despite="checked by hand")

    # The next one starts from what was kept, and what was tried is not offered again.
    candidate = make_ready_trace(report=report)
    comparison.workloads.filter(workload=tuning.workload).update(candidate_trace=candidate)
    assert candidate.state == TraceState.READY
    shown = text(client, f"/tuning/{tuning.pk}/")
    assert "went from 8.00 ms at Day-0 to 6.40 ms: 1.25 × as fast" in shown
    offered = shown.split('id="next"')[1].split("Tried already")[0]
    assert "Slow product" in offered and "The cache grows by cat" not in offered
    page, second_try = tried(client, tuning, repository, "Another")
    assert second_try.baseline == fused and second_try.comparison is not None
    work(second_try.comparison, {**effects, tuning.workload: 0.1})
    send(client, f"{page}decide/", decision="revert", reason="slower")

    # The target is met by the third, and the tuning is closed as reached.
    page, third = tried(client, tuning, repository, "Third")
    assert third.baseline == fused
    assert third.comparison is not None
    work(third.comparison, {**effects, tuning.workload: -0.25})
    send(client, f"{page}decide/", decision="keep", reason="that is it", despite="by hand")
    send(client, f"/tuning/{tuning.pk}/close/", reason="the target is reached")
    tuning.refresh_from_db()
    assert tuning.state == "reached"
    told_by = text(client, f"/tuning/{tuning.pk}/report.md")
    assert "to 4.80 ms: 1.67 × as fast" in told_by and "| 2 | reverted | Another |" in told_by


@pytest.fixture
def slowed(repository: Repository) -> Change:
    """A confirmed slow-down by a quarter after the tuned commit."""
    before = measured(repository.commits.get(), 8e6)
    after = measured(make_commit(repository, "a slow change"), 10e6)
    return make_change(
        before,
        after,
        workload=before.workload,
        effect=0.24,
        measured_effect=0.25,
        state=ChangeState.CONFIRMED,
        culprit="aten::mm",
    )


def mend(client: Client, address: str, repository: Repository, effect: float) -> Iteration:
    """An iteration opened at `address` with a candidate that is measured and kept."""
    make_commit(repository, "mend it")
    page = send(client, address, hypothesis="Mend it", gain="20", candidate="main")
    look_up(repository)
    made = Iteration.objects.select_related("comparison", "tuning").get()
    assert made.comparison is not None
    work(made.comparison, {made.tuning.workload: effect})
    send(client, f"{page}decide/", decision="keep", reason="mended", despite="by hand")
    made.refresh_from_db()
    return made


def test_a_change_opens_a_tuning_and_is_closed_as_fixed(
    operator_client: Client, repository: Repository, slowed: Change
) -> None:
    started = operator_client.get(f"/tuning/start/?change={slowed.pk}").headers["Location"]
    assert started == f"/tuning/new/?change={slowed.pk}"
    page = text(operator_client, started)
    assert f'name="runs" value="{slowed.after_run_id}"' in page
    assert f'name="change" value="{slowed.pk}"' in page
    form = {"repository": "kernels", "target": "value", "value": "7 ms", "change": str(slowed.pk)}
    form |= {
        "place": f"{slowed.workload_id}-{slowed.platform_id}",
        "runs": str(slowed.after_run_id),
    }
    new = send(operator_client, started, **form)
    page = text(operator_client, new)
    assert "Opened from" in page and "mostly aten::mm" in page
    assert "Mend the +25.0 % of time per output token (slower) that" in page
    assert 'name="gain" value="20.0"' in page
    made = mend(operator_client, new, repository, -0.2)
    slowed.refresh_from_db()
    assert (slowed.state, slowed.fixed_commit) == (ChangeState.FIXED, made.commit)
    assert (made.change, made.setback) == (slowed, None)


def test_a_change_of_what_is_being_tuned_shows_on_the_ladder(
    operator_client: Client, repository: Repository, slowed: Change
) -> None:
    form = {"place": f"{slowed.workload_id}-{slowed.platform_id}", "repository": "kernels"}
    before = {"runs": str(slowed.before_run_id), "target": "value", "value": "4 ms"}
    send(operator_client, "/tuning/new/", **form, **before)
    tuning = Tuning.objects.get()
    started = operator_client.get(f"/tuning/start/?change={slowed.pk}").headers["Location"]
    assert started == f"/tuning/{tuning.pk}/new/?change={slowed.pk}"
    made = mend(operator_client, started, repository, -0.2)
    assert (made.baseline, made.setback) == (slowed.after_commit, 0.25)
    page = text(operator_client, f"/tuning/{tuning.pk}/")
    assert "went from 8.00 ms at Day-0 to 8.00 ms: 1.00 × as fast" in page
    assert f'Lost by <a href="/changes/{slowed.pk}/">change {slowed.pk}</a>' in page
    report = text(operator_client, f"/tuning/{tuning.pk}/report.md")
    assert "| lost before 1 | 10.0 ms | +25.0 % |" in report


@pytest.mark.parametrize(("effect", "state"), [(0.1, "confirmed"), (0.0, "confirmed")])
def test_a_change_stays_open_where_nothing_got_faster(
    operator_client: Client, repository: Repository, slowed: Change, effect: float, state: str
) -> None:
    form = {"place": f"{slowed.workload_id}-{slowed.platform_id}", "repository": "kernels"}
    target = {"runs": str(slowed.after_run_id), "target": "value", "value": "4 ms"}
    send(operator_client, "/tuning/new/", **form, **target)
    new = f"/tuning/{Tuning.objects.get().pk}/new/?change={slowed.pk}"
    mend(operator_client, new, repository, effect)
    slowed.refresh_from_db()
    assert slowed.state == state
