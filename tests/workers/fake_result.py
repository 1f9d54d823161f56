"""A result that the server accepts, without measuring anything."""

from __future__ import annotations

from pathlib import Path

import msgspec

from profiler import spec as specs
from profiler.metrics import METRICS
from profiler.types import Environment, Metric, ModelFacts, Result, RunSpec


def write(spec_path: Path, out: Path) -> None:
    """`result.json` and `env.json` for the spec in `spec_path`."""
    spec = specs.load(spec_path)
    (out / "result.json").write_bytes(msgspec.json.encode(result_of(spec)))
    environment = Environment(
        fields={"torch": "none"}, missing=(), comparable_hash="c" * 64, exact_hash="e" * 64
    )
    (out / "env.json").write_bytes(msgspec.json.encode(environment))


def result_of(spec: RunSpec) -> Result:
    """One metric of each kind is enough."""
    definition = next(iter(METRICS.values()))
    metric = Metric(
        name=definition.name,
        unit=definition.unit,
        direction=definition.direction,
        definition=definition.version,
        phase="timed",
        method="median of the samples",
        value=2.0,
        n=3,
        samples=(1.0, 2.0, 3.0),
    )
    facts = ModelFacts(
        name=spec.model,
        architecture="none",
        parameters=1,
        active_parameters=None,
        weight_bytes=4,
        config={},
    )
    return Result(
        spec=spec,
        spec_hash=specs.spec_hash(spec),
        model=facts,
        metrics=(metric,),
        profiled_ratio=None,
        profiled_note="not profiled",
    )
