from __future__ import annotations

import dataclasses

import pytest

from profiler.bench.contamination import Snapshot, Watch, compare, snapshot, warnings_of
from tests.profiler.bench.scene import cpu

BEFORE = Snapshot(
    wall_s=100.0,
    own_cpu_s=10.0,
    busy_cpu_s=1000.0,
    steal_s=5.0,
    switches=3,
    load=0.5,
    device={"temperature": 40.0},
)


def later(**fields: object) -> Snapshot:
    after = dataclasses.replace(BEFORE, wall_s=110.0, own_cpu_s=20.0, busy_cpu_s=1010.0)
    return dataclasses.replace(after, **fields)  # type: ignore[arg-type]


def test_it_counts_only_the_time_of_others() -> None:
    assert compare(BEFORE, later(), cpus=2).other_cpu_share == 0
    assert compare(BEFORE, later(busy_cpu_s=1014.0), cpus=2).other_cpu_share == pytest.approx(0.2)


def test_it_counts_stolen_time_and_switches() -> None:
    seen = compare(BEFORE, later(steal_s=6.0, switches=10), cpus=2)
    assert seen.steal_share == pytest.approx(0.05)
    assert seen.involuntary_switches == 7


def test_it_keeps_the_readings_of_the_device_and_names_the_missing() -> None:
    seen = compare(BEFORE, later(device={"temperature": 70.0}), cpus=2)
    assert seen.device == {"temperature_before": 40.0, "temperature_after": 70.0}
    assert seen.missing == ("clock_rate", "power_draw", "utilization")


def test_it_tells_no_steal_where_the_kernel_counts_none() -> None:
    before = dataclasses.replace(BEFORE, steal_s=None)
    assert compare(before, later(steal_s=None), cpus=2).steal_share is None


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"busy_cpu_s": 1014.0}, ["other processes used 20% of the CPUs during the timed phase"]),
        ({"steal_s": 7.0}, ["the hypervisor took 10% of the CPUs"]),
        ({}, []),
    ],
)
def test_it_warns_only_of_what_matters(fields: dict[str, float], said: list[str]) -> None:
    assert list(warnings_of(compare(BEFORE, later(**fields), cpus=2), 2)) == said


def test_it_warns_of_a_load_from_before() -> None:
    before = dataclasses.replace(BEFORE, load=7.0)
    assert "load was 7.0 on 2 CPUs" in warnings_of(compare(before, later(), cpus=2), 2)[0]


def test_it_looks_at_the_real_machine() -> None:
    watch = Watch(cpu())
    with watch.over():
        sum(range(3_000_000))
    seen = watch.seen()
    assert 0 <= (seen.other_cpu_share or 0) <= 1
    assert snapshot(cpu()).busy_cpu_s > 0
    assert seen.device == {}
