"""The platform's own ceilings, measured in well under a minute.

Each is the best of several repetitions: a ceiling is what the machine can do,
not what it does on average. Sizes grow until one repetition is long enough to
time. What a device cannot run is listed as missing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from profiler.bench.devices import Device
from profiler.types import DTYPES, Calibration, DType

ENOUGH_NS = 40_000_000
"""A repetition this long is timed well; the problem then grows no further."""

REPEATS = 5
LARGEST_MATMUL = 16_384
COPY_BYTES = 256 << 20
LARGEST_COPY_BYTES = 4 << 30
TINY_CALLS = 2_000


def calibrate(device: Device) -> Calibration:
    """Matrix products per dtype, copy bandwidth, launch latency and host dispatch of `device`."""
    start = device.now()
    products: dict[str, float] = {}
    missing = []
    for dtype in DTYPES:
        try:
            products[dtype] = matmul_flops(device, dtype)
        except (RuntimeError, NotImplementedError):
            missing.append(f"matmul {dtype}")
    if device.is_cpu:
        missing.append("launch latency: a CPU operator is called, not launched")
    return Calibration(
        device=device.name,
        threads=torch.get_num_threads() if device.is_cpu else None,
        matmul_flops=products,
        copy_bandwidth=copy_bandwidth(device),
        launch_ns=None if device.is_cpu else launch_latency_ns(device),
        dispatch_ns=dispatch_ns(device),
        missing=tuple(missing),
        took_ns=device.now() - start,
    )


def matmul_flops(device: Device, dtype: DType) -> float:
    """FLOP/s of a square matrix product, the largest that one `ENOUGH_NS` repetition needs."""
    kind: torch.dtype = getattr(torch, dtype)
    size = 256
    while True:
        left, right = (torch.randn(size, size, device=device.torch).to(kind) for _ in range(2))
        best = best_ns(device, partial(torch.matmul, left, right))
        if best >= ENOUGH_NS or size >= LARGEST_MATMUL:
            return 2 * size**3 / (best * 1e-9)
        size *= 2


def copy_bandwidth(device: Device) -> float:
    """Bytes per second read plus written by a device-local copy far larger than any cache."""
    amount = COPY_BYTES
    while True:
        source = torch.ones(amount // 4, device=device.torch)
        target = torch.empty_like(source)
        best = best_ns(device, partial(target.copy_, source))
        if best >= ENOUGH_NS or amount >= LARGEST_COPY_BYTES or device.is_cpu:
            return 2 * amount / (best * 1e-9)
        amount *= 2


def launch_latency_ns(device: Device) -> float:
    """From submitting one tiny operator to knowing that it is done."""
    tiny = torch.zeros(1, device=device.torch)
    return float(min(best_ns(device, partial(tiny.add_, 1)) for _ in range(50)))


def dispatch_ns(device: Device) -> float:
    """Host time of one tiny operator among many, without waiting for the device in between."""
    tiny = torch.zeros(1, device=device.torch)

    clock = device.clock
    times = []
    for _ in range(REPEATS):
        device.synchronize()
        start = clock()
        for _ in range(TINY_CALLS):
            tiny.add_(1)
        times.append(clock() - start)
    return min(times) / TINY_CALLS


def best_ns(device: Device, work: Callable[[], object]) -> int:
    """The fastest of a few repetitions after one that warms up."""
    work()
    times = []
    for _ in range(REPEATS):
        start = device.now()
        work()
        times.append(device.now() - start)
        if sum(times) > 10 * ENOUGH_NS:
            break
    return min(times)
