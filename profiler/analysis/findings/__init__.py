"""Findings: what could be won, priced by replaying the measured steps with the change."""

from __future__ import annotations

from profiler.analysis.findings.engine import (
    NO_FINDINGS,
    Context,
    context_of,
    find,
    finding_rows,
    findings_of,
    pricing_of,
    scene_of,
)
from profiler.analysis.findings.types import Finding, FindingsResult, PastOperator
from profiler.analysis.findings.what_if import Price, WhatIf, what_if

__all__ = [
    "NO_FINDINGS",
    "Context",
    "Finding",
    "FindingsResult",
    "PastOperator",
    "Price",
    "WhatIf",
    "context_of",
    "find",
    "finding_rows",
    "findings_of",
    "pricing_of",
    "scene_of",
    "what_if",
]
