"""Several traces uploaded at once: one set, its ranks, and the one the others wait for."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import Settings

from dashboard.models import Artifact, Outbox, Trace, TraceSet, TraceState, User
from dashboard.queries import trace_sets
from dashboard.queries.replays import read_steps
from dashboard.services import artifacts, traces
from dashboard.services.contract import StoredFile, TraceOutcome, WorkerIdentity
from profiler.analysis.ingest import ingest
from tests.dashboard.ranks import recorded
from tests.dashboard.reading import HTMX, csv_of, page_of
from tests.factories import make_ready_trace, make_report, make_run, make_set, make_trace, make_user
from tests.profiler.analysis.test_known import program
from tests.profiler.trace.build import TraceBuilder

WORKER = WorkerIdentity(name="test:1", platform="")


def file(name: str, data: bytes = b"[]") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, data)


def read(trace: Trace, folder: Path) -> None:
    """What an ingest worker does, in this process."""
    claim = traces.claim_trace(trace.pk, trace.attempt + 1, WORKER)
    assert claim is not None
    raw = folder / f"{trace.pk}.json"
    artifacts.fetch(claim.sha256, raw)
    out = folder / f"out-{trace.pk}"
    ingest([raw], out)
    files = tuple(StoredFile(name=path.name, path=path) for path in out.iterdir())
    outcome = TraceOutcome(state="ready", files=files)
    traces.deliver_trace(trace.pk, claim.fence, outcome)


def uploaded(tmp_path: Path, *recordings: bytes | TraceBuilder) -> TraceSet:
    """A set of ranks that were read."""
    made = [
        file(f"r-{n}.json", one if isinstance(one, bytes) else json.dumps(one.data()).encode())
        for n, one in enumerate(recordings)
    ]
    whole = traces.add_uploads(made, make_user())
    for trace in whole.traces.all():
        read(trace, tmp_path)
    return whole


@pytest.fixture
def ranks(db: None, tmp_path: Path) -> TraceSet:
    """Two ranks that were read; rank 1 comes 200 µs late to every collective."""
    return uploaded(tmp_path, recorded(late_us=0), recorded(late_us=200))


# Uploads


def test_it_makes_one_set_of_several_files(operator_client: Client, operator: User) -> None:
    files = [file("b-rank1.json"), file("a-rank0.json")]
    response = operator_client.post("/traces/upload/", {"file": files})
    whole = TraceSet.objects.get()
    assert response.headers["Location"] == f"/traces/sets/{whole.pk}/"
    rows = [(row.rank, row.name, row.uploaded_by) for row in whole.traces.order_by("rank")]
    assert rows == [(0, "a-rank0.json", operator), (1, "b-rank1.json", operator)]
    assert Outbox.objects.count() == 2


def test_it_numbers_files_without_a_rank_by_their_place(operator_client: Client) -> None:
    operator_client.post("/traces/upload/", {"file": [file("x.json"), file("y.json")]})
    assert list(Trace.objects.order_by("id").values_list("rank", flat=True)) == [0, 1]


def test_it_stores_no_set_when_one_file_is_no_trace(operator_client: Client) -> None:
    files = [file("good.json"), file("notes.txt", b"hello")]
    response = operator_client.post("/traces/upload/", {"file": files})
    assert response.status_code == 422
    assert "neither JSON nor gzip: notes.txt" in response.content.decode()
    assert not TraceSet.objects.exists()
    assert not Trace.objects.exists()


def test_it_counts_all_files_of_an_upload(operator_client: Client, settings: Settings) -> None:
    settings.UPLOAD_LIMIT_BYTES = 1024
    files = [file(f"{n}.json", b"[" + b" " * 500 + b"]") for n in range(3)]
    response = operator_client.post("/traces/upload/", {"file": files})
    assert response.status_code == 413
    assert not Trace.objects.exists()


def test_it_takes_sixty_four_ranks_at_once(operator_client: Client) -> None:
    operator_client.post("/traces/upload/", {"file": [file(f"rank{n}.json") for n in range(64)]})
    assert Trace.objects.count() == 64


def test_it_believes_what_the_file_records_over_its_name(db: None, tmp_path: Path) -> None:
    files = [file("rank0.json", recorded(late_us=0, rank=5)), file("rank1.json")]
    whole = traces.add_uploads(files, make_user())
    first = whole.traces.order_by("id")[0]
    read(first, tmp_path)
    first.refresh_from_db()
    assert first.rank == 5


# The page


def test_it_names_the_rank_the_others_wait_for(ranks: TraceSet, viewer_client: Client) -> None:
    page = page_of(viewer_client, f"/traces/sets/{ranks.pk}/")
    assert "Rank 1 arrived last: the other ranks waited 800 µs" in page
    assert "4 collectives were found on every compared rank" in page
    assert '<span class="chip worse">straggler</span>' in page
    assert "all reduce, 1.20 ms" in page
    assert "2 of 2 ranks read" in page
    assert "data-poll" not in page


def test_it_exports_the_ranks(ranks: TraceSet, viewer_client: Client) -> None:
    rows = csv_of(viewer_client.get(f"/traces/sets/{ranks.pk}/ranks.csv?ranks-sort=-rank"))
    assert [(row["rank"], row["late_ns"]) for row in rows] == [("1", "800000"), ("0", "0")]
    assert rows[1]["waited_ns"] == "800000"


def test_it_polls_the_status_alone_until_every_rank_is_read(viewer_client: Client) -> None:
    whole = make_set(make_trace(), make_trace(TraceState.REJECTED))
    page = page_of(viewer_client, f"/traces/sets/{whole.pk}/")
    assert f'hx-get="/traces/sets/{whole.pk}/status/" hx-trigger="poll"' in page
    assert "The file ends in the middle of an event" in page
    done = make_set(make_ready_trace(), make_ready_trace())
    cell = page_of(viewer_client, f"/traces/sets/{done.pk}/status/")
    assert "data-poll" not in cell
    assert f'hx-get="/traces/sets/{done.pk}/" hx-trigger="load" hx-target="#ranks"' in cell


def test_it_answers_htmx_with_the_comparison_alone(ranks: TraceSet, viewer_client: Client) -> None:
    response = viewer_client.get(f"/traces/sets/{ranks.pk}/", headers=HTMX)
    assert "<html" not in response.content.decode()
    assert 'id="ranks"' in response.content.decode()


def test_it_numbers_anew_when_two_files_claim_a_rank(viewer_client: Client) -> None:
    whole = make_set(make_ready_trace(), make_ready_trace())
    page = page_of(viewer_client, f"/traces/sets/{whole.pk}/")
    assert "Two files say they are the same rank" in page
    assert "No communication between ranks was recorded" in page


def test_it_says_kernels_missing_and_nothing_of_idle(viewer_client: Client) -> None:
    silent = make_report(launches=dataclasses.replace(make_report().launches, calls=9))
    whole = make_set(make_ready_trace(report=silent), make_ready_trace(report=silent))
    page = page_of(viewer_client, f"/traces/sets/{whole.pk}/")
    assert "<td>kernels missing</td>" in page
    assert "not known: busy, busy time" in page


def test_it_shows_the_other_ranks_when_a_file_is_gone(
    ranks: TraceSet, viewer_client: Client, settings: Settings
) -> None:
    trace_sets.compare.cache_clear()
    lost = ranks.traces.order_by("rank")[1].collectives
    assert isinstance(lost, Artifact)
    store = Path(settings.ARTIFACTS_URL.removeprefix("file://"))
    (store / lost.sha256[:2] / lost.sha256).unlink()
    page = page_of(viewer_client, f"/traces/sets/{ranks.pk}/")
    assert "The collectives of rank 1 cannot be read" in page
    assert "all reduce" in page


def test_it_leads_from_a_trace_and_the_list_to_its_set(
    ranks: TraceSet, viewer_client: Client
) -> None:
    link = f'href="/traces/sets/{ranks.pk}/"'
    assert link in page_of(viewer_client, "/traces/")
    assert link in page_of(viewer_client, f"/traces/{ranks.traces.all()[0].pk}/")


def test_it_compares_the_ranks_of_a_run(ranks: TraceSet, viewer_client: Client) -> None:
    run = make_run()
    Trace.objects.filter(set=ranks).update(set=None, run=run)
    page = page_of(viewer_client, f"/runs/{run.pk}/ranks/")
    assert "Rank 1 arrived last" in page
    rows = csv_of(viewer_client.get(f"/runs/{run.pk}/ranks.csv"))
    assert len(rows) == 2


def test_it_has_no_ranks_of_a_run_without_traces(viewer_client: Client) -> None:
    assert viewer_client.get(f"/runs/{make_run().pk}/ranks/").status_code == 404


def on_host(rank: int, compute_us: int) -> TraceBuilder:
    """Two steps of 1 ms on a processor, with a collective of gloo for 100 µs after the compute."""
    made = TraceBuilder()
    made.header["distributedInfo"] = {"backend": "gloo", "rank": rank, "world_size": 2}
    for step in range(2):
        at = 1000.0 + 1000 * step
        made.mark(f"ProfilerStep#{step}", at, 1000)
        made.op("aten::mm", at, compute_us)
        made.op("gloo:all_reduce", at + compute_us, 100, tid=2)
    return made


def test_it_knows_how_busy_the_host_of_a_rank_without_a_device_is(
    tmp_path: Path, viewer_client: Client
) -> None:
    whole = uploaded(tmp_path, on_host(0, 300), on_host(1, 700))
    rows = csv_of(viewer_client.get(f"/traces/sets/{whole.pk}/ranks.csv"))
    figures = ("busy_share", "busy_ns", "exposed_ns")
    assert [tuple(row[key] for key in figures) for row in rows] == [
        ("0.4", "800000", "200000"),
        ("0.8", "1600000", "200000"),
    ]


# What even ranks would win


def test_it_prices_what_even_ranks_would_win(tmp_path: Path, viewer_client: Client) -> None:
    whole = uploaded(tmp_path, program(200.0), program(600.0, rank=1))
    page = page_of(viewer_client, f"/traces/sets/{whole.pk}/")
    assert "Rank 1 computes 3.60 ms against a mean of 2.40 ms" in page
    said = page.partition("With even ranks a step takes <b")[2].partition("</b>")[0]
    assert said.endswith(">200 µs less (23.9 %)")
    assert "priced on the steps of rank 0" in page


def test_it_prices_a_rank_that_comes_late(ranks: TraceSet, viewer_client: Client) -> None:
    page = page_of(viewer_client, f"/traces/sets/{ranks.pk}/")
    assert "Rank 1 comes last to its collectives; the others wait 800 µs" in page
    # The first three waits end before the host goes on: only the last one holds anything up.
    assert ">200 µs less (6.04 %)</b>" in page


def test_a_wait_that_hides_behind_the_host_wins_nothing(
    tmp_path: Path, viewer_client: Client
) -> None:
    late = {"ph": "X", "cat": "cpu_op", "name": "aten::late", "pid": 1, "tid": 1}
    made = [json.loads(recorded(late_us=us)) for us in (0, 200)]
    for one in made:
        one["traceEvents"].append({**late, "ts": 4100, "dur": 900})
    whole = uploaded(tmp_path, *(json.dumps(one).encode() for one in made))
    page = page_of(viewer_client, f"/traces/sets/{whole.pk}/")
    assert "<b>as long as before</b>: the wait is hidden behind other work" in page


def test_it_says_why_even_ranks_cannot_be_priced(
    ranks: TraceSet, viewer_client: Client, settings: Settings
) -> None:
    read_steps.cache_clear()
    steps = ranks.traces.order_by("rank")[0].replay
    assert isinstance(steps, Artifact)
    store = Path(settings.ARTIFACTS_URL.removeprefix("file://"))
    (store / steps.sha256[:2] / steps.sha256).unlink()
    page = page_of(viewer_client, f"/traces/sets/{ranks.pk}/")
    assert "What even ranks would win cannot be priced: The stored steps cannot be read" in page
