"""Replay without a change gives what was measured, node by node, on every shared trace."""

from __future__ import annotations

import numpy as np
import pytest

from profiler.analysis.replay.build import build
from profiler.analysis.replay.change import Change
from profiler.analysis.replay.schedule import run
from profiler.trace.link import link
from profiler.trace.normalise import normalise
from profiler.trace.read import read
from tests.profiler.trace.shared import TRACES, golden_names, needs_traces


@needs_traces
@pytest.mark.parametrize("name", golden_names() if TRACES.is_dir() else [])
def test_it_replays_the_measured_steps_to_the_nanosecond(name: str) -> None:
    trace = normalise(read(TRACES / f"{name}.json.gz"))
    graph = build(trace, link(trace))
    assert graph is not None
    schedule = run(graph, [Change("unchanged")])
    assert (schedule.start[:, 0] == graph.start).all()
    assert schedule.span_ns.tolist() == [graph.span_ns]


@needs_traces
def test_it_sees_that_a_synchronising_host_follows_the_device() -> None:
    trace = normalise(read(TRACES / "qwen-h100.json.gz"))
    graph = build(trace, link(trace))
    assert graph is not None
    nodes = np.arange(graph.hosts, graph.nodes)
    faster = Change("", nodes, graph.length[nodes] // 2)
    gain = 1 - int(run(graph, [faster]).span_ns[0]) / graph.span_ns
    assert gain == pytest.approx(0.18, abs=0.02)
