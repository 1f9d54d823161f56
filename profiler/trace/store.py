"""The columnar store: one Parquet file of events, sorted by start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from profiler.errors import TraceError
from profiler.trace.batch import NONE, Int32
from profiler.trace.clock import Int64
from profiler.trace.kinds import Kind
from profiler.trace.link import Structure
from profiler.trace.model import Kinds, Trace

if TYPE_CHECKING:
    Column = pa.Array[pa.Scalar[pa.DataType]]

STORE_SCHEMA = 1
_ROW_GROUP = 1 << 17
_DICTIONARY = ("kind", "category", "name", "track", "device", "stream")
_COLUMNS = ("ts_ns", "dur_ns", "kind", "category", "name", "track")


def write_events(trace: Trace, structure: Structure, path: Path) -> None:
    """Store the events of a trace; see `events_table`."""
    write_table(events_table(trace, structure), path)


def events_table(trace: Trace, structure: Structure) -> pa.Table:
    """All complete events but python frames, which live on in the call tree.

    Columns: ts_ns (from the first event), dur_ns, self_ns (host operators),
    kind, category, name, track, device, stream, correlation, launch and
    operator (row numbers of this table, -1 for none), sorted by ts_ns.
    """
    events = trace.events
    rows = np.flatnonzero(events.kind != Kind.PYTHON)
    rows = rows[np.argsort(events.ts[rows], kind="stable")]
    tracks = [f"{t.pid}\t{t.tid}\t{t.process}\t{t.thread}" for t in trace.tracks]
    metadata = {
        "daybreak.schema": str(STORE_SCHEMA),
        "daybreak.sha256": trace.sha256,
        "daybreak.start_ns": str(trace.start_ns),
        "daybreak.tracks": "\n".join(tracks),
    }
    return pa.table(_columns(trace, structure, rows)).replace_schema_metadata(metadata)


def write_table(table: pa.Table, path: Path) -> None:
    """Write in row groups, so that a time window reads few of them."""
    pq.write_table(
        table,
        path,
        compression="zstd",
        compression_level=1,
        row_group_size=_ROW_GROUP,
        # The stubs know only the boolean form.
        use_dictionary=list(_DICTIONARY),  # type: ignore[arg-type]
        write_statistics=["ts_ns", "kind"],
        store_schema=True,
    )


def read_events(
    path: Path,
    *,
    columns: Sequence[str] = _COLUMNS,
    from_ns: int | None = None,
    to_ns: int | None = None,
) -> pa.Table:
    """Columns of the events that start in [from_ns, to_ns); times count from the first event."""
    low = pc.field("ts_ns") >= (from_ns if from_ns is not None else -(2**63))
    high = pc.field("ts_ns") < (to_ns if to_ns is not None else 2**63 - 1)
    try:
        return pq.read_table(path, columns=list(columns), filters=low & high)
    except (OSError, pa.ArrowInvalid) as error:
        raise TraceError(f"event store {path} cannot be read: {error}", "ingest again") from None


def _columns(trace: Trace, structure: Structure, rows: Int64) -> dict[str, Column]:
    events = trace.events
    place = np.full(len(events) + 1, NONE, np.int32)
    place[rows] = np.arange(len(rows), dtype=np.int32)
    self_ns = np.zeros(len(events), np.int64)
    self_ns[structure.ops.rows] = structure.ops.self_ns
    device = np.full(len(events), NONE, np.int32)
    stream, launch, op = device.copy(), device.copy(), device.copy()
    device[trace.device.rows] = trace.device.device
    stream[trace.device.rows] = trace.device.stream
    launch[trace.device.rows] = place[structure.launch]
    op[trace.device.rows] = place[structure.op]
    return {
        "ts_ns": pa.array(events.ts[rows] - trace.start_ns),
        "dur_ns": pa.array(events.dur[rows]),
        "self_ns": pa.array(self_ns[rows]),
        "kind": _kinds(events.kind[rows]),
        "category": _texts(events.category[rows], trace.strings),
        "name": _texts(events.name[rows], trace.strings),
        "track": pa.array(events.track[rows]),
        "device": _texts(device[rows], trace.strings),
        "stream": _texts(stream[rows], trace.strings),
        "correlation": pa.array(events.correlation[rows]),
        "launch": pa.array(launch[rows]),
        "operator": pa.array(op[rows]),
    }


def _kinds(kinds: Kinds) -> Column:
    names = pa.array([kind.name.lower() for kind in Kind])
    return pa.DictionaryArray.from_arrays(np.asarray(kinds, np.int32), names)


def _texts(codes: Int32, strings: list[str]) -> Column:
    """Codes as a dictionary array over the strings in use; negative codes are null."""
    used = np.zeros(len(strings) + 1, np.bool_)
    used[codes] = True
    used[NONE] = False
    place = (np.cumsum(used) - 1).astype(np.int32)
    texts = pa.array([strings[c] for c in np.flatnonzero(used).tolist()], pa.string())
    return pa.DictionaryArray.from_arrays(place[codes], texts, mask=codes == NONE)
