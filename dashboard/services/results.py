"""`result.json` and `env.json` of an attempt: checked, then stored as rows."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from dashboard.models import MetricValue, Run
from dashboard.models import Result as ResultRow
from dashboard.services import history
from dashboard.services.clock import db_now
from dashboard.services.contract import StoredFile
from dashboard.services.stacks import note_stack
from profiler.errors import UserError
from profiler.metrics import METRICS
from profiler.types import Environment, Metric, Result

SIZE_LIMIT = 64 << 20
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """Both documents, decoded and found plausible."""

    result: Result
    environment: Environment
    digest: str


def parse(files: Sequence[StoredFile], spec_hash: str) -> Parsed:
    """Decode and check; raises `UserError` naming what is wrong."""
    paths = {file.name: file.path for file in files}
    raw = _bytes(paths, "result.json")
    result = _decode(raw, Result, "result.json")
    environment = _decode(_bytes(paths, "env.json"), Environment, "env.json")
    if result.spec_hash != spec_hash:
        raise UserError("result.json answers another specification", "run it again")
    if not result.metrics:
        raise UserError("result.json holds no metric", "see the log of the run")
    for metric in result.metrics:
        _check(metric)
    return Parsed(result=result, environment=environment, digest=hashlib.sha256(raw).hexdigest())


def store(run: Run, fence: int, parsed: Parsed) -> None:
    """Insert the result with its metrics; the caller's transaction also ends the run."""
    document = msgspec.to_builtins(dataclasses.replace(parsed.result, metrics=()))
    row = ResultRow.objects.create(
        run=run,
        attempt=run.attempt,
        fence=fence,
        digest=parsed.digest,
        document=document,
        environment=msgspec.to_builtins(parsed.environment),
        comparable_hash=parsed.environment.comparable_hash,
        exact_hash=parsed.environment.exact_hash,
        profiled_ratio=parsed.result.profiled_ratio,
        stored_at=db_now(),
    )
    MetricValue.objects.bulk_create(_row(row, metric) for metric in parsed.result.metrics)
    history.note_result(run)
    note_stack(run, parsed.environment)


def _row(result: ResultRow, metric: Metric) -> MetricValue:
    return MetricValue(
        result=result,
        name=metric.name,
        unit=metric.unit,
        direction=metric.direction,
        definition=metric.definition,
        phase=metric.phase,
        method=metric.method[:500],
        value=metric.value,
        n=metric.n,
        minimum=metric.minimum,
        maximum=metric.maximum,
        iqr=metric.iqr,
        cov=metric.cov,
        percentiles=metric.percentiles,
        samples=list(metric.samples),
    )


def _check(metric: Metric) -> None:
    """A metric must be defined, finite and possible."""
    definition = METRICS.get(metric.name)
    if definition is None or definition.unit != metric.unit:
        raise UserError(f"result.json: metric {metric.name!r} ({metric.unit}) is not defined")
    numbers = [metric.value, *metric.samples, *metric.percentiles.values()]
    optional = (metric.minimum, metric.maximum, metric.iqr, metric.cov)
    numbers += [number for number in optional if number is not None]
    if not all(math.isfinite(number) and number >= 0 for number in numbers):
        raise UserError(
            f"result.json: metric {metric.name} is not a finite, non-negative number",
            "see the log of the run",
        )


def _bytes(paths: dict[str, Path], name: str) -> bytes:
    path = paths.get(name)
    if path is None or not path.is_file():
        raise UserError(f"{name} is missing", "see the log of the run")
    if path.stat().st_size > SIZE_LIMIT:
        raise UserError(f"{name} is larger than 64 MiB", "measure fewer iterations")
    return path.read_bytes()


def _decode(raw: bytes, kind: type[T], name: str) -> T:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{name} cannot be read: {error}", "see the log of the run") from None
