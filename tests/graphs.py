"""Flame graphs for tests and benchmarks: plain functions, each graph valid on its own."""

from __future__ import annotations

from profiler.analysis.flame_document import FlameGraph, View


def make_graph() -> FlameGraph:
    """A flame graph with one frame on the host."""
    lists: dict[str, list[int]] = {"parent": [-1], "name": [0], "category": [1], "calls": [12]}
    view = View(kind="host", total_ns=2_000_000, self_ns=[2_000_000], folded=[], **lists)
    return FlameGraph(steps=0, names=["aten::mm"], views=[view])


def make_wide_graph(frames: int) -> FlameGraph:
    """A flame graph with stacks 16 deep and that many frames of falling size."""
    depth = 16
    parent = [at - 1 if at % depth else -1 for at in range(frames)]
    self_ns = [1_000 * (frames - at) for at in range(frames)]
    view = View(
        kind="host",
        total_ns=sum(self_ns),
        parent=parent,
        name=[at % depth for at in range(frames)],
        category=[at % 5 for at in range(frames)],
        self_ns=self_ns,
        calls=[1] * frames,
        folded=[],
    )
    return FlameGraph(steps=1, names=[f"aten::operator_{n}" for n in range(depth)], views=[view])
