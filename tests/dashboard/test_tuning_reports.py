"""What a tuning leaves the house as: CSV, Markdown and one HTML file."""

from __future__ import annotations

import csv
import dataclasses
import io
import re

import pytest
from django.test import Client

from dashboard.models import Tuning
from dashboard.services.tuning import close_tuning
from tests.dashboard.test_findings_panel import finding
from tests.factories import make_metric, make_ready_trace, make_report, make_user
from tests.tunings import make_iteration, make_kept, make_tuning, measure, revert

pytestmark = pytest.mark.django_db

HOSTILE = "use | <script>alert(1)</script> `x` ](http://x) \u202e"


@pytest.fixture
def tuning() -> Tuning:
    """Two kept, one reverted, one idea; the reverted one with hostile words."""
    made = make_tuning(target=4e6)
    make_kept(made, -0.2, predicted=-0.25)
    failed = make_iteration(made, HOSTILE)
    measure(failed, 0.1)
    revert(failed, "=1+1")
    make_kept(made, -0.25, predicted=None)
    make_iteration(made, "an idea")
    return made


def rows(client: Client, address: str) -> list[dict[str, str]]:
    response = client.get(address)
    body = b"".join(response.streaming_content).decode()  # type: ignore[attr-defined]
    return list(csv.DictReader(io.StringIO(body)))


def report(client: Client, tuning: Tuning, kind: str) -> str:
    response = client.get(f"/tuning/{tuning.pk}/report.{kind}")
    assert response.status_code == 200
    assert f'filename="tuning{tuning.pk}.{kind}"' in response.headers["Content-Disposition"]
    return response.content.decode()


def test_iterations_are_a_csv(viewer_client: Client, tuning: Tuning) -> None:
    found = rows(viewer_client, f"/tuning/{tuning.pk}/iterations.csv")
    assert [row["state"] for row in found] == ["kept", "reverted", "kept", "idea"]
    assert float(found[0]["measured_change"]) == pytest.approx(-0.2, abs=1e-3)
    assert (found[0]["predicted_change"], found[0]["verdict"]) == ("-0.25", "faster")
    assert found[1]["reason"] == "'=1+1"
    assert "\u202e" not in found[1]["hypothesis"]
    assert (found[3]["measured_change"], found[3]["verdict"]) == ("", "not measured")


def test_the_ladder_is_a_csv(viewer_client: Client, tuning: Tuning) -> None:
    make_metric(tuning.day0_runs.get().result, "mbu", value=0.25)
    found = rows(viewer_client, f"/tuning/{tuning.pk}/ladder.csv")
    assert [row["step"] for row in found] == ["Day-0", "kept", "kept", "now", "target", "roofline"]
    assert found[1]["predicted"] == "6000000.0"
    assert float(found[3]["after"]) == pytest.approx(8e6 * 0.8 * 0.75, rel=1e-3)
    assert float(found[3]["times_day0_speed"]) == pytest.approx(1 / 0.6, rel=1e-3)
    assert (found[4]["after"], found[5]["after"]) == ("4000000.0", "2000000.0")


def test_predictions_are_a_csv(viewer_client: Client, tuning: Tuning) -> None:
    found = rows(viewer_client, "/tuning/predictions.csv")
    assert [row["iteration"] for row in found] == ["1", "2"]
    assert float(found[0]["measured_over_predicted"]) == pytest.approx(0.8, abs=1e-3)
    assert float(found[1]["measured_over_predicted"]) == pytest.approx(-1.0, abs=1e-2)


def test_its_markdown_tells_everything(viewer_client: Client, tuning: Tuning) -> None:
    text = report(viewer_client, tuning, "md")
    assert text.startswith("# Tuning of llama-tiny on cpu\n")
    assert "went from 8.00 ms at Day-0 to 4.80 ms: 1.67 × as fast" in text
    assert "| iteration 1 | 6.40 ms | −20.0 % | 6.00 ms | 1.25 × |" in text
    assert "| roofline | not known | no peak" in text
    assert re.search(r"\| 3 \| kept \|", text) and "| 4 | idea | an idea |" in text
    assert "Kept all the same because: answers compared by hand" in text
    assert f"/tuning/{tuning.pk}/" in text


def test_its_markdown_cannot_be_broken(viewer_client: Client, tuning: Tuning) -> None:
    text = report(viewer_client, tuning, "md")
    assert "use \\| \\<script\\>alert(1)\\</script\\> \\`x\\` \\](http://x)" in text
    assert "\u202e" not in text
    tables = [line for line in text.splitlines() if line.startswith("| ") and "script" in line]
    assert len(tables) == 1


def test_its_report_is_one_file_without_anything_from_outside(
    viewer_client: Client, tuning: Tuning
) -> None:
    page = report(viewer_client, tuning, "html")
    assert "1.67 × as fast" in page and "dequant" not in page
    assert not re.search(r"<(link|script|img|iframe)\b|\bsrc=|href=|url\(|@import", page)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page and "\u202e" not in page
    assert page.count("<rect") >= 5
    assert "@media print" in page


def test_its_report_says_what_is_left(viewer_client: Client, tuning: Tuning) -> None:
    assert "No trace of this workload was read yet" in report(viewer_client, tuning, "html")
    traced = dataclasses.replace(make_report(), findings=[finding(title="Copy A")])
    make_ready_trace(run=tuning.day0_runs.get(), report=traced)
    page = report(viewer_client, tuning, "html")
    assert "Copy A" in page and "2.00 ms" in page and "Try this" not in page


def test_a_closed_one_says_why_it_ended(viewer_client: Client) -> None:
    tuning = make_tuning()
    close_tuning(tuning.pk, "nothing is left", make_user())
    assert "Stopped: nothing is left" in report(viewer_client, tuning, "md")
    assert "nothing is left" in report(viewer_client, tuning, "html")
    assert "| | | nothing was tried yet |" in report(viewer_client, tuning, "md")
