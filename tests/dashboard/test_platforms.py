"""Pages of platforms: machine, ceilings, noise floor, and the A/A control."""

from __future__ import annotations

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.forms.runs import new_nonce
from dashboard.models import (
    Audit,
    Calibration,
    NoiseFloor,
    Platform,
    Result,
    Run,
    RunGroup,
    RunState,
)
from dashboard.services.known import known_of
from tests.dashboard.reading import page_of
from tests.factories import (
    make_group,
    make_heartbeat,
    make_platform,
    make_result,
    make_run,
    make_trace,
    make_workload,
)

HOSTILE = "<img src=x onerror=alert(1)>"


def make_floor(platform: Platform, *, metric: str = "tpot", **fields: object) -> NoiseFloor:
    values: dict[str, object] = {
        "group": make_group(platform),
        "platform": platform,
        "workload": make_workload(),
        "n": 12,
        "floor": 0.0123,
        "worst": 0.045,
        "comparable_hash": "f" * 64,
        "measured_at": timezone.now(),
    }
    return NoiseFloor.objects.create(metric=metric, **(values | fields))


def order(**changes: object) -> dict[str, object]:
    plain: dict[str, object] = {
        "model": "llama-tiny",
        "scenario": "decode",
        "batch": 1,
        "prompt_tokens": 16,
        "output_tokens": 4,
        "iterations": 2,
        "launches": 4,
        "nonce": new_nonce(),
    }
    return plain | changes


@pytest.fixture
def cpu(db: None) -> Platform:
    return make_platform("cpu")


def test_it_says_what_to_do_without_platforms(viewer_client: Client) -> None:
    assert "No platform yet" in page_of(viewer_client, "/platforms/")


def test_it_lists_platforms_with_their_floor(viewer_client: Client, cpu: Platform) -> None:
    make_platform("gpu", device="cuda:0", title=HOSTILE)
    make_heartbeat()
    make_floor(cpu, floor=0.9, worst=0.9)
    make_floor(cpu)
    page = page_of(viewer_client, "/platforms/")
    assert "<b>1.23 %</b>" in page
    assert "n = 12" in page
    assert "not measured" in page
    assert HOSTILE not in page


def test_it_says_what_was_never_measured(viewer_client: Client, cpu: Platform) -> None:
    page = page_of(viewer_client, "/platforms/cpu/")
    assert "The noise floor is <b>not measured</b>" in page
    assert "not calibrated" in page
    assert "the device is known after the first run" in page
    assert "no run measured here yet" in page
    assert "A/A control" not in page.split("<main")[1]


def test_it_shows_the_newest_floor_with_n_and_date(viewer_client: Client, cpu: Platform) -> None:
    make_floor(cpu, floor=0.5, worst=0.6)
    floor = make_floor(cpu)
    make_floor(cpu, metric="ttft", n=4, group=floor.group)
    page = page_of(viewer_client, "/platforms/cpu/")
    assert "Two equal launches differ by <b>1.23 %</b> in" in page
    assert "12 launches of llama-tiny decode" in page
    assert f"{floor.measured_at:%Y-%m-%d %H:%M} UTC" in page
    assert "surely exceeds 3.00 %" in page
    assert "50.0 %" not in page
    assert "rough" in page
    assert "ffffffffff" in page


def test_it_shows_the_data_sheet_of_a_known_device(viewer_client: Client, cpu: Platform) -> None:
    result = make_result(make_run(RunState.SUCCEEDED, platform=cpu))
    fields = {"device_name": "NVIDIA H200", "cpu": HOSTILE}
    Result.objects.filter(pk=result.pk).update(environment={**result.environment, "fields": fields})
    page = page_of(viewer_client, "/platforms/cpu/")
    assert "989 TFLOP/s" in page
    assert "4.80 TB/s" in page
    assert HOSTILE not in page


def test_it_has_no_peaks_of_a_device_it_does_not_know(viewer_client: Client, cpu: Platform) -> None:
    make_result(make_run(RunState.SUCCEEDED, platform=cpu))
    assert "no peaks on file for this device" in page_of(viewer_client, "/platforms/cpu/")


def test_it_queues_an_a_a_control_once(operator_client: Client, cpu: Platform) -> None:
    sent = order()
    first = operator_client.post("/platforms/cpu/noise/", sent)
    again = operator_client.post("/platforms/cpu/noise/", sent)
    group = RunGroup.objects.get()
    assert first.headers["Location"] == again.headers["Location"] == f"/groups/{group.pk}/"
    assert group.runs.count() == 4
    assert {run.spec["profiled_steps"] for run in group.runs.all()} == {0}
    page = page_of(operator_client, f"/groups/{group.pk}/")
    assert "A/A control on cpu" in page
    assert "appears here once every launch has ended" in page


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"launches": 3}, "Enter an even number from 2 to 40."),
        ({"launches": 42}, "Enter an even number from 2 to 40."),
        ({"launches": ""}, "Enter an even number from 2 to 40."),
        ({"batch": 0}, "from 1 to 4,096"),
        ({"model": "gpt-9"}, "No model of that name"),
        ({"prompt_tokens": 4096}, "takes up to 512 tokens"),
    ],
)
def test_it_queues_no_control_that_cannot_work(
    changes: dict[str, object], said: str, operator_client: Client, cpu: Platform
) -> None:
    response = operator_client.post("/platforms/cpu/noise/", order(**changes))
    assert response.status_code == 422
    assert said in response.content.decode()
    assert not Run.objects.exists()


