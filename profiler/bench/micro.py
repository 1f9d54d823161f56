"""The hottest operators of a run alone: each call of the trace rebuilt and timed by itself.

Cold means that a buffer larger than the last-level cache was written before
each call, as between the layers of a large model; warm means that the same
call ran just before. Contents are random, so an operator whose work depends
on contents is not measured. These are diagnoses, never headlines.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import torch

from profiler import units
from profiler.analysis.analyse import linked
from profiler.analysis.operators import operator_times, shape_rows
from profiler.analysis.report import ShapeRow
from profiler.bench.devices import Device
from profiler.bench.fit import available_bytes
from profiler.bench.output import Reporter
from profiler.bench.rebuild import CannotRebuildError, Rebuilt, RecordedCall, input_bytes, rebuild
from profiler.bench.summary import median, quantile
from profiler.errors import printable
from profiler.trace.read import read
from profiler.types import MicroReport, MicroRow, MicroTiming, RunSpec

SAMPLES = 30
FEWEST_SAMPLES = 5
BUDGET_NS = 1_000_000_000
"""Timing one operator in one way takes about this long at most, flushes included."""

WARM_UP_CALLS = 3
DEFAULT_FLUSH_BYTES = 256 << 20
_OPERATOR = re.compile(r"[A-Za-z_]\w*::\w+(\.\w+)?")
_CACHE_SIZE = re.compile(r"(\d+)([KMG]?)")
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


class _Arguments(msgspec.Struct):
    shapes: list[list[object]] = msgspec.field(name="Input Dims", default_factory=list)
    strides: list[list[object]] = msgspec.field(name="Input Strides", default_factory=list)
    types: list[str] = msgspec.field(name="Input type", default_factory=list)
    concrete: list[str] = msgspec.field(name="Concrete Inputs", default_factory=list)


class _Event(msgspec.Struct):
    name: object = ""
    cat: object = ""
    args: msgspec.Raw = msgspec.Raw(b"{}")


class _Document(msgspec.Struct):
    events: list[_Event] = msgspec.field(name="traceEvents")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """Where operators run alone: the device, what is written between calls, the run's type."""

    device: Device
    flush: torch.Tensor
    dtype: torch.dtype


