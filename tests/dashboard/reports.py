"""Parts of reports for tests of pages."""

from __future__ import annotations

from profiler.analysis.report import QualityReport


def quality_of(**fields: object) -> QualityReport:
    """A quality report in which nothing happened but what `fields` say."""
    values: dict[str, object] = {"repaired": 0, "dropped": 0, "clipped": 0, "unlinked_kernels": 0}
    times = {"attributed_device_ns": 0, "unattributed_device_ns": 0, "warnings": []}
    return QualityReport(**(values | times | fields))  # type: ignore[arg-type]
