"""What could be won, ranked: the findings of a trace as sentences with a price."""

from __future__ import annotations

from dataclasses import dataclass

from profiler.analysis.report import FindingRow, Report

SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingLine:
    """One finding; `gain_ns` is None where nothing could be priced, `width` is of the best."""

    title: str
    subject: str
    gain_ns: int | None
    share: float | None
    width: float
    confidence: str
    calls: int | None
    modules: tuple[str, ...]
    advice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingsPanel:
    """The ranked findings; `more` of them are left to the report."""

    lines: tuple[FindingLine, ...]
    more: int

    @property
    def best(self) -> FindingLine | None:
        """The largest item that has a price."""
        return next((line for line in self.lines if line.gain_ns), None)


def findings_panel(report: Report) -> FindingsPanel:
    """The first findings as the engine ranked them."""
    shown = report.findings[:SHOWN]
    most = max((row.recoverable_ns_per_step or 0 for row in shown), default=0)
    return FindingsPanel(
        lines=tuple(_line(row, most) for row in shown), more=len(report.findings) - len(shown)
    )


def _line(row: FindingRow, most: int) -> FindingLine:
    gain = row.recoverable_ns_per_step
    calls = row.evidence.get("calls")
    modules = row.evidence.get("modules")
    return FindingLine(
        title=row.title,
        subject=row.subject,
        gain_ns=gain,
        share=row.share if gain else None,
        width=(gain or 0) / most if most else 0.0,
        confidence=str(row.evidence.get("confidence", "")),
        calls=calls if isinstance(calls, int) else None,
        modules=tuple(str(name) for name in modules) if isinstance(modules, list) else (),
        advice=row.advice,
    )
