"""What NVIDIA's management library tells beyond torch: throttling and other processes.

Read only where the package `nvidia-ml-py` is installed and the device is
NVIDIA's; anything it cannot answer is left out, never guessed.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
from types import ModuleType

import torch

from profiler.bench.devices import Device

MODULE = "pynvml"


def readings(device: Device) -> dict[str, float]:
    """`throttle_reasons` (NVML's bits) and `other_processes` (a count), those that are told."""
    if device.kind != "cuda" or torch.version.hip or importlib.util.find_spec(MODULE) is None:
        return {}
    return asked(importlib.import_module(MODULE), device)


def asked(nvml: ModuleType, device: Device) -> dict[str, float]:
    """The readings of `device` from the library `nvml`."""
    found: dict[str, float] = {}
    # Older libraries lack the newer of these functions.
    with contextlib.suppress(nvml.NVMLError, AttributeError):
        nvml.nvmlInit()
        try:
            handle = nvml.nvmlDeviceGetHandleByUUID(uuid_of(device))
            processes = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
            found["other_processes"] = float(sum(1 for p in processes if p.pid != os.getpid()))
            reasons = nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
            found["throttle_reasons"] = float(reasons)
        finally:
            nvml.nvmlShutdown()
    return found


def uuid_of(device: Device) -> str:
    """The name under which NVML knows the device."""
    properties = torch.get_device_module(device.kind).get_device_properties(device.torch)
    uuid = str(properties.uuid)
    return uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
