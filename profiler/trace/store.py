"""The columnar store: one Parquet file of events, sorted by start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from profiler.errors import TraceError
from profiler.trace.batch import NONE, Bool, Int32
from profiler.trace.kinds import Kind
from profiler.trace.link import Structure
from profiler.trace.model import Kinds, Trace

if TYPE_CHECKING:
    Column = pa.Array[pa.Scalar[pa.DataType]]
    Whole = pa.Int32Array

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
    # Half as long to load as the rest of the library, and writing needs none of it.
    import pyarrow.compute as pc

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
            "ts_ns": _numbers(events.ts[rows] - self._trace.start_ns),
            "dur_ns": _numbers(events.dur[rows]),
            "self_ns": _numbers(self._self_ns[self._structure.op_position[rows]]),
            "kind": _kinds(events.kind[rows]),
            "category": _codes(events.category[rows], strings),
            "name": _codes(events.name[rows], strings),
            "track": _numbers(events.track[rows]),
            "device": _codes(self._device[at], strings),
            "stream": _codes(self._stream[at], strings),
            "correlation": _numbers(events.correlation[rows]),
            "launch": _numbers(self._launch[at]),
            "operator": _numbers(self._op[at]),
        }
        return pa.Table.from_arrays(list(columns.values()), list(columns), metadata=self._metadata)


# Arrays are made from buffers: `pa.array` loads pandas to see whether it was
# given a series, which costs a third of a second and tens of megabytes.


def _numbers(values: npt.NDArray[np.integer], missing: Bool | None = None) -> Column:
    """Whole numbers as they lie in memory, null where `missing`."""
    kept = None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little").data)
    data = pa.py_buffer(np.ascontiguousarray(values).data)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [kept, data])


def _texts(texts: Sequence[str]) -> Column:
    encoded = [text.encode() for text in texts]
    offsets = np.zeros(len(encoded) + 1, np.int32)
    np.cumsum([len(one) for one in encoded], out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets.data), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)


def _kinds(kinds: Kinds) -> Column:
    names = _texts([kind.name.lower() for kind in Kind])
    return pa.DictionaryArray.from_arrays(cast("Whole", _numbers(kinds.astype(np.int32))), names)


def _codes(codes: Int32, strings: list[str]) -> Column:
    """Codes as a dictionary array over the strings in use; negative codes are null."""
    used = np.zeros(len(strings) + 1, np.bool_)
    used[codes] = True
    used[NONE] = False
    place = (np.cumsum(used) - 1).astype(np.int32)
    texts = _texts([strings[c] for c in np.flatnonzero(used).tolist()])
    places = cast("Whole", _numbers(place[codes], codes == NONE))
    return pa.DictionaryArray.from_arrays(places, texts)
