"""The banner of a disturbed run, and the noise floor beside its numbers."""

from __future__ import annotations

from typing import Any

from django.test import Client
from django.utils import timezone

from dashboard.models import NoiseFloor, Result, Run, RunState
from tests.dashboard.reading import page_of
from tests.factories import make_group, make_result, make_run, make_spec, make_workload

HOSTILE = "<img src=x onerror=alert(1)>"
QUIET: dict[str, Any] = {
    "other_cpu_share": 0.01,
    "steal_share": 0.0,
    "load_before": 0.5,
    "load_after": 0.75,
    "involuntary_switches": 1234,
    "device": {},
    "missing": ["power_draw"],
}


def probed(fields: dict[str, str] | None = None, **changes: object) -> Run:
    """A measured run whose machine was probed."""
    run = make_run(RunState.SUCCEEDED)
    result = make_result(run)
    environment = {**result.environment, "fields": {"cpus_usable": "2", **(fields or {})}}
    document = {**result.document, "contamination": QUIET | changes}
    Result.objects.filter(pk=result.pk).update(environment=environment, document=document)
    return run


def page(client: Client, run: Run) -> str:
    return page_of(client, f"/runs/{run.pk}/")


def test_it_says_nothing_of_a_quiet_run(viewer_client: Client) -> None:
    assert "disturbed" not in page(viewer_client, probed({"cpu_governor": "powersave"}))


def test_it_says_nothing_of_a_run_that_was_not_probed(viewer_client: Client) -> None:
    run = make_run(RunState.SUCCEEDED)
    make_result(run)
    assert "disturbed" not in page(viewer_client, run)


def test_it_warns_of_other_processes(viewer_client: Client) -> None:
    shown = page(viewer_client, probed({"cpu_governor": "powersave"}, other_cpu_share=0.1))
    assert "Read these numbers with care." in shown
    assert "Other processes used 10% of the CPUs during the timed phase." in shown
    assert "The CPU governor is powersave" in shown
    assert "note wide disturbed warn" in shown


def test_it_puts_the_gravest_first(viewer_client: Client) -> None:
    shown = page(viewer_client, probed(other_cpu_share=0.1, steal_share=0.2))
    assert "do not trust its numbers" in shown
    assert "note wide disturbed bad" in shown
    assert shown.index("The hypervisor took 20%") < shown.index("Other processes used 10%")


def test_it_shows_the_readings_before_and_after(viewer_client: Client) -> None:
    device = {
        "clock_rate_before": 1980.0,
        "clock_rate_after": 1200.0,
        "temperature_before": 60.0,
        "temperature_after": 91.0,
        "power_draw_before": 650_000.0,
        "other_memory_before": 3.0 * 2**30,
        "fan_before": 7.0,
    }
    shown = page(viewer_client, probed(device=device))
    assert "fell from 1980 to 1200 MHz" in shown
    for row in (
        'Device clock</th><td class="num">1980 MHz</td><td class="num">1200 MHz',
        'Device temperature</th><td class="num">60 °C</td><td class="num">91 °C',
        'Device power</th><td class="num">650 W</td><td class="num">–',
        'Device memory of others</th><td class="num">3.00 GiB</td>',
        'Fan</th><td class="num">7</td>',
        'Load</th><td class="num">0.50</td><td class="num">0.75',
        "1,234 over the phase",
    ):
        assert row in shown
    assert "Not told by the device: power draw." in shown


def test_it_says_a_disturbance_once(viewer_client: Client) -> None:
    run = probed(other_cpu_share=0.1)
    result = Result.objects.get(run=run)
    said = "other processes used 10% of the CPUs during the timed phase"
    result.document["warnings"] = [said, "warm-up did not settle"]
    result.save()
    shown = page(viewer_client, run)
    assert shown.lower().count(said.lower()) == 1
    assert "warm-up did not settle" in shown


def test_it_makes_hostile_readings_harmless(viewer_client: Client) -> None:
    run = probed({"cpu_governor": HOSTILE}, steal_share=0.2, device={f"{HOSTILE}_before": 1.0})
    assert HOSTILE not in page(viewer_client, run)


def floor_of(run: Run, **fields: object) -> NoiseFloor:
    values: dict[str, object] = {
        "group": make_group(run.platform),
        "platform": run.platform,
        "workload": run.workload,
        "metric": "tpot",
        "n": 12,
        "floor": 0.0123,
        "worst": 0.03,
        "comparable_hash": "c" * 64,
        "measured_at": timezone.now(),
    }
    return NoiseFloor.objects.create(**(values | fields))


def test_it_says_when_the_noise_floor_was_not_measured(viewer_client: Client) -> None:
    run = probed()
    floor_of(run, metric="ttft")
    assert "not measured for this metric" in page(viewer_client, run)


def test_it_shows_the_floor_of_its_own_workload_first(viewer_client: Client) -> None:
    run = probed()
    floor_of(run)
    floor_of(run, workload=make_workload(make_spec(batch=64)), floor=0.5, worst=0.5)
    shown = page(viewer_client, run)
    assert "two equal launches differ by 1.23 % in time per output token (n = 12" in shown
    assert "another workload" not in shown


def test_it_says_when_the_floor_is_of_another_workload(viewer_client: Client) -> None:
    run = probed()
    floor_of(run, workload=make_workload(make_spec(batch=64)))
    assert "of another workload: llama-tiny b64" in page(viewer_client, run)
