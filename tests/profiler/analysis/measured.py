"""Folders of launches as `profiler run` leaves them, with values a test chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from profiler.metrics import METRICS
from profiler.spec import spec_hash
from profiler.types import Environment, Failure, Metric, ModelFacts, Result, RunSpec

SPEC = RunSpec(model="llama-tiny", scenario="decode", prompt_tokens=8, output_tokens=4)
FIELDS = {"torch": "2.13.0", "cpus": "2", "host": "here"}
MODEL = ModelFacts(
    name="llama-tiny",
    architecture="llama",
    parameters=1,
    active_parameters=None,
    weight_bytes=4,
    config={},
)


def environment(**fields: str) -> Environment:
    """A fingerprint; its comparable hash is that of the fields that matter."""
    told = FIELDS | fields
    comparable = "|".join(f"{k}={v}" for k, v in sorted(told.items()) if k != "host")
    return Environment(fields=told, missing=(), comparable_hash=comparable, exact_hash="e")


def result(values: Mapping[str, float], spec: RunSpec = SPEC) -> Result:
    """A result with these metric values."""
    metrics = [
        Metric(
            name=name,
            unit=METRICS[name].unit,
            direction=METRICS[name].direction,
            definition=METRICS[name].version,
            phase="timed",
            method="clock",
            value=value,
            n=1,
        )
        for name, value in values.items()
    ]
    return Result(
        spec=spec,
        spec_hash=spec_hash(spec),
        model=MODEL,
        metrics=tuple(metrics),
        profiled_ratio=None,
        profiled_note="",
    )


def launch(
    folder: Path,
    values: Mapping[str, float],
    *,
    spec: RunSpec = SPEC,
    told: Environment | None = None,
) -> Path:
    """One finished launch."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "result.json").write_bytes(msgspec.json.encode(result(values, spec)))
    (folder / "env.json").write_bytes(msgspec.json.encode(told or environment()))
    return folder


def failed(folder: Path, message: str = "out of memory") -> Path:
    """One launch that ended without a result."""
    folder.mkdir(parents=True)
    failure = Failure(kind="oom_device", message=message)
    (folder / "error.json").write_bytes(msgspec.json.encode(failure))
    return folder


def side(
    folder: Path,
    times_ns: Sequence[float | None],
    *,
    told: Environment | None = None,
    batch: int = 1,
) -> Path:
    """Launches with these times per token; None for one that failed."""
    for number, time_ns in enumerate(times_ns):
        where = folder / f"launch-{number}"
        if time_ns is None:
            failed(where)
        else:
            values = {"tpot": time_ns, "decode_rate": 1e9 / time_ns, "peak_memory": 5e6}
            launch(where, values, spec=replace(SPEC, batch=batch), told=told)
    return folder
