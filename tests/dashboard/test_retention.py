"""The page of retention, pins on runs and traces, pages of what was removed, and the command."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.models import Artifact, Pin, RetentionPolicy, Trace
from dashboard.queries.retention import UPLOADED, disk_use
from dashboard.services import retention
from tests.dashboard.old_traces import old_file, old_run, old_trace
from tests.dashboard.reading import HTMX, csv_of, page_of
from tests.factories import make_result, make_user
from tests.sources import make_comparison

pytestmark = pytest.mark.django_db


def pruned(**days: int) -> Trace:
    """A trace of a run whose files a policy has removed."""
    trace = old_trace(100, run=old_run(100))
    retention.set_policy(days.get("raw", 30), days.get("columns"), make_user())
    retention.prune()
    return Trace.objects.get(pk=trace.pk)


def test_it_says_that_everything_is_kept_and_what_an_admin_can_do(
    viewer_client: Client, admin_client: Client
) -> None:
    old_trace(400)
    page = page_of(viewer_client, "/retention/")
    assert "<b>Everything is kept for ever:</b> no policy is set." in page
    assert "An admin can set one" in page and "<form" not in page.split("<main")[1]
    assert "Set the policy" in page_of(admin_client, "/retention/")


def test_an_admin_sets_the_policy_and_sees_the_dry_run(admin_client: Client) -> None:
    trace = old_trace(45)
    response = admin_client.post("/retention/policy/", {"raw_days": "30", "columns_days": "90"})
    assert response.status_code == 302
    found = RetentionPolicy.objects.get()
    assert (found.raw_days, found.columns_days) == (30, 90)
    page = page_of(admin_client, "/retention/")
    assert "Raw traces are kept for <b>30 days</b>, columns for <b>90 days</b>" in page
    assert f'<a href="/traces/{trace.pk}/">{trace.pk}</a>' in page
    assert "2 files" in page
    assert Artifact.objects.filter(removed_at__isnull=False).count() == 0


@pytest.mark.parametrize(
    ("raw", "columns", "said"),
    [
        ("0", "", "greater than or equal to 1"),
        ("30", "10", "Columns cannot go before the raw traces"),
        ("many", "", "Enter a whole number"),
    ],
)
def test_it_refuses_a_policy_in_one_line(
    admin_client: Client, raw: str, columns: str, said: str
) -> None:
    response = admin_client.post("/retention/policy/", {"raw_days": raw, "columns_days": columns})
    assert response.status_code == 422
    assert said in response.content.decode()
    assert not RetentionPolicy.objects.exists()


def test_the_dry_run_is_the_same_as_csv_and_as_json(viewer_client: Client) -> None:
    trace = old_trace(45, run=old_run(45))
    old_file(2)
    retention.set_policy(30, None, make_user())
    rows = csv_of(viewer_client.get("/retention/plan.csv"))
    assert {(row["kind"], row["trace"]) for row in rows} == {("raw", str(trace.pk))}
    out = StringIO()
    call_command("prune", "--dry-run", "--json", stdout=out)
    said = json.loads(out.getvalue())
    assert said["policy"] == {"raw_days": 30, "columns_days": None}
    assert said["kinds"]["raw"]["files"] == 2 and said["kinds"]["unused"]["files"] == 1
    assert said["files"] == 3
    assert sum(int(row["bytes"]) for row in rows) == said["kinds"]["raw"]["bytes"]
    assert {row["run"] for row in said["traces"]} == {trace.run_id}
    assert Artifact.objects.filter(removed_at__isnull=False).count() == 0


def test_the_command_removes_what_the_dry_run_said() -> None:
    old_trace(45)
    retention.set_policy(30, None, make_user())
    dry, wet = StringIO(), StringIO()
    call_command("prune", "--dry-run", stdout=dry)
    call_command("prune", stdout=wet)
    said = dry.getvalue().strip().splitlines()[-1]
    assert said.startswith("would remove 2 files, ")
    assert wet.getvalue().strip() == said.replace("would remove", "removed")
    again = StringIO()
    call_command("prune", "--json", stdout=again)
    assert json.loads(again.getvalue()) == {"files": 0, "bytes": 0}


def test_the_command_says_that_no_policy_is_set() -> None:
    out = StringIO()
    call_command("prune", "--dry-run", stdout=out)
    assert out.getvalue().startswith("No policy is set: raw traces and columns are kept for ever.")


def test_the_page_of_a_trace_says_that_its_raw_file_went(operator_client: Client) -> None:
    trace = pruned()
    page = page_of(operator_client, f"/traces/{trace.pk}/")
    assert "<b>The raw file was removed</b> on" in page
    assert "raw traces are kept for 30 days" in page
    assert "Raw file (" not in page and "Read again" not in page
    response = operator_client.get(f"/traces/{trace.pk}/raw")
    assert response.status_code == 410
    assert "raw traces are kept for 30 days" in response.content.decode()
    assert operator_client.get(f"/traces/{trace.pk}/redacted").status_code == 410
    back = operator_client.post(f"/traces/{trace.pk}/again/", follow=True)
    assert "removed on" in back.content.decode()


def test_the_page_of_a_run_says_which_file_went(viewer_client: Client) -> None:
    trace = pruned()
    assert trace.run is not None
    make_result(trace.run)
    page = page_of(viewer_client, f"/runs/{trace.run_id}/")
    assert 'trace.json.gz <span class="muted">removed on' in page
    assert viewer_client.get(f"/runs/{trace.run_id}/files/trace.json.gz").status_code == 410


def test_what_if_says_that_the_columns_went(viewer_client: Client) -> None:
    trace = pruned(columns=60)
    page = page_of(viewer_client, f"/traces/{trace.pk}/what-if/")
    assert "columns are kept for 60 days" in page
    page = page_of(viewer_client, f"/traces/{trace.pk}/")
    assert "<b>The columns (single events) were removed</b>" in page


def test_an_operator_pins_with_a_reason_and_takes_the_pin_off(operator_client: Client) -> None:
    trace = old_trace(1, run=old_run(1))
    for address in (f"/runs/{trace.run_id}/", f"/traces/{trace.pk}/"):
        assert "Pin this" in page_of(operator_client, address)
        operator_client.post(f"{address}pin/", {"reason": "<b>for the report</b>"})
        page = page_of(operator_client, address)
        assert "&lt;b&gt;for the report&lt;/b&gt;" in page
        assert "Take the pin off" in page
    listed = page_of(operator_client, "/retention/")
    assert f"Run {trace.run_id}</a>" in listed and f"Trace {trace.pk}</a>" in listed
    operator_client.post(f"/traces/{trace.pk}/unpin/")
    assert Pin.objects.get().run_id == trace.run_id


def test_a_pin_without_a_reason_is_refused_in_one_line(operator_client: Client) -> None:
    trace = old_trace(1)
    page = operator_client.post(f"/traces/{trace.pk}/pin/", {"reason": " "}, follow=True)
    assert "A pin needs a reason" in page.content.decode()
    assert not Pin.objects.exists()


def test_a_viewer_sees_pins_but_no_buttons(viewer_client: Client) -> None:
    trace = old_trace(1)
    assert "pin/" not in page_of(viewer_client, f"/traces/{trace.pk}/")
    retention.pin(trace, "kept", make_user())
    page = page_of(viewer_client, f"/traces/{trace.pk}/")
    assert "<b>Pinned:</b> kept" in page and "Take the pin off" not in page


def test_disk_use_is_told_by_model_and_kind(viewer_client: Client) -> None:
    run = old_run(1)
    trace, upload = old_trace(1, run=run), old_trace(1)
    compared = old_trace(1)
    make_comparison().workloads.update(candidate_trace=compared)
    model, uploaded = (
        next(row for row in disk_use().rows if row.model == name)
        for name in (run.workload.model.name, UPLOADED)
    )
    sizes = {name: getattr(trace, name).size_bytes for name in ("raw", "redacted")}
    others = {name: getattr(compared, name).size_bytes for name in ("raw", "redacted")}
    assert model.raw == sum(sizes.values()) + sum(others.values())
    assert uploaded.summaries == sum(
        getattr(upload, name).size_bytes for name in ("report", "flame", "graph")
    )
    rows = csv_of(viewer_client.get("/retention/disk.csv"))
    assert {row["model"] for row in rows} == {model.model, UPLOADED}
    assert {int(row["all_bytes"]) for row in rows} == {model.total, uploaded.total}


def test_disk_use_leaves_out_what_was_removed(viewer_client: Client) -> None:
    trace = pruned()
    assert trace.run is not None
    (row,) = (row for row in disk_use().rows if row.model == trace.run.workload.model.name)
    assert row.raw == 0 and row.columns > 0
    whole = sum(
        Artifact.objects.filter(removed_at__isnull=True).values_list("size_bytes", flat=True)
    )
    assert disk_use().size_bytes == whole


def test_the_status_page_loads_disk_use_by_itself(viewer_client: Client) -> None:
    assert 'hx-get="/retention/disk/"' in page_of(viewer_client, "/status/")
    part = viewer_client.get("/retention/disk/", headers=HTMX).content.decode()
    assert part.lstrip().startswith('<section id="disk-use"')
    assert "Nothing is stored yet" in part
    assert "<h1>Disk use</h1>" in page_of(viewer_client, "/retention/disk/")


@pytest.mark.parametrize("address", ["/retention/", "/retention/disk/"])
def test_it_needs_as_many_queries_for_many_traces_as_for_one(
    viewer_client: Client, address: str
) -> None:
    retention.set_policy(30, None, make_user())

    def count() -> int:
        with CaptureQueriesContext(connection) as made:
            page_of(viewer_client, address)
        return len(made)

    retention.pin(old_trace(45, run=old_run(45)), "kept", make_user())
    old_trace(45)
    one = count()
    for _ in range(4):
        retention.pin(old_trace(45, run=old_run(45)), "kept", make_user())
        old_trace(45, run=old_run(45))
    assert count() == one
    assert one <= 12
