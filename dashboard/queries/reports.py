"""Stored reports and flame graphs of traces, decoded. They never change: the last few are kept."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from dashboard.services import artifacts
from profiler.analysis.flame_document import FlameGraph, unpack
from profiler.analysis.report import Report
from profiler.errors import TraceError

KEPT = 8


@lru_cache(maxsize=KEPT)
def read_report(sha256: str) -> Report:
    """The report stored under `sha256`; raises `UserError` when it is gone or damaged."""
    try:
        return msgspec.json.decode(artifacts.read(sha256), type=Report)
    except OSError as error:
        reason = error.strerror or str(error)
        raise TraceError(f"The stored report cannot be read: {reason}", "read it again") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"The stored report is damaged: {error}", "read it again") from None


@lru_cache(maxsize=KEPT)
def read_graph(sha256: str) -> FlameGraph:
    """The flame graph stored under `sha256`; raises `UserError` when it is gone or damaged."""
    try:
        return unpack(artifacts.read(sha256))
    except OSError as error:
        reason = error.strerror or str(error)
        raise TraceError(f"The flame graph cannot be read: {reason}", "read it again") from None
