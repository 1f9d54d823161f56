"""The generic device class against a back-end that is not CUDA."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest


def simulate(scenario: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.profiler.bench.simulated", scenario]
    done = subprocess.run(command, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


@pytest.mark.parametrize(("scenario", "stamps"), [("prefill", 2), ("decode", 6), ("training", 4)])
def test_it_synchronises_before_every_look_at_the_clock(scenario: str, stamps: int) -> None:
    seen = simulate(scenario)
    assert seen["stamps"] == stamps
    assert seen["synchronisations"] == seen["looks"] == stamps


def test_it_says_how_it_timed_and_what_the_back_end_lacks() -> None:
    seen = simulate("training")
    assert "synchronised before each stamp" in seen["methods"]["step_time"]
    assert "adds a bubble" in seen["methods"]["forward_time"]
    assert seen["activities"] == ["CPU"]
    assert seen["readings"] == {"temperature": 55.0}
    assert {"device_memory_bytes", "device_toolkit"} <= set(seen["missing"])


def test_it_asks_the_back_end_for_memory_and_names() -> None:
    seen = simulate("prefill")
    assert seen["memory"] == {"peak_memory": 3000, "peak_memory_reserved": 4000}
    assert seen["fields"]["device_kind"] == "sim"
    assert seen["fields"]["device_name"] == "Simulated NPU"
    assert seen["fields"]["device_count"] == "2"
