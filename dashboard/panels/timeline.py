"""Panel: how a device's time splits. The parts of a bar add up to the span it shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dashboard.panels.base import device_title
from profiler.analysis.report import DeviceTimeline, IdleRow, Report

_IDLE_COLOURS = (("host", "idle-host"), ("launch", "idle-launch"), ("kernel", "idle-launch"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One stretch of a bar: `start` and `width` in percent, `colour` a token of the stylesheet."""

    title: str
    colour: str
    total_ns: int
    start: str
    width: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceBar:
    """One device from its first to its last work."""

    device: str
    span_ns: int
    busy_ns: int
    parts: tuple[Part, ...]
    overlap_ratio: float | None
    comm_ns: int
    wait_ns: int
    source: str

    @property
    def spoken(self) -> str:
        """The bar in words, for those who do not see it."""
        return ", ".join(f"{part.title} {part.share:.1%}" for part in self.parts)

    @property
    def busy_share(self) -> float:
        return self.busy_ns / self.span_ns if self.span_ns else 0.0


def device_bars(report: Report) -> tuple[DeviceBar, ...]:
    """One bar per device that did any work."""
    return tuple(_bar(row, report.idle) for row in report.timeline if row.span_ns > 0)


def _bar(row: DeviceTimeline, idle: list[IdleRow]) -> DeviceBar:
    return DeviceBar(
        device=device_title(row.device),
        span_ns=row.span_ns,
        busy_ns=row.busy_ns,
        parts=tuple(placed(list(_stretches(row, idle)), row.span_ns)),
        overlap_ratio=row.overlap_ratio,
        comm_ns=row.comm_ns,
        wait_ns=row.wait_ns,
        source="" if row.source == "events" else row.source,
    )


Stretch = tuple[str, str, int]


def _stretches(row: DeviceTimeline, idle: list[IdleRow]) -> Iterator[Stretch]:
    yield "compute", "compute", row.compute_ns
    yield "exposed communication", "comm", row.exposed_comm_ns
    yield "exposed copies", "copy", row.exposed_copy_ns
    named = row.compute_ns + row.exposed_comm_ns + row.exposed_copy_ns
    yield "other work", "python", row.busy_ns - named
    causes = [cause for cause in idle if cause.device == row.device]
    if sum(cause.total_ns for cause in causes) == row.idle_ns:
        for cause in sorted(causes, key=lambda cause: -cause.total_ns):
            yield f"idle: {cause.cause.replace('_', ' ')}", _colour(cause.cause), cause.total_ns
    else:
        yield "idle", "idle-other", row.idle_ns


def _colour(cause: str) -> str:
    return next((colour for word, colour in _IDLE_COLOURS if word in cause), "idle-other")


def placed(stretches: list[Stretch], span_ns: int) -> Iterator[Part]:
    """Stretches one after the other, as parts of a bar that is `span_ns` long."""
    at_ns = 0
    for title, colour, total_ns in stretches:
        if total_ns <= 0:
            continue
        yield Part(
            title=title,
            colour=colour,
            total_ns=total_ns,
            start=f"{100 * at_ns / span_ns:.4f}",
            width=f"{100 * total_ns / span_ns:.4f}",
            share=total_ns / span_ns,
        )
        at_ns += total_ns
