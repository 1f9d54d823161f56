"""How many CPUs a process may use."""

from __future__ import annotations

import os


def usable_cpus() -> int:
    """CPUs of this process's affinity mask, or of the machine where there is no such thing."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
