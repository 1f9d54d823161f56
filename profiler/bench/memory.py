"""Highest memory in use while something runs, and how it was found out."""

from __future__ import annotations

import contextlib
import re
import threading
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Protocol, Self

import psutil
import torch

CLEAR_REFS = Path("/proc/self/clear_refs")
STATUS = Path("/proc/self/status")
SAMPLE_INTERVAL_S = 0.002


class PeakProbe(Protocol):
    """A context around the work; `peaks` holds bytes per metric name once it is left."""

    method: str
    peaks: dict[str, int]

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def resident_peak() -> PeakProbe:
    """The best probe of this process's resident set that the kernel allows."""
    return HighWaterPeak() if HighWaterPeak.usable() else SampledPeak()


class HighWaterPeak:
    """The kernel's own high-water mark of the resident set, reset at the start (Linux)."""

    method = "resident set of the process: kernel high-water mark, reset before the pass"

    def __init__(self) -> None:
        self.peaks: dict[str, int] = {}

    @staticmethod
    def usable() -> bool:
        """Whether the mark can be reset and read here."""
        try:
            _reset_high_water()
        except OSError:
            return False
        return _high_water_bytes() is not None

    def __enter__(self) -> Self:
        _reset_high_water()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        peak = _high_water_bytes()
        if peak is not None:
            self.peaks["peak_memory"] = peak


class SampledPeak:
    """The resident set looked at every few milliseconds; short peaks can be missed."""

    method = f"resident set of the process: sampled every {SAMPLE_INTERVAL_S * 1e3:.0f} ms"

    def __init__(self) -> None:
        self.peaks: dict[str, int] = {}
        self._process = psutil.Process()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        self._look()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()
        self._look()

    def _sample(self) -> None:
        while not self._done.wait(SAMPLE_INTERVAL_S):
            self._look()

    def _look(self) -> None:
        resident = int(self._process.memory_info().rss)
        self.peaks["peak_memory"] = max(resident, self.peaks.get("peak_memory", 0))


class AllocatorPeak:
    """The statistics of the device's caching allocator, and the driver's view where it has one."""

    method = "device allocator statistics, peaks reset before the pass"

    def __init__(self, module: ModuleType, device: torch.device) -> None:
        self.peaks: dict[str, int] = {}
        self._module = module
        self._device = device

    def usable(self) -> bool:
        """Whether this back-end counts at all."""
        try:
            self._module.reset_peak_memory_stats(self._device)
            self._module.max_memory_allocated(self._device)
        except (AttributeError, RuntimeError, NotImplementedError):
            return False
        return True

    def __enter__(self) -> Self:
        self._module.synchronize(self._device)
        self._module.reset_peak_memory_stats(self._device)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._module.synchronize(self._device)
        self.peaks["peak_memory"] = int(self._module.max_memory_allocated(self._device))
        with contextlib.suppress(AttributeError, RuntimeError, NotImplementedError):
            self.peaks["peak_memory_reserved"] = int(self._module.max_memory_reserved(self._device))
        with contextlib.suppress(AttributeError, RuntimeError, NotImplementedError):
            free, total = self._module.mem_get_info(self._device)
            self.peaks["device_memory_used"] = int(total) - int(free)


def _reset_high_water() -> None:
    CLEAR_REFS.write_text("5", encoding="ascii")


def _high_water_bytes() -> int | None:
    match = re.search(r"^VmHWM:\s+(\d+) kB$", STATUS.read_text(encoding="ascii"), re.MULTILINE)
    return int(match.group(1)) * 1024 if match else None
