"""A run with what its spec asks beyond the scenario: operators alone, full depth of a cut model.

Both come after everything the scenario measures, so they cannot disturb it,
and the result is published only when they are done.
"""

from __future__ import annotations

import gc
import tempfile
from dataclasses import replace
from pathlib import Path
from time import perf_counter_ns

from profiler.bench import depth, harness, micro
from profiler.bench.configs import plan_model
from profiler.bench.devices import Clock, Device
from profiler.bench.output import RESULT, TRACE, Reporter, staging
from profiler.errors import UserError
from profiler.types import Extrapolation, Metric, Result, RunSpec


def run(spec: RunSpec, out: Path, *, reporter: Reporter, clock: Clock = perf_counter_ns) -> Result:
    """Measure `spec` as `harness.run` does and add `micro` and `extrapolation` where they apply.

    Neither is done by several ranks.
    """
    if spec.ranks > 1 or (spec.layers is None and not spec.micro):
        return harness.run(spec, out, reporter=reporter, clock=clock)
    with staging(out) as stage, tempfile.TemporaryDirectory(dir=out, prefix=".partial-") as inner:
        folder = Path(inner)
        result = harness.run(spec, folder, reporter=reporter, clock=clock)
        gc.collect()
        if spec.micro:
            device = Device(spec.device, clock)
            report = micro.measure(spec, folder / TRACE, device, reporter)
            result = replace(result, micro=report)
        if spec.layers is not None:
            found = _extrapolation(result, folder, reporter, clock)
            result = replace(result, extrapolation=found)
        for file in folder.iterdir():
            file.replace(stage.path(file.name))
        stage.write(RESULT, result)
        stage.publish()
    return result


def _extrapolation(
    result: Result, folder: Path, reporter: Reporter, clock: Clock
) -> Extrapolation | None:
    """The full-depth figures of a cut run; None when nothing was cut away."""
    spec, full = result.spec, result.model.full_layers or 0
    cut = spec.layers or 0
    if cut >= full:
        return None
    kinds: tuple[str, ...] = ()
    try:
        kinds = depth.layer_kinds(plan_model(replace(spec, layers=None)))
        second = depth.shallower(spec, kinds)
        reporter.step("depth", 0, 1, f"layers: {second} beside {cut}")
        flat = _measured_at(second, spec, folder, clock)
        reporter.step("depth", 1, 1)
    except UserError as error:
        return depth.not_extrapolated(spec, kinds, full, error.message)
    return depth.described(spec, kinds, second, (_by_name(result), _by_name(flat)))


def _measured_at(layers: int, spec: RunSpec, folder: Path, clock: Clock) -> Result:
    """The timed metrics of the same workload with other `layers`."""
    shorter = replace(spec, layers=layers, profiled_steps=0, micro=0)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".partial-") as scratch:
        found = harness.run(shorter, Path(scratch), reporter=Reporter(None), clock=clock)
    gc.collect()
    return found


def _by_name(result: Result) -> dict[str, Metric]:
    return {metric.name: metric for metric in result.metrics}
