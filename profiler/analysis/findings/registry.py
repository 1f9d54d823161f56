"""All kinds of finding. A new kind is one module here and its name in `types.KINDS`."""

from __future__ import annotations

from collections.abc import Callable

from profiler.analysis.findings import (
    cpu_fallback,
    exposed_communication,
    exposed_copy,
    fusable_chain,
    graph_break,
    host_overhead,
    host_wait,
    imbalance,
    input_wait,
    launch_bound,
    memory_pressure,
    opaque_graph,
    precision,
    recompilation,
    redundant_copy,
    regressed_operator,
    roofline_gap,
    sync_point,
    unfused_optimizer,
)
from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.types import Candidate

Finder = Callable[[Scene], list[Candidate]]

FINDERS: dict[str, Finder] = {
    "roofline_gap": roofline_gap.find,
    "regressed_operator": regressed_operator.find,
    "host_wait": host_wait.find,
    "launch_bound": launch_bound.find,
    "sync_point": sync_point.find,
    "input_wait": input_wait.find,
    "exposed_communication": exposed_communication.find,
    "exposed_copy": exposed_copy.find,
    "fusable_chain": fusable_chain.find,
    "redundant_copy": redundant_copy.find,
    "precision": precision.find,
    "unfused_optimizer": unfused_optimizer.find,
    "cpu_fallback": cpu_fallback.find,
    "recompilation": recompilation.find,
    "graph_break": graph_break.find,
    "host_overhead": host_overhead.find,
    "imbalance": imbalance.find,
    "memory_pressure": memory_pressure.find,
    "opaque_graph": opaque_graph.find,
}


def candidates(scene: Scene) -> list[Candidate]:
    """Everything all kinds see in a scene."""
    return [found for finder in FINDERS.values() for found in finder(scene)]
