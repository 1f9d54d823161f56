"""Parts of reports for tests of pages."""

from __future__ import annotations

from profiler.analysis.bounds import BoundRow
from profiler.analysis.report import QualityReport


def quality_of(**fields: object) -> QualityReport:
    """A quality report in which nothing happened but what `fields` say."""
    values: dict[str, object] = {"repaired": 0, "dropped": 0, "clipped": 0, "unlinked_kernels": 0}
    times = {"attributed_device_ns": 0, "unattributed_device_ns": 0, "warnings": []}
    return QualityReport(**(values | times | fields))  # type: ignore[arg-type]


def bound_of(name: str = "aten::mm", **fields: object) -> BoundRow:
    """A counted operator that reaches half of what it could."""
    values: dict[str, object] = {"calls": 4, "total_ns": 8_000, "share": 0.5, "flops": 10**9}
    values |= {"bytes": 10**6, "flop_rate": 4.12e14, "byte_rate": 2.02e12, "bound": "compute"}
    values |= {"bound_ns": 4_000, "efficiency": 0.5}
    return BoundRow(name=name, **(values | fields))  # type: ignore[arg-type]
