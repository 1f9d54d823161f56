"""A PrivateUse1 back-end called `sim`, registered in a process of its own.

Its module answers as a vendor's does: it counts synchronisations and has
allocator statistics, but neither timing events nor a profiler activity. Only
the operators that prove the device usable exist; the model itself computes on
the CPU, whose results stand in for the device's. Prints what it saw as JSON.
"""

from __future__ import annotations

import json
import sys

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from profiler.bench.contamination import DEVICE_READINGS
from profiler.bench.devices import Device
from profiler.bench.fingerprint import fingerprint
from profiler.bench.graphs import Breaks, Compiler
from profiler.bench.output import Reporter
from profiler.bench.passes import Session, memory
from profiler.bench.scenarios import REGISTRY, Bench
from profiler.types import Scenario
from tests.profiler.bench.scene import FakeClock, small_bench

LIBRARIES: list[torch.library.Library] = []
"""Registrations last only as long as the library object."""


class SimulatedModule:
    """What `torch.sim` answers."""

    synchronisations = 0

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None: ...

    def current_device(self) -> int:
        return 0

    def device_count(self) -> int:
        return 2

    def get_device_name(self, device: object = None) -> str:
        return "Simulated NPU"

    def synchronize(self, device: object = None) -> None:
        self.synchronisations += 1

    def reset_peak_memory_stats(self, device: object = None) -> None: ...

    def max_memory_allocated(self, device: object = None) -> int:
        return 3_000

    def max_memory_reserved(self, device: object = None) -> int:
        return 4_000

    def temperature(self, device: object = None) -> int:
        return 55


def register() -> SimulatedModule:
    """Make `sim` a device of this process."""
    module = SimulatedModule()
    _setup_privateuseone_for_python_backend("sim", backend_module=module)
    library = torch.library.Library("aten", "IMPL", "PrivateUse1")  # type: ignore[no-untyped-call]
    library.impl("empty.memory_format", _empty)  # type: ignore[no-untyped-call]
    library.impl("fill_.Scalar", lambda tensor, value: tensor)  # type: ignore[no-untyped-call]
    LIBRARIES.append(library)
    return module


def _empty(size: list[int], *, dtype: torch.dtype | None = None, **_: object) -> torch.Tensor:
    tensor: torch.Tensor = torch._C._acc.create_empty_tensor(tuple(size), dtype or torch.float32)
    return tensor


def main(scenario: Scenario) -> dict[str, object]:
    module = register()
    clock = FakeClock()
    device = Device("sim", clock)
    on_cpu = small_bench(scenario)
    bench = Bench(
        spec=on_cpu.spec,
        model=on_cpu.model,
        inputs=on_cpu.inputs,
        vocabulary=on_cpu.vocabulary,
        device=device,
        cost=on_cpu.cost,
    )
    runner = REGISTRY[scenario](bench)
    module.synchronisations = 0
    unit = runner.run()
    synchronisations = module.synchronisations
    session = Session(
        bench=bench, scenario=runner, reporter=Reporter(None), compiler=Compiler("eager", Breaks())
    )
    return {
        "stamps": len(unit),
        "looks": clock.looks,
        "synchronisations": synchronisations,
        "methods": {metric.name: metric.method for metric in runner.metrics([unit])},
        "memory": {metric.name: metric.value for metric in memory(session)[0]},
        "activities": [activity.name for activity in device.activities()],
        "readings": device.readings(DEVICE_READINGS),
        "missing": fingerprint(device).missing,
        "fields": fingerprint(device).fields,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(sys.argv[1])))  # type: ignore[arg-type]
