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
from profiler.trace.kinds import Kind
from profiler.trace.link import Structure
from profiler.trace.model import Kinds, Trace

if TYPE_CHECKING:
    Column = pa.Array[pa.Scalar[pa.DataType]]

STORE_SCHEMA = 1
_ROW_GROUP = 1 << 16
_DICTIONARY = ("kind", "category", "name", "track", "device", "stream")
_COLUMNS = ("ts_ns", "dur_ns", "kind", "category", "name", "track")


def write_events(trace: Trace, structure: Structure, path: Path) -> None:
    """Store all complete events but python frames, which live on in the call tree.

    Columns: ts_ns (from the first event), dur_ns, self_ns (host operators),
    kind, category, name, track, device, stream, correlation, launch and
    operator (row numbers of the file, -1 for none), sorted by ts_ns, in row
    groups, so that a time window reads few of them.
    """
    rows = _Rows(trace, structure)
    table = rows.table(0, _ROW_GROUP)
    with _writer(table.schema, path) as writer:
        writer.write_table(table)
        for low in range(_ROW_GROUP, len(rows.order), _ROW_GROUP):
            writer.write_table(rows.table(low, low + _ROW_GROUP))


def _writer(schema: pa.Schema, path: Path) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=1,
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


class _Rows:
    """The stored events in order, made into tables one stretch at a time."""

    def __init__(self, trace: Trace, structure: Structure) -> None:
        events = trace.events
        self._trace = trace
        self._structure = structure
        kept = np.flatnonzero(events.kind != Kind.PYTHON)
        self.order = kept[np.argsort(events.ts[kept], kind="stable")].astype(np.int32)
        self._place = np.full(len(events) + 1, NONE, np.int32)
        self._place[self.order] = np.arange(len(self.order), dtype=np.int32)
        # Index -1 finds the NONE that is appended.
        self._device_at = np.full(len(events), NONE, np.int32)
        self._device_at[trace.device.rows] = np.arange(len(trace.device.rows), dtype=np.int32)
        self._device = np.append(trace.device.device, np.int32(NONE))
        self._stream = np.append(trace.device.stream, np.int32(NONE))
        self._launch = np.append(self._place[structure.launch], np.int32(NONE))
        self._op = np.append(self._place[structure.op], np.int32(NONE))
        self._self_ns = np.append(structure.ops.self_ns, 0)
        tracks = [f"{t.pid}\t{t.tid}\t{t.process}\t{t.thread}" for t in trace.tracks]
        self._metadata = {
            "daybreak.schema": str(STORE_SCHEMA),
            "daybreak.sha256": trace.sha256,
            "daybreak.start_ns": str(trace.start_ns),
            "daybreak.tracks": "\n".join(tracks),
        }

    def table(self, low: int, high: int) -> pa.Table:
        """The stored events from number `low` up to `high`."""
        events, strings = self._trace.events, self._trace.strings
        rows = self.order[low:high]
        at = self._device_at[rows]
        columns = {
            "ts_ns": pa.array(events.ts[rows] - self._trace.start_ns),
            "dur_ns": pa.array(events.dur[rows]),
            "self_ns": pa.array(self._self_ns[self._structure.op_position[rows]]),
            "kind": _kinds(events.kind[rows]),
            "category": _texts(events.category[rows], strings),
            "name": _texts(events.name[rows], strings),
            "track": pa.array(events.track[rows]),
            "device": _texts(self._device[at], strings),
            "stream": _texts(self._stream[at], strings),
            "correlation": pa.array(events.correlation[rows]),
            "launch": pa.array(self._launch[at]),
            "operator": pa.array(self._op[at]),
        }
        return pa.table(columns).replace_schema_metadata(self._metadata)


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
