"""Pages of iterations: filled from a finding or a change, measured, decided."""

from __future__ import annotations

import dataclasses

import pytest
from django.test import Client

from dashboard.models import (
    Comparison,
    ComparisonState,
    Iteration,
    IterationState,
    Numerics,
    Tuning,
)
from tests.dashboard.test_findings_panel import finding
from tests.factories import make_ready_trace, make_report
from tests.sources import make_commit
from tests.tunings import keep, make_iteration, make_kept, make_tuning, measure, revert

pytestmark = pytest.mark.django_db


def text(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return response.content.decode()


def said(client: Client, address: str, form: dict[str, str], status: int = 302) -> str:
    """What the page says after a form was sent."""
    response = client.post(address, form)
    assert response.status_code == status
    if status == 302:
        return text(client, response.headers["Location"])
    return response.content.decode()


@pytest.fixture
def tuning() -> Tuning:
    return make_tuning()


def test_it_is_filled_from_the_finding(operator_client: Client, tuning: Tuning) -> None:
    report = dataclasses.replace(make_report(), findings=[finding(title="Copies <b>cost</b>.")])
    trace = make_ready_trace(run=tuning.day0_runs.get(), report=report)
    query = f"trace={trace.pk}&kind=redundant_copy&subject=aten::contiguous"
    address = f"/tuning/{tuning.pk}/new/?{query}"
    page = text(operator_client, address)
    assert "Copies &lt;b&gt;cost&lt;/b&gt;. Produce the layout that is needed." in page
    assert 'name="gain" value="5.0"' in page
    operator_client.post(address, {"hypothesis": "keep the layout", "gain": "5"})
    made = Iteration.objects.get()
    assert (made.finding_kind, made.finding_subject) == ("redundant_copy", "aten::contiguous")
    assert (made.trace, made.predicted_ns, made.predicted_effect) == (trace, 2_000_000, -0.05)


def test_a_finding_that_is_gone_is_said(operator_client: Client, tuning: Tuning) -> None:
    trace = make_ready_trace(run=tuning.day0_runs.get())
    page = text(operator_client, f"/tuning/{tuning.pk}/new/?trace={trace.pk}&kind=host_wait")
    assert "is not in that trace any more" in page


def test_it_says_what_such_predictions_were_worth(operator_client: Client) -> None:
    tuning = make_tuning(target=1e6)
    for number in range(5):
        made = make_iteration(tuning, f"try {number}", predicted=-0.1)
        Iteration.objects.filter(pk=made.pk).update(finding_kind="redundant_copy")
        measure(made, -0.08)
        revert(made)
    report = dataclasses.replace(make_report(), findings=[finding(subject="aten::cat")])
    trace = make_ready_trace(run=tuning.day0_runs.get(), report=report)
    query = f"trace={trace.pk}&kind=redundant_copy&subject=aten::cat"
    page = text(operator_client, f"/tuning/{tuning.pk}/new/?{query}")
    assert "This kind tends to bring 0.80 × of what is said (5 measured)" in page
    assert "This kind tends to bring 0.80" in text(operator_client, f"/tuning/{tuning.pk}/")


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"hypothesis": ""}, "Say in a sentence what is tried"),
        ({"hypothesis": "x", "gain": "100"}, "less than or equal to 99"),
        ({"hypothesis": "x", "candidate": "--exec=x"}, "can be no branch"),
    ],
)
def test_it_says_what_cannot_be_added(
    operator_client: Client, tuning: Tuning, form: dict[str, str], words: str
) -> None:
    assert words in said(operator_client, f"/tuning/{tuning.pk}/new/", form, 422)
    assert not Iteration.objects.exists()


def test_with_a_commit_it_is_measured_at_once(operator_client: Client, tuning: Tuning) -> None:
    form = {"hypothesis": "fuse it", "gain": "", "candidate": "main"}
    page = said(operator_client, f"/tuning/{tuning.pk}/new/", form)
    made = Iteration.objects.get()
    assert (made.state, made.predicted_effect) == (IterationState.MEASURING, None)
    assert made.comparison is not None
    assert made.comparison.baseline_ref == tuning.day0_commit.sha
    assert "Being measured in pairs" in page and "still measuring" in page
    comparison = text(operator_client, f"/compare/{made.comparison_id}/")
    assert f"iteration 1 of tuning {tuning.pk}" in comparison


def test_an_idea_is_measured_later(operator_client: Client, tuning: Tuning) -> None:
    made = make_iteration(tuning)
    address = f"/tuning/iterations/{made.pk}/"
    assert "An idea: nothing was measured yet, predicted −10.0 %" in text(operator_client, address)
    page = said(operator_client, f"{address}measure/", {"candidate": "main"})
    assert f"Comparison {Comparison.objects.get().pk} measures it" in page
    again = said(operator_client, f"{address}measure/", {"candidate": "main"})
    assert "is being measured by comparison" in again
    assert Comparison.objects.count() == 1


