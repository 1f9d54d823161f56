"""What a raw file gives away: kinds and keys, never values."""

from __future__ import annotations

from profiler.analysis.report import Report
from profiler.trace.privacy import CLEAN_COPY, HOLDS


def is_privacy_warning(text: str) -> bool:
    """Whether a warning of the quality report is about credentials and personal details."""
    return text.startswith(HOLDS) and text.endswith(CLEAN_COPY)


def found_kinds(report: Report) -> str:
    """What was found: `a credential under env.TOKEN, 2 × home folder`; empty for nothing."""
    found = (text for text in report.quality.warnings if is_privacy_warning(text))
    text = next(found, "").removeprefix(HOLDS).removesuffix(CLEAN_COPY)
    return text.replace(" x ", " × ")
