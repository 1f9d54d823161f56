"""The phases of a run after loading; a profiled number never becomes a headline."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from profiler.bench.capture import Capture, capture
from profiler.bench.graphs import Compiler, compile_errors
from profiler.bench.output import Reporter
from profiler.bench.routing import counted
from profiler.bench.scenarios.base import Bench, Scenario, Stamps
from profiler.bench.summary import median, summarise
from profiler.errors import CompileError
from profiler.types import Metric, RoutingReport

STEADY_UNITS = 5
STEADY_COV = 0.02
RATIO_WARNING = 1.1
"""A profiled step this much slower than a timed one is worth a warning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One scenario at work, how its model is compiled and where its progress goes."""

    bench: Bench
    scenario: Scenario
    reporter: Reporter
    compiler: Compiler


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiled:
    """The outcome of the profiled phase: how much slower than timed, and what to tell."""

    ratio: float | None
    note: str
    warnings: tuple[str, ...]


def correctness(session: Session, experts: int | None) -> tuple[Metric, RoutingReport | None]:
    """Run the unit for the very first time, then check its numbers.

    Gives the first-call metric and, for a model with `experts`, where tokens went.
    """
    session.reporter.step("correctness", 0, 1)
    now = session.bench.device.now
    start = now()
    _first_unit(session)
    first = now() - start
    routing = _check(session, experts)
    session.reporter.step("correctness", 1, 1)
    method = f"{session.bench.device.timing_method}; one execution"
    return summarise("first_call", [first], phase="correctness", method=method), routing


def _check(session: Session, experts: int | None) -> RoutingReport | None:
    """The scenario's check; tokens per expert are counted where nothing is compiled around them."""
    if experts is None or session.compiler.active:
        session.scenario.check()
        return None
    with counted(session.bench.model, session.bench.spec.routing, experts) as reports:
        session.scenario.check()
    return reports[0]


def _first_unit(session: Session) -> None:
    """The unit for the first time, compiled; on a compile failure eager if the spec allows it."""
    spec, compiler = session.bench.spec, session.compiler
    try:
        with compile_errors(spec.compile):
            compiler.apply(session.bench.model)
            session.scenario.run()
    except CompileError as error:
        if not spec.compile_fallback:
            raise
        compiler.undo(session.bench.model, error.message)
        session.scenario.run()


def warm_up(session: Session) -> tuple[str, ...]:
    """Run and forget the asked units, or until they are steady; a warning if they never are."""
    spec = session.bench.spec
    most = spec.warmup if spec.warmup_max is None else spec.warmup_max
    session.reporter.step("warmup", 0, most)
    times: list[int] = []
    while len(times) < most and not (len(times) >= spec.warmup and steady(times)):
        unit = session.scenario.run()
        times.append(unit[-1] - unit[0])
        session.reporter.step("warmup", len(times), most)
    if spec.warmup_max is None or steady(times):
        return ()
    return (f"warm-up never became steady: the last of {len(times)} units still varied",)


def steady(times: Sequence[int]) -> bool:
    """Whether the last `STEADY_UNITS` times have a coefficient of variation below `STEADY_COV`."""
    last = times[-STEADY_UNITS:]
    return len(last) == STEADY_UNITS and stdev(last) < STEADY_COV * fmean(last)


def timed(session: Session, ready: Callable[[], None]) -> list[Stamps]:
    """The stamps of every timed unit: no profiler, no hooks, no garbage collection.

    `ready` returns when every rank has come here; nothing stands between it and the first unit.
    """
    units = session.bench.spec.iterations
    session.reporter.step("timed", 0, units)
    stamps = []
    with frozen_garbage():
        ready()
        for unit in range(1, units + 1):
            stamps.append(session.scenario.run())
            session.reporter.step("timed", unit, units)
    return stamps


def memory(session: Session) -> tuple[list[Metric], tuple[str, ...]]:
    """Memory metrics of one more unit, and a warning when the device counts nothing."""
    session.reporter.step("memory", 0, 1)
    probe = session.bench.device.peak_memory()
    if probe is None:
        kind = session.bench.device.kind
        return [], (f"peak memory not measured: the {kind} back-end has no memory statistics",)
    gc.collect()
    with probe:
        session.scenario.run()
    session.reporter.step("memory", 1, 1)
    return [
        summarise(name, [peak], phase="memory", method=probe.method)
        for name, peak in probe.peaks.items()
    ], ()


def profiled(session: Session, units: list[Stamps], path: Path) -> Profiled:
    """Record the trace into `path` and compare its steps with the timed ones."""
    asked = session.bench.spec.profiled_steps
    if asked == 0:
        return Profiled(ratio=None, note="not profiled: profiled_steps is 0", warnings=())
    session.reporter.step("profiled", 0, asked)
    bench = session.bench
    options = frozenset(bench.spec.profile)
    if session.compiler.active:
        # Hooks inside a compiled model would be traced into it and change what is measured.
        options -= {"modules"}
    with frozen_garbage():
        taken = capture(session.scenario, bench, path, options=options)
    session.reporter.step("profiled", asked, asked)
    return compare(taken, session.scenario.step_times(units))


def compare(taken: Capture, timed_ns: list[int]) -> Profiled:
    """Median profiled step over median timed step, with a warning above `RATIO_WARNING`."""
    ratio = median(taken.step_ns) / median(timed_ns)
    note = f"median of {len(taken.step_ns)} profiled steps / median of {len(timed_ns)} timed steps"
    warnings = []
    if ratio > RATIO_WARNING:
        warnings.append(
            f"profiled steps took {ratio:.2f} x the timed ones: read shares from the trace, "
            "times from the metrics"
        )
    if taken.note:
        warnings.append(taken.note)
    return Profiled(ratio=ratio, note=note, warnings=tuple(warnings))


@contextlib.contextmanager
def frozen_garbage() -> Iterator[None]:
    """No collection inside: what lives now is set aside, cycles made meanwhile wait."""
    gc.collect()
    gc.freeze()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()
