"""A small model on a simulated device, with a place for one bottleneck in it.

Every kernel of the clean model runs at 0.9 of its roofline on the device, the
host is far ahead, and steps are long. A plant is called in every layer or at
the start of every step; called with `fixed` it does what the program would do
without the bottleneck. The truth of a case is the difference of the two spans.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from profiler.analysis.findings import Context
from profiler.trace.link import Structure
from profiler.trace.model import Trace
from tests.profiler.analysis.simulate import Simulator

REACHED = 0.9

NOISE = 0.03
"""Standard deviation of every time, of the planted and of the fixed program on its own."""


@dataclass(frozen=True)
class Device:
    """Name in the trace and dense peaks, FLOP/s and bytes/s."""

    name: str
    bf16: float
    fp32: float
    bandwidth: float


H100 = Device("NVIDIA H100 80GB HBM3", 989e12, 67e12, 3.35e12)
H200 = Device("NVIDIA H200", 989e12, 67e12, 4.8e12)
A100 = Device("NVIDIA A100-SXM4-80GB", 312e12, 19.5e12, 2.039e12)
MI300X = Device("AMD Instinct MI300X", 1307e12, 0.0, 5.3e12)
NAMELESS = Device("", 989e12, 67e12, 3.35e12)


@dataclass(frozen=True)
class Size:
    """How much one step does."""

    layers: int = 6
    tokens: int = 2048
    hidden: int = 2048
    steps: int = 3
    device: Device = H100
    sync: bool = True


class Program:
    """The model running on the simulator."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self.sim = Simulator(size.device.name, noise=NOISE)
        self.step_number = 0
        self.begin = self.sim.now

    def ns(self, flops: float, moved: float, *, fp32: bool = False) -> int:
        """Time of a kernel at 0.9 of its roofline."""
        device = self.size.device
        rate = device.fp32 if fp32 else device.bf16
        return int(max(flops / rate, moved / device.bandwidth) * 1e9 / REACHED)

    def op(
        self,
        name: str,
        shapes: Sequence[object],
        types: Sequence[str],
        ns: int,
    ) -> None:
        """An operator that launches one kernel."""
        shape_args = {"Input Dims": list(shapes), "Input type": list(types)}
        with self.sim.frame(name, own_ns=2_000, args=shape_args):
            self.sim.launch(f"kernel_{name.rpartition('::')[2]}", ns)

    def mm(self, m: int, k: int, n: int, factor: float = 1.0, *, fp32: bool = False) -> None:
        """A matrix product; `factor` times slower than it could be."""
        width, dtype = (4, "float") if fp32 else (2, "c10::BFloat16")
        ns = self.ns(2.0 * m * k * n, width * (m * k + k * n + m * n), fp32=fp32)
        self.op("aten::mm", [[m, k], [k, n]], [dtype, dtype], int(ns * factor))

    def elementwise(self, name: str, shape: list[int], inputs: int = 1) -> None:
        """`inputs` tensors in, one out, at the bandwidth."""
        moved = 2 * shape[0] * shape[1] * (inputs + 1)
        self.op(name, [shape] * inputs, ["c10::BFloat16"] * inputs, self.ns(0, moved))

    def attention(self, factor: float = 1.0) -> None:
        """Fused attention with heads of 64."""
        s, a, d = self.size.tokens, self.size.hidden // 64, 64
        flops, moved = 4.0 * a * s * s * d, 8 * a * s * d
        name = "aten::_scaled_dot_product_flash_attention"
        ns = int(self.ns(flops, moved) * factor)
        self.op(name, [[1, a, s, d]] * 3, ["c10::BFloat16"] * 3, ns)

    def norm(self) -> None:
        """A fused RMSNorm."""
        t, h = self.size.tokens, self.size.hidden
        types = ["c10::BFloat16"] * 2
        self.op("aten::_fused_rms_norm", [[t, h], [h]], types, self.ns(0, 4 * t * h + 2 * h))

    def layer(self, number: int, plant: Hook | None, *, fixed: bool) -> None:
        """One transformer layer; the plant sits in its MLP."""
        t, h = self.size.tokens, self.size.hidden
        sim = self.sim
        with sim.module(f"layers.{number}.attention"):
            self.norm()
            self.mm(t, h, 3 * h)
            self.attention()
            self.mm(t, h, h)
        with sim.module(f"layers.{number}.mlp"):
            self.norm()
            if plant is not None:
                plant(self, number, fixed)
            self.mm(t, h, 4 * h)
            self.elementwise("aten::gelu", [t, 4 * h])
            self.mm(t, 4 * h, h)

    def run(self, case: Case, *, fixed: bool) -> Program:
        """All steps of a case."""
        for step in range(self.size.steps):
            self.step_number = step
            with self.sim.step(step):
                if case.in_step is not None:
                    case.in_step(self, step, fixed)
                if case.whole is not None:
                    case.whole(self, step, fixed)
                else:
                    for layer in range(self.size.layers):
                        self.layer(layer, case.in_layer, fixed=fixed)
                if case.at_end is not None:
                    case.at_end(self, step, fixed)
                if self.size.sync:
                    self.sim.sync()
        return self

    @property
    def span_ns(self) -> int:
        """From the first step to the last end of anything."""
        return max(self.sim.now, *self.sim.device.free.values(), 0) - self.begin


Hook = Callable[[Program, int, bool], None]


@dataclass(frozen=True)
class Case:
    """A planted bottleneck (or none), by the kind of finding that should name it."""

    kind: str
    name: str
    size: Size = field(default_factory=Size)
    in_layer: Hook | None = None
    in_step: Hook | None = None
    at_end: Hook | None = None
    whole: Hook | None = None
    context: Context | None = None

    def recorded(self, *, fixed: bool = False) -> tuple[Trace, Structure]:
        """The trace with the plant, or of the program without it."""
        return Program(self.size).run(self, fixed=fixed).sim.linked()

    def truth_ns(self) -> int:
        """What a step takes less without the plant."""
        with_plant = Program(self.size).run(self, fixed=False).span_ns
        without = Program(self.size).run(self, fixed=True).span_ns
        return (with_plant - without) // self.size.steps
