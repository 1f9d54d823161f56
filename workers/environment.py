"""The environment of a benchmark: what it needs to measure, and no secret of ours.

An allow-list, because a deny-list forgets: database addresses, tokens and
keys of this process never reach code that is measured.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_NAMES = frozenset(
    {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "CC", "CXX", "VIRTUAL_ENV"}
    | {"HF_HOME", "HF_HUB_CACHE", "GOMP_CPU_AFFINITY", "MALLOC_ARENA_MAX", "LD_PRELOAD"}
)
_PREFIXES = (
    *("CUDA_", "NVIDIA_", "NCCL_", "CUBLAS_", "CUDNN_", "OMP_", "KMP_", "MKL_", "OPENBLAS_"),
    *("TORCH", "PYTORCH_", "TRITON_", "ATEN_", "GLOO_", "HIP_", "ROCR_", "HSA_", "RCCL_"),
    *("ASCEND_", "HCCL_", "NPU_", "XPU_", "ONEAPI_", "SYCL_", "ZE_", "NEURON_", "FAKE_BENCH_"),
)
_SECRET_WORDS = ("TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "API_KEY")
_ROOT = Path(__file__).resolve().parent.parent


def benchmark_environment(
    ours: Mapping[str, str],
    folder: Path,
    marker: Mapping[str, str],
    *,
    import_paths: Sequence[Path] = (),
) -> dict[str, str]:
    """The variables of a benchmark that lives in `folder`; makes its throw-away homes.

    `import_paths` come after ours: code that is measured must not replace what measures it.
    """
    kept = {name: value for name, value in ours.items() if _is_allowed(name)}
    home, temporary = folder / "home", folder / "tmp"
    for place in (home, temporary):
        place.mkdir(mode=0o700, exist_ok=True)
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        **kept,
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "PYTHONPATH": os.pathsep.join(map(str, (_ROOT, *import_paths))),
        "PYTHONFAULTHANDLER": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONSAFEPATH": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        **marker,
    }


def reader_environment(folder: Path, marker: Mapping[str, str]) -> dict[str, str]:
    """The variables of a process that reads a foreign trace in `folder`."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "PYTHONPATH": str(_ROOT),
        "PYTHONFAULTHANDLER": "1",
        "PYTHONSAFEPATH": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        **marker,
    }


def profiler_command(*arguments: str) -> list[str]:
    """`python -m profiler ...` with the interpreter of this process."""
    return [sys.executable, "-m", "profiler", *arguments]


def _is_allowed(name: str) -> bool:
    if any(word in name.upper() for word in _SECRET_WORDS):
        return False
    return name in _NAMES or name.startswith(_PREFIXES)
