"""What else the machine did while the timed phase ran."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psutil
import torch

from profiler.analysis.contamination import notices
from profiler.bench import nvml
from profiler.bench.devices import Device
from profiler.cpus import usable_cpus
from profiler.types import Contamination

DEVICE_READINGS = ("temperature", "clock_rate", "power_draw", "utilization")
"""Functions of torch's device modules, asked where they exist (CUDA and ROCm need their NVML)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One look at the machine; CPU times in seconds since some start."""

    wall_s: float
    own_cpu_s: float
    busy_cpu_s: float
    steal_s: float | None
    switches: int
    load: float | None
    device: dict[str, float]


class Watch:
    """Looks at the machine before and after; `seen` compares the two."""

    def __init__(self, device: Device, *, look: Callable[[Device], Snapshot] | None = None) -> None:
        self._device = device
        self._look = look or snapshot
        self._before: Snapshot | None = None
        self._after: Snapshot | None = None

    @contextlib.contextmanager
    def over(self) -> Iterator[None]:
        """Spans the work to watch."""
        self._before = self._look(self._device)
        yield
        self._after = self._look(self._device)

    def seen(self, *, alone: bool = True) -> Contamination:
        """The comparison; shares are of the CPUs of the machine over the wall time.

        Not `alone`, the run's other ranks cannot be told from strangers, so their share is None.
        """
        assert self._before is not None
        assert self._after is not None
        found = compare(self._before, self._after, cpus=psutil.cpu_count() or usable_cpus())
        return found if alone else dataclasses.replace(found, other_cpu_share=None)


def snapshot(device: Device) -> Snapshot:
    """The machine as it is now."""
    times = psutil.cpu_times()
    steal = getattr(times, "steal", None)
    busy = sum(times) - times.idle - getattr(times, "iowait", 0.0) - (steal or 0.0)
    # Time of guests is part of user and nice already.
    busy -= getattr(times, "guest", 0.0) + getattr(times, "guest_nice", 0.0)
    return Snapshot(
        wall_s=time.monotonic(),
        own_cpu_s=time.process_time(),
        busy_cpu_s=busy,
        steal_s=steal,
        switches=resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw,
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        device=device.readings(DEVICE_READINGS) | _other_memory(device) | nvml.readings(device),
    )


def _other_memory(device: Device) -> dict[str, float]:
    """Bytes in use on the device outside this process's allocator, where both are told."""
    info = device.memory_info()
    reserved = getattr(torch.get_device_module(device.kind), "memory_reserved", None)
    if info is None or reserved is None:
        return {}
    free, total = info
    return {"other_memory": float(max(0, total - free - reserved(device.torch)))}


def compare(before: Snapshot, after: Snapshot, *, cpus: int) -> Contamination:
    """What happened between two snapshots on a machine with `cpus` CPUs."""
    capacity_s = max(after.wall_s - before.wall_s, 1e-9) * cpus
    own = after.own_cpu_s - before.own_cpu_s
    other = max(0.0, after.busy_cpu_s - before.busy_cpu_s - own)
    steal = None
    if before.steal_s is not None and after.steal_s is not None:
        steal = (after.steal_s - before.steal_s) / capacity_s
    readings = {f"{name}_before": value for name, value in before.device.items()}
    readings |= {f"{name}_after": value for name, value in after.device.items()}
    return Contamination(
        other_cpu_share=min(1.0, other / capacity_s),
        steal_share=steal,
        load_before=before.load,
        load_after=after.load,
        involuntary_switches=after.switches - before.switches,
        device=readings,
        missing=tuple(name for name in DEVICE_READINGS if name not in before.device),
    )


def warnings_of(seen: Contamination, cpus: int) -> tuple[str, ...]:
    """One line per disturbance that matters."""
    found = notices(seen, {"cpus_usable": str(cpus)})
    return tuple(notice.text for notice in found if notice.severity != "info")
