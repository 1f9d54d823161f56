from __future__ import annotations

import msgspec
import pytest

from profiler.bench.calibrate import (
    COPY_BYTES,
    TINY_CALLS,
    best_ns,
    calibrate,
    copy_bandwidth,
    dispatch_ns,
    matmul_flops,
)
from profiler.cli import main
from profiler.types import Calibration
from tests.profiler.bench.scene import FakeClock, cpu

LONG_NS = 50_000_000


def test_it_takes_the_fastest_repetition() -> None:
    device = cpu(FakeClock((0, 900, 0, 300, 0, 700)))
    assert best_ns(device, lambda: None) == 300


def test_it_counts_two_flops_per_product() -> None:
    assert matmul_flops(cpu(FakeClock((LONG_NS,))), "float32") == pytest.approx(2 * 256**3 / 0.05)


def test_it_grows_the_product_until_it_is_long_enough() -> None:
    clock = FakeClock((1000,) * 10 + (LONG_NS,) * 10)
    assert matmul_flops(cpu(clock), "float32") == pytest.approx(2 * 512**3 / 0.05)


def test_it_counts_what_a_copy_reads_and_writes() -> None:
    assert copy_bandwidth(cpu(FakeClock((LONG_NS,)))) == pytest.approx(2 * COPY_BYTES / 0.05)


def test_it_divides_the_host_time_by_the_calls() -> None:
    assert dispatch_ns(cpu(FakeClock((TINY_CALLS * 7,)))) == 7


def test_it_names_what_a_cpu_has_not() -> None:
    found = calibrate(cpu(FakeClock((LONG_NS,))))
    assert found.launch_ns is None
    assert found.missing == ("launch latency: a CPU operator is called, not launched",)
    assert list(found.matmul_flops) == ["float32", "bfloat16", "float16"]


def test_it_calibrates_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "--calibrate", "--json"]) == 0
    found = msgspec.json.decode(capsys.readouterr().out, type=Calibration)
    assert found.copy_bandwidth > 1e8
    assert 0 < found.dispatch_ns < 1e8
