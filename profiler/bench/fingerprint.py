"""The environment of a run as text fields, from an allow-list, with two hashes."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec
import psutil
import torch

import profiler
from profiler.bench.devices import Device
from profiler.cpus import usable_cpus
from profiler.errors import printable
from profiler.types import EXACT_ONLY, Environment

PACKAGES = ("numpy", "safetensors", "tokenizers", "torch", "transformers", "triton")

VARIABLES = (
    "OMP_NUM_THREADS",
    "OMP_PROC_BIND",
    "OMP_PLACES",
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "MKL_NUM_THREADS",
    "MKL_ENABLE_INSTRUCTIONS",
    "ONEDNN_MAX_CPU_ISA",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "ATEN_CPU_CAPABILITY",
    "MALLOC_ARENA_MAX",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUBLAS_WORKSPACE_CONFIG",
    "NVIDIA_TF32_OVERRIDE",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
    "ASCEND_RT_VISIBLE_DEVICES",
    "ASCEND_LAUNCH_BLOCKING",
    "MUSA_VISIBLE_DEVICES",
    "MLU_VISIBLE_DEVICES",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ENABLE_MPS_FALLBACK",
    "PYTORCH_NPU_ALLOC_CONF",
    "TORCHINDUCTOR_MAX_AUTOTUNE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "NCCL_ALGO",
    "NCCL_PROTO",
    "NCCL_P2P_DISABLE",
    "NCCL_IB_DISABLE",
    "GLOO_SOCKET_IFNAME",
    "HCCL_ALGO",
    "WORLD_SIZE",
)
"""The only environment variables ever read: each changes numbers, none holds a secret."""


Reader = Callable[[], str | None]


def fingerprint(device: Device) -> Environment:
    """The environment of this process on `device`; what cannot be told is in `missing`."""
    return _environment(_readers(device))


def _environment(readers: Mapping[str, Reader]) -> Environment:
    answers = {name: read() for name, read in readers.items()}
    fields = {n: printable(a, 400) for n, a in sorted(answers.items()) if a}
    fields |= {f"env.{n}": printable(os.environ[n], 200) for n in VARIABLES if n in os.environ}
    comparable = {n: value for n, value in fields.items() if n not in EXACT_ONLY}
    return Environment(
        fields=fields,
        missing=tuple(sorted(name for name, answer in answers.items() if not answer)),
        comparable_hash=_hash(comparable),
        exact_hash=_hash(fields),
    )


def _readers(device: Device) -> dict[str, Reader]:
    return _software() | _machine() | _torch_settings() | _device(device)


def _software() -> dict[str, Reader]:
    packages: dict[str, Reader] = {name: partial(_package, name) for name in PACKAGES}
    return packages | {
        "daybreak": lambda: profiler.__version__,
        "python": platform.python_version,
        "python_build": lambda: sys.implementation.name,
        "libc": lambda: " ".join(platform.libc_ver()).strip(),
        "git_commit": lambda: _git("rev-parse", "HEAD"),
        "git_dirty": _dirty,
    }


def _machine() -> dict[str, Reader]:
    return {
        "host": platform.node,
        "os": lambda: f"{platform.system()} {_os_release()}".strip(),
        "kernel": platform.release,
        "machine": platform.machine,
        "cpu": lambda: _proc_value("/proc/cpuinfo", "model name") or platform.processor(),
        "cpus": lambda: str(os.cpu_count() or ""),
        "cpus_usable": lambda: str(usable_cpus()),
        "cpu_affinity": _affinity,
        "cpu_governor": lambda: _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "cpu_max_mhz": _max_mhz,
        "cpu_quota": lambda: _text("/sys/fs/cgroup/cpu.max"),
        "numa_nodes": lambda: _text("/sys/devices/system/node/online"),
        "memory_bytes": lambda: str(psutil.virtual_memory().total),
        "swap_bytes": lambda: str(psutil.swap_memory().total),
        "transparent_huge_pages": lambda: _text("/sys/kernel/mm/transparent_hugepage/enabled"),
    }


def _torch_settings() -> dict[str, Reader]:
    return {
        "torch_build": lambda: hashlib.sha256(torch.__config__.show().encode()).hexdigest()[:16],
        "torch_cpu_capability": torch.backends.cpu.get_cpu_capability,
        "torch_threads": lambda: str(torch.get_num_threads()),
        "torch_interop_threads": lambda: str(torch.get_num_interop_threads()),
        "float32_matmul_precision": torch.get_float32_matmul_precision,
        "deterministic_algorithms": lambda: str(torch.are_deterministic_algorithms_enabled()),
        "mkldnn": lambda: str(torch.backends.mkldnn.is_available()),  # type: ignore[no-untyped-call]
    }


def _device(device: Device) -> dict[str, Reader]:
    if device.is_cpu:
        return {"device_kind": lambda: device.kind, "clock": lambda: device.timing_method}
    return {
        "device_kind": lambda: device.kind,
        "device_name": device.hardware_name,
        "device_count": lambda: _shown(device.count()),
        "device_memory_bytes": lambda: _shown(device.total_memory_bytes()),
        "device_toolkit": lambda: torch.version.cuda or torch.version.hip,
        "device_split": lambda: device.split_method,
        "clock": lambda: device.timing_method,
    }


def _package(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    """The answer of git about the current folder, with what a repository could run switched off."""
    safe = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
    try:
        done = subprocess.run(
            ["git", *safe, *arguments], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _dirty() -> str | None:
    changes = _git("status", "--porcelain", "--untracked-files=no")
    return None if changes is None else str(bool(changes))


def _affinity() -> str | None:
    if not hasattr(os, "sched_getaffinity"):
        return None
    return ",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0)))


def _max_mhz() -> str | None:
    frequency = psutil.cpu_freq()
    return f"{frequency.max:.0f}" if frequency and frequency.max else None


def _os_release() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return platform.version()


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _proc_value(path: str, key: str) -> str | None:
    lines = (_text(path) or "").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), None)


def _shown(value: int | None) -> str | None:
    return None if value is None else str(value)


def _hash(fields: Mapping[str, str]) -> str:
    return hashlib.sha256(msgspec.json.encode(dict(fields), order="sorted")).hexdigest()
