"""The replayed steps as a file: enough to price a change long after the trace was read.

A line of JSON (sizes, names) is followed by the columns, each in the smallest
whole-number type that holds it. Compressing them would take ten times as long
as all the rest, for a megabyte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from profiler.analysis.findings.parts import Parts
from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.types import Path
from profiler.analysis.replay.graph import Edges, Graph
from profiler.analysis.replay.segments import Segments
from profiler.analysis.replay.window import Window
from profiler.errors import TraceError
from profiler.trace.batch import NONE, Bool, Int32
from profiler.trace.clock import Int64
from profiler.trace.kinds import Kind
from profiler.trace.nest import nearest

SCHEMA = 1
_TYPES = (np.int8, np.int16, np.int32)


@dataclass(frozen=True, slots=True)
class Named:
    """Names of frames and works: `name` and `work_name` are codes into `names`.

    `counted` marks frames that begin inside the window, `kind` is what a frame is.
    """

    names: list[str]
    name: Int64
    kind: Int64
    counted: Bool
    work_name: Int64


class Replayed(Parts):
    """Replayed steps with the names of their frames and works, and nothing else of the trace."""

    def __init__(self, parts: Parts, named: Named, path: Path) -> None:
        super().__init__(
            parts.graph,
            parent=parts.parent,
            rows=parts.rows,
            source=parts.source,
            work_ns=parts.work_ns,
            work_kind=parts.work_kind,
        )
        self.named, self.path = named, path

    def frames_named(self, codes: Sequence[int], kind: Kind) -> Bool:
        """Frames of a kind with one of these names."""
        same = np.isin(self.named.name, np.array(codes, np.int64))
        return np.asarray(same & (self.named.kind == kind))

    def works_named(self, codes: Sequence[int]) -> Int64:
        """Works with one of these names."""
        return np.flatnonzero(np.isin(self.named.work_name, np.array(codes, np.int64)))

    def names_of(self, kind: Kind) -> set[int]:
        """Codes of the names that frames of a kind have."""
        return set(np.unique(self.named.name[self.named.kind == kind]).tolist())


def replayed(scene: Scene, path: Path) -> Replayed:
    """What a scene has to say to questions. Python frames and calls nobody asks for are left out.

    What they own goes to the operator, module or blocking call around them.
    """
    graph, host = scene.graph, scene.structure.host
    asked = np.isin(scene.kinds, (Kind.HOST_OP, Kind.MODULE))
    blocking = scene.structure.position[graph.blocking[graph.blocking >= 0]]
    asked[blocking[blocking >= 0]] = True
    kept = np.flatnonzero(asked)
    around = nearest(host.parent, asked)
    home = np.where(asked, np.arange(len(asked)), around).astype(np.int64)
    place = np.full(len(asked) + 1, NONE, np.int64)
    place[kept] = np.arange(len(kept))
    events, device = scene.trace.events, scene.trace.device
    rows = host.rows[kept]
    window = graph.window
    started = (events.ts[rows] >= window.begin_ns) & (events.ts[rows] < window.end_ns)
    codes = events.name[rows].astype(np.int64)
    work_codes = device.name[graph.works].astype(np.int64)
    used, both = np.unique(np.concatenate([codes, work_codes]), return_inverse=True)
    named = Named(
        names=[scene.trace.strings[code] for code in used.tolist()],
        name=both[: len(codes)],
        kind=scene.kinds[kept],
        counted=np.asarray(started),
        work_name=both[len(codes) :],
    )
    rows_of = np.append(home, NONE)
    parts = Parts(
        _bare(graph, place[rows_of[graph.segments.owner]], _placed(scene, place)),
        parent=_parents(host.parent, home, kept, place),
        rows=np.arange(len(kept), dtype=np.int64),
        source=place[rows_of[scene.source]],
        work_ns=scene.work_ns,
        work_kind=scene.work_kind,
    )
    return Replayed(parts, named, path)


def _parents(parent: Int32, home: Int64, kept: Int64, place: Int64) -> Int32:
    above = parent[kept]
    return np.where(above >= 0, place[home[np.maximum(above, 0)]], NONE).astype(np.int32)


def _placed(scene: Scene, place: Int64) -> Int64:
    """Per host node the place of the blocking call it ends, -1 elsewhere."""
    rows = scene.graph.blocking
    at = np.where(rows >= 0, scene.structure.position[np.maximum(rows, 0)], NONE)
    return place[at]


def _bare(graph: Graph, owner: Int64, blocking: Int64) -> Graph:
    """The graph with works counted from 0 and without the texts and times of its window."""
    nothing = np.zeros(0, np.int64)
    window = Window(0, graph.span_ns, graph.window.steps, 0, (), graph.window.name)
    return Graph(
        window=window,
        segments=Segments(nothing, nothing, nothing, owner),
        segment_node=graph.segment_node,
        segment_ns=graph.segment_ns,
        works=np.arange(len(graph.works), dtype=np.int64),
        hosts=graph.hosts,
        start=graph.start,
        length=graph.length,
        release=graph.release,
        edges=graph.edges,
        order=graph.order,
        blocking=blocking,
        opaque=graph.opaque,
        dropped=graph.dropped,
    )


class _Column(msgspec.Struct, frozen=True):
    """One column: its type and how many values it has."""

    type: str
    size: int


class _Head(msgspec.Struct, frozen=True):
    """What stands before the columns."""

    schema: int
    window: str
    steps: int
    hosts: int
    dropped: int
    inferred: float
    opaque: bool
    names: list[str]
    columns: dict[str, _Column]


_HEAD = msgspec.json.Decoder(_Head)


def _columns(kept: Replayed) -> dict[str, npt.NDArray[np.generic]]:
    graph, edges, named = kept.graph, kept.graph.edges, kept.named
    return {
        "parent": kept.parent,
        "source": kept.source,
        "work_kind": kept.work_kind,
        "name": named.name,
        "kind": named.kind,
        "counted": named.counted,
        "work_name": named.work_name,
        "owner": graph.segments.owner,
        "segment_node": graph.segment_node,
        "segment_ns": graph.segment_ns,
        "start": graph.start,
        "length": graph.length,
        "release": graph.release,
        "order": graph.order,
        "blocking": graph.blocking,
        "opaque": graph.opaque,
        "work_ns": kept.work_ns,
        "edge_source": edges.source,
        "edge_target": edges.target,
        "lag": edges.lag,
        "from_end": edges.from_end,
        "edge_kind": edges.kind,
        "inferred": edges.inferred,
    }


def pack(kept: Replayed) -> bytes:
    """As a file; `unpack` gives it back."""
    columns = {name: _narrow(column) for name, column in _columns(kept).items()}
    head = _Head(
        schema=SCHEMA,
        window=kept.graph.window.name,
        steps=kept.graph.window.steps,
        hosts=kept.graph.hosts,
        dropped=kept.graph.dropped,
        inferred=kept.path.inferred,
        opaque=kept.path.opaque,
        names=kept.named.names,
        columns={n: _Column(c.dtype.str, len(c)) for n, c in columns.items()},
    )
    body = b"".join(column.tobytes() for column in columns.values())
    return msgspec.json.encode(head) + b"\n" + body


def _narrow(column: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """The same values in the smallest type that holds them."""
    if column.dtype == np.bool_ or not len(column):
        return column
    low, high = int(column.min()), int(column.max())
    for kind in _TYPES:
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return column.astype(kind)
    return column


def unpack(content: bytes) -> Replayed:
    """The steps of a file; raises `TraceError` when it is none."""
    try:
        return _unpacked(content)
    except (msgspec.DecodeError, ValueError, KeyError, TypeError) as error:
        raise TraceError(f"the stored steps are damaged: {error}", "read the trace again") from None


def _unpacked(content: bytes) -> Replayed:
    text, _, body = content.partition(b"\n")
    head = _HEAD.decode(text)
    if head.schema != SCHEMA:
        raise ValueError(f"schema {head.schema} is not {SCHEMA}")
    columns: dict[str, npt.NDArray[np.generic]] = {}
    at = 0
    for name, column in head.columns.items():
        kind = np.dtype(column.type)
        columns[name] = np.frombuffer(body, kind, column.size, at)
        at += column.size * kind.itemsize
    return _made(head, columns)


def _made(head: _Head, columns: dict[str, npt.NDArray[np.generic]]) -> Replayed:
    def wide(name: str) -> Int64:
        return columns[name].astype(np.int64)

    def flags(name: str) -> Bool:
        return columns[name].astype(np.bool_)

    nothing = np.zeros(0, np.int64)
    start, length = wide("start"), wide("length")
    edges = Edges(
        wide("edge_source"),
        wide("edge_target"),
        wide("lag"),
        flags("from_end"),
        columns["edge_kind"].astype(np.int8),
        flags("inferred"),
    )
    span_ns = int((start + length).max()) if len(start) else 0
    graph = Graph(
        window=Window(0, span_ns, head.steps, 0, (), head.window),
        segments=Segments(nothing, nothing, nothing, wide("owner")),
        segment_node=wide("segment_node"),
        segment_ns=wide("segment_ns"),
        works=np.arange(len(columns["work_ns"]), dtype=np.int64),
        hosts=head.hosts,
        start=start,
        length=length,
        release=wide("release"),
        edges=edges,
        order=wide("order"),
        blocking=wide("blocking"),
        opaque=flags("opaque"),
        dropped=head.dropped,
    )
    parts = Parts(
        graph,
        parent=columns["parent"].astype(np.int32),
        rows=np.arange(len(columns["name"]), dtype=np.int64),
        source=wide("source"),
        work_ns=wide("work_ns"),
        work_kind=wide("work_kind"),
    )
    named = Named(head.names, wide("name"), wide("kind"), flags("counted"), wide("work_name"))
    return Replayed(parts, named, Path(head.inferred, opaque=head.opaque))
