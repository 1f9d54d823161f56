"""Whether a workload can fit its device at all, asked before anything is allocated.

A host without swap does not refuse an allocation, it kills the process; so
the sizes that are certain are added up first. The sum is a lower bound: what
it refuses cannot work, what it lets pass may still be too large.
"""

from __future__ import annotations

import psutil
import torch

from profiler import units
from profiler.bench.configs import Plan
from profiler.bench.devices import Device
from profiler.errors import DeviceMemoryError
from profiler.spec import SPLIT
from profiler.types import RunSpec


def require_fit(plan: Plan, spec: RunSpec, device: Device) -> None:
    """Raise `DeviceMemoryError` when the lower bound exceeds the memory that is free now."""
    available = available_bytes(device)
    # Ranks on the CPU share its memory; elsewhere each brings a device for its part.
    parts = spec.ranks if spec.parallel in SPLIT and not device.is_cpu else 1
    needed = lower_bound_bytes(plan, spec) // parts
    if available is not None and needed > available:
        raise DeviceMemoryError(
            f"out of memory on {device.name}: {spec.model} needs at least {units.size(needed)}, "
            f"{units.size(available)} are free",
            "use a smaller batch, shorter sequences, a smaller dtype or a smaller model",
        )


def lower_bound_bytes(plan: Plan, spec: RunSpec) -> int:
    """Bytes the run certainly holds at once.

    Weights; in training also gradients, both AdamW moments (as far as they are
    not offloaded) and the logits of every token; else the hidden states of the prompts.
    """
    with torch.random.fork_rng(devices=[]):
        skeleton = plan.skeleton()
    weights = sum(p.numel() * p.element_size() for p in skeleton.parameters())
    text = plan.config.get_text_config()
    per_token = plan.dtype.itemsize * spec.batch * spec.prompt_tokens
    if spec.scenario == "training":
        copies = {"none": 4, "optimizer": 2, "cpu": 1}[spec.offload]
        return copies * weights + per_token * int(text.vocab_size)
    return weights + per_token * int(text.hidden_size)


def available_bytes(device: Device) -> int | None:
    """Free bytes of the device, or None when its back-end does not say."""
    if device.is_cpu:
        return int(psutil.virtual_memory().available)
    info = device.memory_info()
    return None if info is None else info[0]
