"""The planted and the clean cases that the score is counted over."""

from __future__ import annotations

from collections.abc import Iterator

from tests.profiler.analysis.findings import planted as plant
from tests.profiler.analysis.findings.program import (
    A100,
    H100,
    H200,
    MI300X,
    NAMELESS,
    Case,
    Program,
    Size,
)

SMALL = Size(layers=4, tokens=1024)
LARGE = Size(layers=8, tokens=4096)
OTHER = Size(device=MI300X)
OLDER = Size(device=A100, layers=4)
NEWER = Size(device=H200)


def planted_cases() -> Iterator[Case]:
    """At least forty: each kind in several sizes and on several devices."""
    yield from _device_cases()
    yield from _host_cases()
    yield from _data_cases()
    yield from _special_cases()


def _device_cases() -> Iterator[Case]:
    for factor, size in ((2.5, SMALL), (4.0, LARGE), (2.0, OTHER)):
        yield Case("roofline_gap", f"mm x{factor}", size, plant.slow_mm(factor))
    yield Case("roofline_gap", "attention x3", OLDER, plant.slow_attention(3.0))
    for slower, layers in ((1.6, 4), (2.5, 8)):
        size = Size(device=NAMELESS, layers=layers)
        hook, past = plant.custom(150_000, slower), plant.past_of(size, 150_000)
        yield Case("regressed_operator", f"x{slower}", size, hook, context=past)
    for ns, size in ((120_000, SMALL), (300_000, LARGE), (200_000, NEWER)):
        yield Case("exposed_communication", f"{ns} ns", size, plant.all_reduce(ns))
    for ns, size in ((150_000, SMALL), (400_000, OTHER), (90_000, OLDER)):
        yield Case("exposed_copy", f"{ns} ns", size, plant.pageable_copy(ns))
    for size in (SMALL, OLDER):
        yield Case("precision", size.device.name, size, plant.wide_mm)


def _host_cases() -> Iterator[Case]:
    for ns, size in ((700_000, SMALL), (1_500_000, OTHER), (900_000, NEWER)):
        yield Case("host_wait", f"{ns} ns", size, plant.thinking(ns))
    for count, device in ((120, H100), (400, MI300X), (250, A100)):
        size = Size(device=device)
        yield Case("launch_bound", f"{count}", size, whole=plant.tiny_kernels(count))
    for every, size in ((1, SMALL), (2, Size(layers=8)), (1, OTHER)):
        yield Case("sync_point", f"item every {every}", size, plant.item(every))
    yield Case("sync_point", "stream", NEWER, plant.stream_sync)
    for ns, size in ((2_000_000, SMALL), (6_000_000, LARGE), (3_000_000, OLDER)):
        yield Case("input_wait", f"{ns} ns", size, in_step=plant.loader(ns))
    for rows, layers in ((16, 4), (64, 2), (32, 6)):
        size = Size(device=NAMELESS, layers=layers, sync=False)
        yield Case("host_overhead", f"{rows} rows", size, whole=plant.python_loop(rows))


def _data_cases() -> Iterator[Case]:
    four = ["aten::mul", "aten::add", "aten::silu", "aten::mul"]
    for names, size in ((four, SMALL), (four[:3], OTHER), ([*four, "aten::add"], NEWER)):
        yield Case("fusable_chain", f"{len(names)}", size, plant.chain(names))
    yield Case("redundant_copy", "cast", SMALL, plant.cast_both_ways)
    yield Case("redundant_copy", "cast, other device", OTHER, plant.cast_both_ways)
    yield Case("redundant_copy", "layout", OLDER, plant.contiguous)
    for size in (SMALL, NEWER):
        yield Case("redundant_copy", "growing cat", size, plant.growing_cat)
    for parameters, size in ((40, SMALL), (90, OTHER)):
        hook = plant.optimizer(parameters)
        yield Case("unfused_optimizer", f"{parameters}", size, at_end=hook)


def _special_cases() -> Iterator[Case]:
    for ns, size in ((300_000, SMALL), (900_000, OTHER), (500_000, OLDER)):
        yield Case("cpu_fallback", f"{ns} ns", size, plant.fallback(ns))
    for ns, size in ((8_000_000, SMALL), (20_000_000, LARGE)):
        yield Case("recompilation", f"{ns} ns", size, in_step=plant.compiling(ns))
    for ns, size in ((900_000, SMALL), (2_000_000, OTHER)):
        yield Case("graph_break", f"{ns} ns", size, whole=plant.broken_graph(ns))
    for ns, size in ((500_000, SMALL), (1_500_000, OLDER)):
        yield Case("memory_pressure", f"{ns} ns", size, plant.mallocs(ns))
    for wait, size in ((150_000, SMALL), (300_000, NEWER)):
        yield plant.imbalanced(size, wait)
    for size in (SMALL, OTHER):
        yield Case("opaque_graph", size.device.name, size, whole=plant.graph_replay)


def clean_cases() -> Iterator[Case]:
    """Twenty well-tuned programs: the device is busy at its roofline, the host is ahead."""
    for device in (H100, H200, A100, MI300X):
        for layers, tokens, sync in ((4, 2048, True), (8, 1024, False), (6, 4096, True)):
            size = Size(layers=layers, tokens=tokens, device=device, sync=sync)
            yield Case("", f"{device.name}, {layers} layers, {tokens} tokens", size)
    for device in (H100, MI300X):
        size = Size(device=device, layers=8)
        yield Case("", f"hidden collectives, {device.name}", size, hidden_reduce)
        yield Case("", f"asynchronous copies, {device.name}", size, hidden_copy)
        yield Case("", f"no known peak, {layers_of(size)}", Size(device=NAMELESS, layers=8))
    for layers in (4, 8):
        size = Size(device=NAMELESS, layers=layers, sync=False)
        yield Case("", f"processor, {layers} layers", size, whole=plant.python_loop(1))


def layers_of(size: Size) -> str:
    """The size in words."""
    return f"{size.layers} layers beside {size.device.name}"


def hidden_reduce(p: Program, layer: int, fixed: bool) -> None:
    """A collective on its own stream that nothing waits for within the step."""
    del fixed
    sim = p.sim
    sim.record(f"a{p.step_number}.{layer}", stream=7)
    sim.wait(f"a{p.step_number}.{layer}", stream=20)
    with sim.frame("c10d::allreduce_", own_ns=2_000):
        sim.launch("ncclDevKernel_AllReduce_Sum_bf16", 20_000, stream=20)


def hidden_copy(p: Program, layer: int, fixed: bool) -> None:
    """A pinned copy on its own stream."""
    del layer, fixed
    name = "Memcpy HtoD (Pinned -> Device)"
    p.sim.launch(name, 30_000, cat="gpu_memcpy", call="cudaMemcpyAsync", stream=21)
