"""Stored steps that answer questions, decoded. They never change: the last few are kept."""

from __future__ import annotations

from functools import lru_cache

from dashboard.services import artifacts
from profiler.analysis.findings.stored import Replayed, unpack
from profiler.errors import TraceError

KEPT = 8


@lru_cache(maxsize=KEPT)
def read_steps(sha256: str) -> Replayed:
    """The steps stored under `sha256`; raises `UserError` when they are gone or damaged."""
    try:
        return unpack(artifacts.read(sha256))
    except OSError as error:
        reason = error.strerror or str(error)
        raise TraceError(f"The stored steps cannot be read: {reason}", "read it again") from None