def measure(spec: RunSpec, trace: Path, device: Device, reporter: Reporter) -> MicroReport:
    """The `spec.micro` hottest operator x shape pairs of the profiler's own `trace`, alone."""
    rows = hottest(trace, spec.micro)
    calls = recorded_calls(trace, rows)
    size = flush_bytes(device)
    stand = Stand(
        device=device,
        flush=torch.empty(size // 4, dtype=torch.int32, device=device.torch),
        dtype=getattr(torch, spec.dtype),
    )
    found: list[MicroRow] = []
    reporter.step("micro", 0, len(rows))
    for row in rows:
        found.append(_measured(row, calls.get(row), stand))
        reporter.step("micro", len(found), len(rows))
    method = (
        f"{device.timing_method}; single calls of the first recorded call of each kind, its "
        f"shapes, strides and numbers; random contents; tensors in lists are {spec.dtype}; cold: "
        f"{units.size(size)} written before each call; warm: right after the same call"
    )
    return MicroReport(rows=tuple(found), flush_bytes=size, method=method)


def hottest(trace: Path, count: int) -> list[ShapeRow]:
    """The `count` operator x shape pairs with most self time: the device's if it has any."""
    found = linked(read(trace))
    rows = shape_rows(found.trace, found.structure, operator_times(found.trace, found.structure))
    return [row for row in rows if _OPERATOR.fullmatch(row.name)][:count]


def recorded_calls(trace: Path, rows: Sequence[ShapeRow]) -> dict[ShapeRow, RecordedCall]:
    """The first recorded call of each row, for its strides and numbers."""
    wanted = {(row.name, row.shapes, row.dtypes): row for row in rows}
    names = {row.name for row in rows}
    found: dict[ShapeRow, RecordedCall] = {}
    with gzip.open(trace) as file:
        document = msgspec.json.decode(file.read(), type=_Document)
    for event in document.events:
        if event.cat != "cpu_op" or event.name not in names:
            continue
        given = msgspec.json.decode(event.args, type=_Arguments)
        key = (str(event.name), _text(given.shapes), _text(given.types))
        row = wanted.get(key)
        if row is not None and row not in found:
            found[row] = RecordedCall(
                name=row.name,
                shapes=tuple(given.shapes),
                strides=tuple(given.strides),
                types=tuple(given.types),
                concrete=tuple(given.concrete),
            )
    return found


def flush_bytes(device: Device) -> int:
    """Twice the last-level cache, or 256 MiB where nobody tells its size."""
    if device.is_cpu:
        cache = max((_cache_bytes(path) for path in CACHES.glob("index*/size")), default=0)
    else:
        describe = getattr(torch.get_device_module(device.kind), "get_device_properties", None)
        properties = describe(device.torch) if describe else None
        cache = int(getattr(properties, "L2_cache_size", 0))
    return 2 * cache or DEFAULT_FLUSH_BYTES


def time_calls(work: Rebuilt, device: Device, flush: torch.Tensor | None) -> MicroTiming:
    """Single calls, synchronised at both ends; `flush` is written before each for cold caches."""
    for _ in range(WARM_UP_CALLS):
        work.run()
        work.restore()
    samples: list[int] = []
    begin = device.now()
    while len(samples) < SAMPLES:
        work.restore()
        if flush is not None:
            flush.zero_()
        start = device.now()
        work.run()
        end = device.now()
        samples.append(end - start)
        if len(samples) >= FEWEST_SAMPLES and end - begin > BUDGET_NS:
            break
    ordered = sorted(samples)
    return MicroTiming(
        median_ns=median(samples),
        iqr_ns=quantile(ordered, 0.75) - quantile(ordered, 0.25),
        minimum_ns=ordered[0],
        n=len(samples),
        samples=tuple(samples),
    )


def _measured(row: ShapeRow, call: RecordedCall | None, stand: Stand) -> MicroRow:
    facts = MicroRow(
        name=row.name,
        shapes=row.shapes,
        dtypes=row.dtypes,
        calls=row.count,
        self_ns=row.device_self_ns or row.host_self_ns,
    )
    if call is None:
        return replace(facts, reason="the trace records no inputs of this call")
    try:
        with torch.inference_mode():
            work = _rebuilt(call, stand)
            cold = time_calls(work, stand.device, stand.flush)
            warm = time_calls(work, stand.device, None)
    except CannotRebuildError as error:
        return replace(facts, reason=str(error))
    except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError) as error:
        # Inputs that only look right (indices, masks, sizes that must agree) end here.
        reason = printable(str(error).strip().splitlines()[0], 200)
        return replace(facts, reason=f"it failed with rebuilt inputs: {reason}")
    return replace(facts, overload=work.overload, cold=cold, warm=warm)


def _rebuilt(call: RecordedCall, stand: Stand) -> Rebuilt:
    needed, available = 2 * input_bytes(call, stand.dtype), available_bytes(stand.device)
    if available is not None and needed > available:
        reason = f"it needs {units.size(needed)}, {units.size(available)} are free"
        raise CannotRebuildError(reason)
    return rebuild(call, device=stand.device.torch, list_dtype=stand.dtype)


def _cache_bytes(path: Path) -> int:
    """The size of one CPU cache as the kernel writes it: `32768K`."""
    found = _CACHE_SIZE.match(path.read_text(encoding="ascii"))
    return (
        int(found[1]) * {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[found[2]] if found else 0
    )


def _text(values: Sequence[object]) -> str:
    """A recorded list as tables of a trace show it."""
    return json.dumps(values)
