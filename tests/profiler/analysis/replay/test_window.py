"""Which steps are replayed, and that a part cut out of a trace replays like the whole."""

from __future__ import annotations

import pytest

from profiler.analysis.replay import window as windows
from profiler.analysis.replay.build import build
from profiler.analysis.replay.cut import cut
from profiler.analysis.replay.window import Window, window_of
from profiler.trace.link import Structure
from profiler.trace.model import Trace
from tests.profiler.analysis.simulate import Simulator


def steps(count: int, *, sync: bool) -> tuple[Trace, Structure]:
    """Steps that get longer, of two kernels and a copy each."""
    sim = Simulator()
    for number in range(count):
        with sim.step(number):
            for _ in range(2):
                with sim.frame("aten::mm", own_ns=1_000):
                    sim.launch("gemm", 30_000 + 10_000 * number)
            if sync:
                sim.blocking_copy("Memcpy DtoH (Device -> Pageable)", 2_000)
    return sim.linked()


def found(trace: Trace, structure: Structure) -> Window:
    window = window_of(trace, structure)
    assert window is not None
    return window


def test_it_takes_all_steps_of_a_short_trace() -> None:
    window = found(*steps(5, sync=True))
    assert (window.steps, window.name) == (5, "5 steps")


def test_it_takes_steps_around_the_median_of_a_long_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    trace, structure = steps(9, sync=True)
    monkeypatch.setattr(windows, "EVENT_LIMIT", 40)
    window = found(trace, structure)
    assert window.name == "4 steps of 9"
    bounds = sorted((b - a, a) for a, b in found_all(trace, structure, monkeypatch))
    assert bounds[4][1] in [a for a, _ in window.bounds]


def found_all(
    trace: Trace, structure: Structure, monkeypatch: pytest.MonkeyPatch
) -> tuple[tuple[int, int], ...]:
    monkeypatch.setattr(windows, "EVENT_LIMIT", 10**9)
    return found(trace, structure).bounds


def test_it_takes_a_trace_without_marks_as_one_step() -> None:
    sim = Simulator()
    with sim.frame("aten::mm", own_ns=1_000):
        sim.launch("gemm", 30_000)
    window = found(*sim.linked())
    assert (window.steps, window.marked, window.name) == (1, False, "the whole trace")


@pytest.mark.parametrize("sync", [True, False])
def test_it_replays_a_cut_like_the_whole_trace(sync: bool) -> None:
    trace, structure = steps(8, sync=sync)
    whole = found(trace, structure)
    bounds = whole.bounds[3:6]
    window = Window(bounds[0][0], bounds[-1][1], 3, whole.track, bounds, "3 steps of 8")
    complete = build(trace, structure, window)
    part, part_structure = cut(trace, structure, window)
    alone = build(part, part_structure, window)
    assert complete is not None
    assert alone is not None
    assert len(part.events) < len(trace.events)
    assert alone.span_ns == complete.span_ns
    assert alone.start.tolist() == complete.start.tolist()
