"""What two traces need to be compared: time per step by module, operator and shapes.

A small file beside the report, so that comparing reads no trace again.
"""

from __future__ import annotations

import gzip
import io
import zlib
from dataclasses import dataclass
from pathlib import Path

import msgspec

from profiler.errors import TraceError

SCHEMA = 2
STEPS_LIMIT = 50
"""Steps beyond these are left out: a comparison needs no more."""

SIZE_LIMIT_BYTES = 256 << 20
"""More than a profile can hold: what says it unpacks to more is damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTime:
    """Device work of one name under one row: pieces and ns over all steps."""

    name: str
    count: int
    device_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorTime:
    """Calls of one operator in one module with one set of shapes.

    `operator` is the canonical name, `name` the recorded one; `around` are the
    canonical names of the operators around it, outermost first. `calls`,
    `host_ns` (self time) and `device_ns` (work of its own launches) hold a
    value per step. `shown_ns` is the part of the window in which nothing else
    is counted (see `window`), over all steps.
    """

    module: str
    operator: str
    name: str
    around: tuple[str, ...]
    shapes: str
    dtypes: str
    calls: tuple[int, ...]
    host_ns: tuple[int, ...]
    device_ns: tuple[int, ...]
    shown_ns: int
    kernels: tuple[KernelTime, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the window that belongs to no operator: kind, name, ns over all steps.

    `per_step_ns` is the same step by step, empty where only the whole is known.
    """

    kind: str
    name: str
    total_ns: int
    per_step_ns: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameTime:
    """One frame of the merged call tree; `parent` is a position before its own, -1 for roots.

    Times are the frame's own, over all steps.
    """

    parent: int
    name: str
    host_ns: int
    device_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProfile:
    """One trace, step by step.

    `window_ns` runs from the start of the first step to the end of the last;
    the `shown_ns` of all operators and all `parts` add up to it. Device time
    without an operator is `opaque_ns` (inside graph launches),
    `outside_ns` (launched outside any operator) or `unlinked_ns` (no launch
    recorded), a value per step each; with the operators' it adds up to the
    device time of the steps. `measure` says whose time decides: the device's
    or, where there is none, the host's.
    """

    path: str
    device_kind: str
    torch_version: str | None
    measure: str
    marked: bool
    steps: tuple[str, ...]
    left_out_steps: int
    window_ns: int
    operators: tuple[OperatorTime, ...]
    opaque_ns: tuple[int, ...]
    outside_ns: tuple[int, ...]
    unlinked_ns: tuple[int, ...]
    parts: tuple[Part, ...]
    frames: tuple[FrameTime, ...]
    schema: int = SCHEMA


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(StepProfile)


def dump_profile(profile: StepProfile) -> bytes:
    """The profile as gzipped JSON, the same bytes for the same profile."""
    return gzip.compress(_ENCODER.encode(profile), compresslevel=5, mtime=0)


def load_profile(data: bytes) -> StepProfile:
    """The profile stored as `data`; raises `TraceError` when it is none of this version."""
    try:
        with gzip.open(io.BytesIO(data)) as file:
            found = _DECODER.decode(file.read(SIZE_LIMIT_BYTES))
    except (OSError, EOFError, zlib.error, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"step profile is damaged: {error}", "read the trace again") from None
    if found.schema != SCHEMA:
        raise TraceError(f"step profile is of version {found.schema}", "read the trace again")
    return found


def profile_of_trace(path: Path) -> StepProfile:
    """The profile of a trace file; raises `TraceError` when it is none."""
    from profiler.analysis.ingest import analyse
    from profiler.analysis.stepping import step_profile

    return step_profile(analyse(path))
