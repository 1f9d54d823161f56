from __future__ import annotations

import mmap
from collections.abc import Callable
from time import perf_counter_ns, sleep

import pytest
from torch.profiler import ProfilerActivity

from profiler.bench.devices import Device, known_kinds
from profiler.bench.memory import (
    SAMPLE_INTERVAL_S,
    HighWaterPeak,
    PeakProbe,
    SampledPeak,
    resident_peak,
)
from profiler.bench.splits import HostSplits
from profiler.errors import SpecError
from tests.profiler.bench.scene import FakeClock

GREW_BYTES = 64 << 20


def cpu() -> Device:
    return Device("cpu", perf_counter_ns)


def test_it_says_what_the_cpu_cannot_tell() -> None:
    device = cpu()
    assert device.total_memory_bytes() is None
    assert device.hardware_name() is None
    assert device.count() is None


def test_it_splits_by_the_host_clock_on_the_cpu() -> None:
    device = Device("cpu", FakeClock((10, 20)))
    splits = device.splits()
    assert isinstance(splits, HostSplits)
    splits.start()
    splits.mark()
    splits.mark()
    assert splits.resolve(0) == (10, 30)


def test_it_records_only_the_host_on_the_cpu() -> None:
    assert cpu().activities() == (ProfilerActivity.CPU,)
    assert known_kinds()[0] == "cpu"


@pytest.mark.parametrize("name", ["meta", "nonsense", "xpu:9"])
def test_it_refuses_a_device_that_cannot_compute(name: str) -> None:
    with pytest.raises(SpecError, match=r"spec\.device"):
        Device(name, perf_counter_ns)


def touch_and_free() -> None:
    """Pages straight from the kernel: the allocator may serve a tensor from memory it kept."""
    with mmap.mmap(-1, GREW_BYTES) as pages:
        for start in range(0, GREW_BYTES, mmap.PAGESIZE):
            pages[start] = 1
        sleep(20 * SAMPLE_INTERVAL_S)


@pytest.mark.parametrize("kind", [HighWaterPeak, SampledPeak])
def test_it_sees_memory_that_is_gone_at_the_end(kind: Callable[[], PeakProbe]) -> None:
    with kind() as probe:
        touch_and_free()
    with resident_peak() as after:
        pass
    assert probe.peaks["peak_memory"] > after.peaks["peak_memory"] + GREW_BYTES // 2


def test_it_forgets_an_earlier_peak() -> None:
    with resident_peak() as first:
        touch_and_free()
    with resident_peak() as second:
        pass
    assert second.peaks["peak_memory"] < first.peaks["peak_memory"] - GREW_BYTES // 2
