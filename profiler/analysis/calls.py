"""The collectives of one rank in a small file: what comparing ranks needs beside the report."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from profiler.analysis.collectives import Calls
from profiler.errors import TraceError
from profiler.trace.clock import Int64

SCHEMA = 1
MOST_CALLS = 100_000
"""Later calls are left out of the file: comparing ranks needs no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallsFile:
    """Columns of `Calls`, kinds as positions in `kinds`; times in ns; `calls` counts all."""

    schema: int
    calls: int
    kinds: list[str]
    kind: list[int]
    group: list[int]
    size: list[int]
    payload: list[int]
    ts: list[int]
    dur: list[int]
    exposed: list[int]


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(CallsFile)


def dump_calls(calls: Calls) -> bytes:
    """The first `MOST_CALLS` calls as JSON; equal calls give equal bytes."""
    kinds = sorted(set(calls.kind[:MOST_CALLS]))
    place = {kind: at for at, kind in enumerate(kinds)}
    columns = {
        name: getattr(calls, name)[:MOST_CALLS].tolist()
        for name in ("group", "size", "payload", "ts", "dur", "exposed")
    }
    file = CallsFile(
        schema=SCHEMA,
        calls=len(calls.kind),
        kinds=kinds,
        kind=[place[kind] for kind in calls.kind[:MOST_CALLS]],
        **columns,
    )
    return _ENCODER.encode(file)


def load_calls(data: bytes, most: int = MOST_CALLS) -> Calls:
    """The first `most` calls of a file; raises `TraceError` when it is none."""
    try:
        file = _DECODER.decode(data)
        kind = [file.kinds[at] for at in file.kind[:most]]
        columns = (file.group, file.size, file.payload, file.ts, file.dur, file.exposed)
        if any(len(column) != len(file.kind) for column in columns):
            raise IndexError("columns of different length")
    except (msgspec.DecodeError, UnicodeDecodeError, IndexError) as error:
        raise TraceError(f"the collectives are damaged: {error}", "read it again") from None

    arrays: list[Int64] = [np.array(column[:most], np.int64) for column in columns]
    return Calls(kind, *arrays)
