"""Borders between the parts of one step, without stopping an asynchronous device where possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch


class Splits(Protocol):
    """`start` at the step's first stamp, `mark` at each border, `resolve` once all is done."""

    def start(self) -> None: ...

    def mark(self) -> None: ...

    def resolve(self, start_ns: int) -> tuple[int, ...]:
        """The borders as stamps in nanoseconds on the clock that gave `start_ns`."""
        ...


class HostSplits:
    """Borders by `now`, which waits for the device before it looks at the clock."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._stamps: list[int] = []

    def start(self) -> None:
        self._stamps.clear()

    def mark(self) -> None:
        self._stamps.append(self._now())

    def resolve(self, start_ns: int) -> tuple[int, ...]:
        return tuple(self._stamps)


class EventSplits:
    """Borders by the device's timing events, read after the step."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._events: list[torch.Event] = []

    def start(self) -> None:
        self._events.clear()
        self.mark()

    def mark(self) -> None:
        event = torch.Event(self._device, enable_timing=True)
        event.record()
        self._events.append(event)

    def resolve(self, start_ns: int) -> tuple[int, ...]:
        first, *borders = self._events
        return tuple(start_ns + round(first.elapsed_time(event) * 1e6) for event in borders)
