"""The document of a flame graph, read by pages and scripts: light to load, without the analysis."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field

import msgspec

from profiler.errors import TraceError

SCHEMA = 1
CATEGORIES = (
    *("module", "operator", "runtime", "python", "mark"),
    *("compute", "communication", "copy", "fill", "wait"),
    *("device", "cause", "other"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """What was too small to keep below frame `at` (-1: at the root): how many frames, their ns."""

    at: int
    frames: int
    total_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Frames, parents before children; all lists are aligned.

    `parent` is -1 at the root, `name` indexes `FlameGraph.names`, `category`
    indexes `CATEGORIES`. `self_ns` excludes the frames inside; frames and
    `folded` together add up to `total_ns`. `efficiency` is the share of the
    roofline the frame reached in thousandths, -1 where it is not known; empty
    when no frame has one.
    """

    kind: str
    total_ns: int
    parent: list[int]
    name: list[int]
    category: list[int]
    self_ns: list[int]
    calls: list[int]
    folded: list[Fold]
    efficiency: list[int] = field(default_factory=list)

    def totals(self) -> list[int]:
        """Time of each frame with everything inside it."""
        total = list(self.self_ns)
        for fold in self.folded:
            if fold.at >= 0:
                total[fold.at] += fold.total_ns
        for at in range(len(total) - 1, -1, -1):
            if self.parent[at] >= 0:
                total[self.parent[at]] += total[at]
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class FlameGraph:
    """The document: views that hold anything, with their names."""

    schema: int = SCHEMA
    steps: int
    names: list[str]
    views: list[View]

    def view(self, kind: str) -> View | None:
        """The view of that kind, None when the trace has nothing for it."""
        return next((view for view in self.views if view.kind == kind), None)


_DECODER = msgspec.json.Decoder(FlameGraph)


def pack(graph: FlameGraph) -> bytes:
    """The document as gzipped JSON; equal graphs give equal bytes."""
    return gzip.compress(msgspec.json.encode(graph), compresslevel=6, mtime=0)


def unpack(content: bytes) -> FlameGraph:
    """The document from its gzipped JSON; raises `TraceError` when it is none."""
    try:
        return _DECODER.decode(gzip.decompress(content))
    except (OSError, EOFError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TraceError(f"the flame graph is damaged: {error}", "read the trace again") from None