def test_it_shows_the_floor_on_the_page_of_its_group(viewer_client: Client, cpu: Platform) -> None:
    floor = make_floor(cpu)
    make_floor(cpu, metric="ttft", group=floor.group, floor=0.2, worst=0.3)
    make_run(RunState.SUCCEEDED, group=floor.group)
    page = page_of(viewer_client, f"/groups/{floor.group_id}/")
    assert "Two equal launches differ by <b>1.23 %</b>" in page
    assert "20.0 %" in page


def test_it_warns_of_launches_side_by_side(operator_client: Client, cpu: Platform) -> None:
    make_heartbeat()
    assert "disturb each other" not in page_of(operator_client, "/platforms/cpu/")
    make_heartbeat()
    assert "2 workers serve this platform" in page_of(operator_client, "/platforms/cpu/noise/")


def test_it_says_when_a_group_gave_no_floor(viewer_client: Client, cpu: Platform) -> None:
    run = make_run(RunState.FAILED, group=make_group(cpu))
    page = page_of(viewer_client, f"/groups/{run.group_id}/")
    assert "fewer than two launches in one environment succeeded" in page


def test_it_says_not_found(operator_client: Client) -> None:
    for address in ("/platforms/moon/", "/platforms/moon/noise/"):
        assert operator_client.get(address).status_code == 404


@pytest.mark.parametrize("address", ["/platforms/", "/platforms/cpu/"])
def test_it_asks_the_database_as_often_for_many_rows(
    address: str, viewer_client: Client, cpu: Platform
) -> None:
    make_floor(cpu)
    with CaptureQueriesContext(connection) as few:
        viewer_client.get(address)
    for number in range(5):
        make_floor(make_platform(f"p{number}"))
        make_floor(cpu, metric=["ttft", "itl", "step_time", "first_call", "build_time"][number])
    with CaptureQueriesContext(connection) as many:
        viewer_client.get(address)
    assert len(many) == len(few) <= 12


# Calibration

CEILINGS: dict[str, object] = {
    "device": "cpu",
    "threads": 2,
    "matmul_flops": {"float32": 1.5e11, "bfloat16": 2.5e10},
    "copy_bandwidth": 2.1e10,
    "launch_ns": None,
    "dispatch_ns": 850.0,
    "missing": ["launch latency"],
    "took_ns": 10,
    "schema": 1,
}


def calibrated(client: Client, **changes: object) -> HttpResponse:
    text = json.dumps(CEILINGS | changes)
    return client.post("/platforms/cpu/calibrate/", {"text": text})  # type: ignore[return-value]


def test_it_keeps_what_the_machine_measured(operator_client: Client, cpu: Platform) -> None:
    calibrated(operator_client, copy_bandwidth=1.0)
    response = calibrated(operator_client)
    assert response.headers["Location"] == "/platforms/cpu/"
    page = page_of(operator_client, "/platforms/cpu/")
    for shown in ("150 GFLOP/s", "25.0 GFLOP/s", "21.0 GB/s", "850 ns", "by otto"):
        assert shown in page
    assert "not calibrated" not in page
    assert "Launch latency" not in page
    assert Audit.objects.filter(action="platform.calibrate").count() == 2


def test_it_takes_a_calibration_as_a_file(operator_client: Client, cpu: Platform) -> None:
    file = SimpleUploadedFile("c.json", json.dumps({**CEILINGS, "launch_ns": 4200.0}).encode())
    operator_client.post("/platforms/cpu/calibrate/", {"file": file})
    assert "4.20 µs" in page_of(operator_client, "/platforms/cpu/")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"device": "cuda:0"}, "add --device cpu"),
        ({"matmul_flops": {}}, "missing or not positive"),
        ({"copy_bandwidth": -1.0}, "missing or not positive"),
        ({"dispatch_ns": "fast"}, "This is no calibration"),
        ({"device": "x" * (64 << 10)}, "at most 65536 characters"),
    ],
)
def test_it_stores_no_calibration_that_cannot_be(
    changes: dict[str, object], said: str, operator_client: Client, cpu: Platform
) -> None:
    response = calibrated(operator_client, **changes)
    assert response.status_code == 422
    assert said in response.content.decode()
    assert not Calibration.objects.exists()


@pytest.mark.parametrize(
    ("data", "said"), [(b"\xff", "This is no calibration"), (b" " * 70_000, "longer than 64 KiB")]
)
def test_it_names_what_is_wrong_with_a_file(
    data: bytes, said: str, operator_client: Client, cpu: Platform
) -> None:
    file = SimpleUploadedFile("c.json", data)
    response = operator_client.post("/platforms/cpu/calibrate/", {"file": file})
    assert response.status_code == 422
    assert said in response.content.decode()


def test_it_asks_for_the_output(operator_client: Client, cpu: Platform) -> None:
    response = operator_client.post("/platforms/cpu/calibrate/", {"text": " "})
    assert "Paste the output, or choose the file." in response.content.decode()


def test_the_reader_of_traces_is_told_the_measured_peaks(
    operator_client: Client, cpu: Platform
) -> None:
    calibrated(operator_client)
    run = make_run(RunState.SUCCEEDED, platform=cpu)
    known = known_of(make_trace(run=run))
    assert known is not None and known.peak is not None
    assert (known.peak.label, known.peak.bandwidth) == ("measured", 2.1e10)
    assert known.peak.flops == CEILINGS["matmul_flops"]
