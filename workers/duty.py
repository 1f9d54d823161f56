"""What a worker process does when its bell rings."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from django.conf import settings

from workers.job import Timing


class Duty(Protocol):
    """One kind of work: benchmarks of a platform, or traces."""

    @property
    def kind(self) -> str: ...
    @property
    def platform(self) -> str: ...
    @property
    def queue(self) -> str: ...
    def next(self) -> tuple[int, int] | None: ...
    def handle(self, subject_id: int, attempt: int) -> bool: ...
    def tidy(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where a worker of this host keeps things, and its times."""

    var_dir: Path
    spool: Path
    locks: Path
    timing: Timing


def process_name() -> str:
    """Unique per process: a restarted one never passes for its predecessor."""
    return f"{socket.gethostname()[:60]}:{os.getpid()}:{secrets.token_hex(4)}"


def places() -> Places:
    """From the settings."""
    scale = settings.TIME_SCALE
    return Places(
        var_dir=settings.VAR_DIR,
        spool=settings.VAR_DIR / "spool",
        locks=settings.VAR_DIR / "locks",
        timing=Timing(
            heartbeat_s=settings.HEARTBEAT_S,
            self_fence_s=settings.SELF_FENCE_S,
            term_grace_s=10 / scale,
            lock_wait_s=300 / scale,
        ),
    )
