"""One class for every device torch can drive, asked through its generic interfaces.

CPU, CUDA, ROCm, XPU, MPS and PrivateUse1 back-ends (NPU, MUSA, MLU and others)
answer through `torch.get_device_module` and `torch.accelerator`. What a
back-end cannot give is reported as missing, never guessed and never zero.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import cast

import torch
from torch.profiler import ProfilerActivity

from profiler.bench.memory import AllocatorPeak, PeakProbe, resident_peak
from profiler.bench.splits import EventSplits, HostSplits, Splits
from profiler.errors import SpecError

Clock = Callable[[], int]

PLUGINS: dict[str, str] = {"npu": "torch_npu", "musa": "torch_musa", "mlu": "torch_mlu"}
"""Device kinds that torch learns from a package which does not register itself."""


class Device:
    """The device of a run. `kind` is torch's device type, `index` its number or None for CPU."""

    def __init__(self, name: str, clock: Clock) -> None:
        self.torch = _torch_device(name)
        self.name = name
        self.kind: str = self.torch.type
        self.clock = clock
        self.is_cpu = self.kind == "cpu"
        self._module = _device_module(self.kind)
        self.has_timing_events = not self.is_cpu and self._probe_events()

    @property
    def timing_method(self) -> str:
        """How a stamp of the host clock relates to the work of the device."""
        if self.is_cpu:
            return "host clock; a CPU operator returns when it is done"
        return "host clock; the device is synchronised before each stamp"

    @property
    def split_method(self) -> str:
        """How the parts inside one step are told apart."""
        if self.is_cpu:
            return "host clock at the end of each part"
        if self.has_timing_events:
            return "device timing events between the parts, no extra synchronisation"
        return "host clock, device synchronised after each part (adds a bubble to the step)"

    def synchronize(self) -> None:
        """Return when everything submitted to the device is done."""
        if not self.is_cpu:
            self._module.synchronize(self.torch)

    def now(self) -> int:
        """A stamp in nanoseconds, after all work of the device."""
        self.synchronize()
        return self.clock()

    def splits(self) -> Splits:
        """A fresh recorder of the borders between the parts of one step."""
        if self.has_timing_events:
            return EventSplits(self.torch)
        return HostSplits(self.now)

    def peak_memory(self) -> PeakProbe | None:
        """A fresh probe of the highest memory in use, or None when the back-end counts nothing."""
        if self.is_cpu:
            return resident_peak()
        probe = AllocatorPeak(self._module, self.torch)
        return probe if probe.usable() else None

    def activities(self) -> tuple[ProfilerActivity, ...]:
        """Profiler activities this device supports, the host's always among them."""
        supported = torch.profiler.supported_activities()  # type: ignore[no-untyped-call]
        known = {activity.name.lower(): activity for activity in supported}
        is_private = self.kind == torch._C._get_privateuse1_backend_name()
        device = known.get("privateuse1" if is_private else self.kind)
        host = ProfilerActivity.CPU
        return (host,) if self.is_cpu or device is None else (host, device)

    def total_memory_bytes(self) -> int | None:
        """Memory of the device, or None when the back-end does not say."""
        info = self.memory_info()
        return None if info is None else info[1]

    def memory_info(self) -> tuple[int, int] | None:
        """Free and total bytes of the device, or None when the back-end does not say."""
        if self.is_cpu:
            return None
        with contextlib.suppress(RuntimeError, AttributeError, NotImplementedError):
            free, total = self._module.mem_get_info(self.torch)
            return int(free), int(total)
        return None

    def hardware_name(self) -> str | None:
        """The device's own name, or None when the back-end does not say."""
        with contextlib.suppress(RuntimeError, AttributeError, NotImplementedError):
            return None if self.is_cpu else str(self._module.get_device_name(self.torch))
        return None

    def count(self) -> int | None:
        """How many devices of this kind there are, or None when the back-end does not say."""
        with contextlib.suppress(RuntimeError, AttributeError, NotImplementedError):
            return None if self.is_cpu else int(self._module.device_count())
        return None

    def readings(self, names: Sequence[str]) -> dict[str, float]:
        """Those of the named readings (temperature, clock ...) that the back-end gives now."""
        found: dict[str, float] = {}
        if self.is_cpu:
            return found
        for name in names:
            # A vendor's library raises errors of its own kind; the caller lists what is missing.
            with contextlib.suppress(Exception):
                found[name] = float(getattr(self._module, name)(self.torch))
        return found

    def _probe_events(self) -> bool:
        try:
            begin, end = (torch.Event(self.torch, enable_timing=True) for _ in range(2))
            begin.record()
            end.record()
            self.synchronize()
            return begin.elapsed_time(end) >= 0
        except (RuntimeError, NotImplementedError, TypeError, ValueError):
            return False


def known_kinds() -> tuple[str, ...]:
    """Device kinds usable on this machine, CPU first."""
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    return ("cpu",) if accelerator is None else ("cpu", accelerator.type)


def _torch_device(name: str) -> torch.device:
    """The torch device called `name`, proved usable by one allocation; else `SpecError`."""
    kind = name.partition(":")[0]
    plugin = PLUGINS.get(kind)
    if plugin is not None and importlib.util.find_spec(plugin) is not None:
        importlib.import_module(plugin)
    try:
        device = torch.device(name)
        torch.empty(1, device=device).fill_(1)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0][:160]
        hint = f"devices here: {', '.join(known_kinds())}"
        raise SpecError(f"spec.device {name!r} cannot be used: {reason}", hint) from None
    if device.type == "meta":
        raise SpecError("spec.device 'meta' computes nothing", "for example cpu or cuda:0")
    return device


def _device_module(kind: str) -> ModuleType:
    """What a back-end registered as `torch.<kind>`: a module, or any object with its functions."""
    return cast(ModuleType, torch.get_device_module(kind))
