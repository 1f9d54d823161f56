"""From the step of the baseline to that of the candidate: bars that add up, as shares of a width.

Geometry only; times are ns per step.
"""

from __future__ import annotations

from dataclasses import dataclass

from profiler.analysis.waterfall import Bar, Waterfall
from profiler.errors import printable
from profiler.units import duration

_MARGIN = 0.04
NAME_LIMIT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class BarView:
    """One row: where its bar begins and how wide it is, in per cent of the scale."""

    name: str
    left: float
    width: float
    kind: str
    """baseline, candidate, less, more or same: gives the colour."""
    value_ns: int
    """The step itself for the two ends, else the change."""

    @property
    def x(self) -> str:
        return f"{self.left:.2f}"

    @property
    def w(self) -> str:
        return f"{self.width:.2f}"

    @property
    def is_end(self) -> bool:
        return self.kind in {"baseline", "candidate"}

    @property
    def shown(self) -> str:
        """A step as its time, a change with its sign."""
        if self.is_end or not self.value_ns:
            return duration(self.value_ns)
        return f"{'−' if self.value_ns < 0 else '+'}{duration(abs(self.value_ns))}"

    @property
    def arrow(self) -> str:
        return {"less": "▼", "more": "▲"}.get(self.kind, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class WaterfallView:
    """Rows from baseline to candidate; the scale begins at `from_ns`, not at nought."""

    rows: tuple[BarView, ...]
    from_ns: float


def waterfall_view(found: Waterfall) -> WaterfallView:
    """Every bar placed where the one before it ended."""
    levels = [found.baseline_ns]
    for bar in found.bars:
        levels.append(levels[-1] + bar.change_ns)
    low, high = min(levels), max(levels)
    spread = (high - low) or max(1, high)
    start = max(0.0, low - spread * (_MARGIN + 0.2))
    scale = 100 / (high + spread * _MARGIN - start)

    def place(one: float, other: float) -> tuple[float, float]:
        left, right = sorted((one, other))
        return (left - start) * scale, max(0.15, (right - left) * scale)

    rows = [_end("baseline", found.baseline_ns, place(start, found.baseline_ns))]
    for bar, before, after in zip(found.bars, levels[:-1], levels[1:], strict=True):
        left, width = place(before, after)
        kind = "less" if bar.change_ns < 0 else "more" if bar.change_ns > 0 else "same"
        rows.append(
            BarView(
                name=printable(bar_name(bar), NAME_LIMIT),
                left=left,
                width=width,
                kind=kind,
                value_ns=bar.change_ns,
            )
        )
    rows.append(_end("candidate", found.candidate_ns, place(start, found.candidate_ns)))
    return WaterfallView(rows=tuple(rows), from_ns=start)


def bar_name(bar: Bar) -> str:
    """What a bar is called; causes of idle time are no operators."""
    return f"idle: {bar.name}" if bar.kind == "idle" else bar.name


def _end(name: str, value_ns: int, place: tuple[float, float]) -> BarView:
    return BarView(name=name, left=place[0], width=place[1], kind=name, value_ns=value_ns)
