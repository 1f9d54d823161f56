from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from profiler.analysis.contamination import notices
from profiler.types import Contamination

QUIET = Contamination(
    other_cpu_share=0.01,
    steal_share=None,
    load_before=1.0,
    load_after=1.0,
    involuntary_switches=3,
    device={},
    missing=("temperature",),
)


def said(environment: dict[str, str] | None = None, **fields: object) -> list[tuple[str, str]]:
    seen = dataclasses.replace(QUIET, **fields)  # type: ignore[arg-type]
    return [(notice.severity, notice.text) for notice in notices(seen, environment or {})]


def test_it_says_nothing_of_a_quiet_run() -> None:
    assert said({"cpus_usable": "2", "cpu_governor": "performance", "git_dirty": "False"}) == []


@pytest.mark.parametrize(("share", "severity"), [(0.06, "warning"), (0.3, "serious")])
def test_it_grades_the_time_of_others(share: float, severity: str) -> None:
    text = f"other processes used {share:.0%} of the CPUs during the timed phase"
    assert said(other_cpu_share=share) == [(severity, text)]


def test_it_tells_stolen_time() -> None:
    assert said(steal_share=0.02) == [("warning", "the hypervisor took 2% of the CPUs")]


def test_it_judges_load_by_the_number_of_cpus() -> None:
    assert said({"cpus_usable": "64"}, load_before=7.0) == []
    assert said({"cpus_usable": "2"}, load_before=7.0)[0] == (
        "serious",
        "load was 7.0 on 2 CPUs before the timed phase",
    )
    assert said(load_before=7.0) == []


def test_it_tells_a_falling_clock_but_no_rising_one() -> None:
    fell = {"clock_rate_before": 1980.0, "clock_rate_after": 1400.0}
    rose = {"clock_rate_before": 345.0, "clock_rate_after": 1980.0}
    text = "the device's clock fell from 1980 to 1400 MHz while timing"
    assert said(device=fell) == [("serious", text)]
    assert said(device=rose) == []


def test_it_tells_a_hot_device() -> None:
    device = {"temperature_before": 60.0, "temperature_after": 91.0}
    assert said(device=device) == [("warning", "the device reached 91 °C")]


def test_it_tells_memory_that_others_hold() -> None:
    text = "others held 5.00 GiB of the device's memory"
    assert said(device={"other_memory_before": 5.0 * 2**30}) == [("warning", text)]


@pytest.mark.parametrize(
    ("bits", "found"),
    [
        (0x1 | 0x2, []),
        (0x4, [("warning", "the device was held at its power cap")]),
        (
            0x44,
            [
                ("serious", "the device slowed down because of its temperature"),
                ("warning", "the device was held at its power cap"),
            ],
        ),
        (0x80, [("serious", "the device was slowed down by its power supply or board")]),
    ],
)
def test_it_tells_why_the_device_was_throttled(bits: int, found: list[tuple[str, str]]) -> None:
    device = {"throttle_reasons_before": 255.0, "throttle_reasons_after": float(bits)}
    assert said(device=device) == found


@pytest.mark.parametrize(
    ("count", "text"), [(1, "another process used the device"), (3, "3 other processes used")]
)
def test_it_tells_company_on_the_device(count: int, text: str) -> None:
    device = {"other_processes_before": float(count), "other_processes_after": 0.0}
    ((severity, found),) = said(device=device)
    assert severity == "warning"
    assert found.startswith(text)


def test_it_puts_the_gravest_first() -> None:
    environment = {"cpu_governor": "powersave", "git_dirty": "True"}
    found = said(environment, steal_share=0.5)
    assert [severity for severity, _ in found] == ["serious", "warning", "info"]


def test_it_loads_no_torch() -> None:
    code = "import sys, profiler.analysis.contamination; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