def test_it_says_what_cannot_be_measured_or_attached(
    operator_client: Client, tuning: Tuning
) -> None:
    address = f"/tuning/iterations/{make_iteration(tuning).pk}/"
    assert "can be no branch" in said(operator_client, f"{address}measure/", {"candidate": "-x"})
    assert "required" in said(operator_client, f"{address}attach/", {})
    assert "There is no comparison 999" in said(
        operator_client, f"{address}attach/", {"comparison": "999"}
    )


def test_it_attaches_a_comparison(operator_client: Client, tuning: Tuning) -> None:
    first, second = make_iteration(tuning, "one"), make_iteration(tuning, "two")
    comparison = measure(first, -0.1)
    Iteration.objects.filter(pk=first.pk).update(comparison=None, state=IterationState.IDEA)
    address = f"/tuning/iterations/{second.pk}/attach/"
    page = said(operator_client, address, {"comparison": str(comparison.pk)})
    assert "The comparison speaks for this iteration" in page
    assert "Waits for a decision: faster, time per output token −10.0 %" in page
    assert "1.00\u00a0× of what was said" in page


def test_it_is_kept_with_a_reason_and_a_sentence(operator_client: Client, tuning: Tuning) -> None:
    made = make_iteration(tuning)
    measure(made, -0.1)
    address = f"/tuning/iterations/{made.pk}/"
    assert "as it has answers that are not checked" in text(operator_client, address)
    form = {"decision": "keep", "reason": "faster"}
    page = said(operator_client, f"{address}decide/", form, 422)
    assert "to keep it all the same, say in a sentence why" in page
    assert "\nfaster</textarea>" in page
    page = said(operator_client, f"{address}decide/", {**form, "despite": "by hand"})
    assert "Iteration 1 is kept." in page
    made.refresh_from_db()
    assert (made.state, made.reason, made.despite) == ("kept", "faster", "by hand")
    again = said(operator_client, f"{address}decide/", {**form, "despite": "x"}, 422)
    assert "Iteration 1 was kept already" in again


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"decision": "keep"}, "A decision needs its reason"),
        ({"reason": "x"}, "required"),
        ({"decision": "perhaps", "reason": "x"}, "not one of the available choices"),
        ({"decision": "keep", "reason": "x", "despite": "y"}, "names no commit"),
    ],
)
def test_it_refuses_half_a_decision(
    operator_client: Client, tuning: Tuning, form: dict[str, str], words: str
) -> None:
    made = make_iteration(tuning)
    assert words in said(operator_client, f"/tuning/iterations/{made.pk}/decide/", form, 422)
    made.refresh_from_db()
    assert made.state == IterationState.IDEA


def test_a_checked_one_asks_for_no_further_sentence(
    operator_client: Client, tuning: Tuning
) -> None:
    made = make_iteration(tuning)
    measure(made, -0.1)
    Iteration.objects.update(numerics=Numerics.BIT_EXACT)
    page = text(operator_client, f"/tuning/iterations/{made.pk}/")
    assert "Kept all the same because" not in page
    form = {"decision": "keep", "reason": "faster"}
    said(operator_client, f"/tuning/iterations/{made.pk}/decide/", form)
    made.refresh_from_db()
    assert made.state == IterationState.KEPT


def test_it_waits_while_it_is_measured(operator_client: Client, tuning: Tuning) -> None:
    made = make_iteration(tuning)
    measure(made, -0.1, state=ComparisonState.MEASURING)
    page = text(operator_client, f"/tuning/iterations/{made.pk}/")
    assert "Being measured in pairs, so far time per output token −10.0 %" in page
    assert "Decide for good" not in page


def test_a_decided_one_shows_its_record_and_no_form(
    operator_client: Client, tuning: Tuning
) -> None:
    first = make_kept(tuning, -0.1)
    second = make_iteration(tuning, "next")
    measure(second, 0.1)
    keep(second, despite="it <u>unblocks</u> the next")
    page = text(operator_client, f"/tuning/iterations/{second.pk}/")
    assert "Kept: slower, time per output token +10.0 %" in page
    assert "it &lt;u&gt;unblocks&lt;/u&gt; the next" in page
    assert f'kept by <a href="/tuning/iterations/{first.pk}/">iteration 1</a>' in page
    assert "Decide for good" not in page and 'rel="prev"' in page


def test_viewers_see_no_buttons(viewer_client: Client, tuning: Tuning) -> None:
    page = text(viewer_client, f"/tuning/iterations/{make_iteration(tuning).pk}/")
    assert "Decide for good" not in page and "Measure in pairs" not in page


def test_it_names_the_commit_as_soon_as_it_is_known(viewer_client: Client, tuning: Tuning) -> None:
    make_commit(tuning.repository, "something else")
    made = make_iteration(tuning)
    comparison = measure(made, -0.1)
    assert comparison.candidate is not None
    page = text(viewer_client, f"/tuning/iterations/{made.pk}/")
    assert comparison.candidate.sha[:10] in page and "try 1" in page
