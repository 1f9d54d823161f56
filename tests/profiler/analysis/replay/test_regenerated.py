"""Predicted spans against traces regenerated with the change, on schedules with known truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from profiler.analysis.replay.build import build
from profiler.analysis.replay.change import Change, device, host
from profiler.analysis.replay.graph import Graph
from profiler.analysis.replay.schedule import run
from profiler.trace.clock import Int64
from profiler.trace.link import Structure
from profiler.trace.model import Trace
from tests.profiler.analysis.simulate import Simulator


@dataclass(frozen=True)
class Numbers:
    """What a change may scale: kernels called `heavy`, collectives, and host time in `work`."""

    heavy: float = 1.0
    collective: float = 1.0
    work: float = 1.0


Plan = Callable[[Simulator, Numbers], None]


def heavy(sim: Simulator, n: Numbers, ns: int, *, stream: int = 7) -> None:
    with sim.frame("aten::mm", own_ns=2_000):
        sim.launch("heavy", int(ns * n.heavy), stream=stream)


def light(sim: Simulator, ns: int = 3_000, *, stream: int = 7) -> None:
    with sim.frame("aten::add", own_ns=3_000):
        sim.launch("light", ns, stream=stream)


def work(sim: Simulator, n: Numbers, ns: int) -> None:
    with sim.frame("work", "user_annotation", own_ns=int(ns * n.work)):
        pass


def device_bound(sim: Simulator, n: Numbers) -> None:
    for _ in range(20):
        heavy(sim, n, 60_000)
        light(sim)
    sim.sync()


def host_bound(sim: Simulator, n: Numbers) -> None:
    for _ in range(20):
        heavy(sim, n, 5_000)
        work(sim, n, 30_000)
    sim.sync()


def mixed(sim: Simulator, n: Numbers) -> None:
    for number in range(24):
        heavy(sim, n, 40_000 if number % 4 else 4_000)
        work(sim, n, 20_000 if number > 12 else 2_000)
    sim.sync()


def synchronising(sim: Simulator, n: Numbers) -> None:
    for _ in range(6):
        heavy(sim, n, 50_000)
        light(sim)
        sim.blocking_copy("Memcpy DtoH (Device -> Pageable)", 2_000)
        work(sim, n, 15_000)
    sim.sync()


def two_streams(sim: Simulator, n: Numbers, *, told: bool = True) -> None:
    for number in range(8):
        heavy(sim, n, 40_000, stream=7)
        sim.record(f"a{number}", stream=7)
        sim.wait(f"a{number}", stream=8, told=told)
        light(sim, 30_000, stream=8)
        heavy(sim, n, 20_000, stream=7)
        sim.record(f"b{number}", stream=8)
        sim.wait(f"b{number}", stream=7, told=told)
        light(sim, 5_000, stream=7)
    sim.sync()


def untold_streams(sim: Simulator, n: Numbers) -> None:
    two_streams(sim, n, told=False)


def collectives(sim: Simulator, n: Numbers) -> None:
    for number in range(6):
        heavy(sim, n, 30_000, stream=7)
        sim.record(f"g{number}", stream=7)
        sim.wait(f"g{number}", stream=20)
        with sim.frame("c10d::allreduce_", own_ns=4_000):
            sim.launch("ncclDevKernel_AllReduce", int(50_000 * n.collective), stream=20)
    sim.record("end", stream=20)
    sim.wait("end", stream=7)
    light(sim, stream=7)
    sim.sync()


def graphs(sim: Simulator, n: Numbers) -> None:
    for _ in range(5):
        sim.graph([("heavy", int(9_000 * n.heavy)), ("light", 2_000)] * 10)
        work(sim, n, 40_000)
    sim.sync()


def backward_thread(sim: Simulator, n: Numbers) -> None:
    heavy(sim, n, 40_000)
    with sim.frame("backward", "user_annotation"), sim.thread(2):
        for _ in range(12):
            node = "autograd::engine::evaluate_function: MmBackward0"
            with sim.frame(node, own_ns=2_000):
                heavy(sim, n, 8_000)
                work(sim, n, 10_000)
    light(sim)
    sim.sync()


PLANS: tuple[Plan, ...] = (
    device_bound,
    host_bound,
    mixed,
    synchronising,
    two_streams,
    untold_streams,
    collectives,
    graphs,
    backward_thread,
)
CHANGES = (
    Numbers(heavy=0.5),
    Numbers(heavy=0.1),
    Numbers(heavy=1.5),
    Numbers(work=0.0),
    Numbers(work=0.5),
    Numbers(collective=0.3),
    Numbers(heavy=0.6, work=0.3, collective=0.5),
)


def recorded(plan: Plan, numbers: Numbers, steps: int = 3) -> tuple[Trace, Structure]:
    sim = Simulator()
    for step in range(steps):
        with sim.step(step):
            plan(sim, numbers)
    return sim.linked()


def graph_of(plan: Plan, numbers: Numbers) -> tuple[Trace, Structure, Graph]:
    trace, structure = recorded(plan, numbers)
    graph = build(trace, structure)
    assert graph is not None
    return trace, structure, graph


def works_named(trace: Trace, text: str) -> Int64:
    named = np.array([text in s for s in trace.strings])
    return np.flatnonzero(named[trace.device.name])


def change_of(trace: Trace, structure: Structure, graph: Graph, numbers: Numbers) -> Change:
    heavies, sums = works_named(trace, "heavy"), works_named(trace, "nccl")
    works = np.concatenate([heavies, sums])
    scale = np.concatenate(
        [np.full(len(heavies), numbers.heavy), np.full(len(sums), numbers.collective)]
    )
    on_device = device(graph, "", works, (trace.device.dur[works] * scale).astype(np.int64))
    owner = graph.segments.owner
    names = trace.events.name[structure.host.rows[np.maximum(owner, 0)]]
    is_work = np.array([s == "work" for s in trace.strings])
    mine = np.flatnonzero((owner >= 0) & is_work[names])
    scaled = (graph.segment_ns[mine] * numbers.work).astype(np.int64)
    on_host = host("", mine, scaled)
    return Change("", on_device.nodes, on_device.node_ns, on_host.segments, on_host.segment_ns)


@pytest.mark.parametrize("numbers", CHANGES, ids=str)
@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.__name__)
def test_it_predicts_the_regenerated_span(plan: Plan, numbers: Numbers) -> None:
    trace, structure, graph = graph_of(plan, Numbers())
    change = change_of(trace, structure, graph, numbers)
    predicted = int(run(graph, [change]).span_ns[0])
    truth = graph_of(plan, numbers)[2].span_ns
    assert predicted == pytest.approx(truth, rel=0.02)
