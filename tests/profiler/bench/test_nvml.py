from __future__ import annotations

import os
from types import ModuleType, SimpleNamespace

import pytest

from profiler.bench import nvml
from profiler.bench.devices import Device
from tests.profiler.bench.scene import cpu


class Library(ModuleType):
    """Answers as NVML does; `broken` names the function that fails."""

    class NVMLError(Exception):
        pass

    def __init__(self, broken: str = "") -> None:
        super().__init__("pynvml")
        self.open = 0
        self._broken = broken

    def _ask(self, name: str) -> None:
        if name == self._broken:
            raise self.NVMLError(name)

    def nvmlInit(self) -> None:
        self._ask("init")
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        self._ask("handle")
        return uuid

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[SimpleNamespace]:
        assert handle == "GPU-1234"
        return [SimpleNamespace(pid=pid) for pid in (os.getpid(), 1, 2)]

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: str) -> int:
        self._ask("reasons")
        return 0x44


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    monkeypatch.setattr(nvml, "uuid_of", lambda device: "GPU-1234")
    return cpu()


def test_it_counts_others_and_reads_the_reasons(device: Device) -> None:
    library = Library()
    assert nvml.asked(library, device) == {"other_processes": 2.0, "throttle_reasons": 0x44}
    assert library.open == 0


@pytest.mark.parametrize(
    ("broken", "told"), [("init", set()), ("handle", set()), ("reasons", {"other_processes"})]
)
def test_it_leaves_out_what_the_library_cannot_tell(
    device: Device, broken: str, told: set[str]
) -> None:
    library = Library(broken)
    assert nvml.asked(library, device).keys() == told
    assert library.open == 0


def test_it_asks_nobody_about_a_cpu() -> None:
    assert nvml.readings(cpu()) == {}


@pytest.mark.device
def test_it_answers_for_a_real_device() -> None:
    pytest.importorskip("pynvml")
    assert "throttle_reasons" in nvml.readings(Device("cuda:0", lambda: 0))
