"""The one event model: what a normalised trace looks like to every analysis."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from profiler.trace.batch import Bool, Flows, Instants, Int32, Sparse
from profiler.trace.clock import Int64
from profiler.trace.header import Header
from profiler.trace.vendors import rules

Kinds = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Track:
    """One row of the trace viewer: a host thread or a device stream."""

    pid: str
    tid: str
    process: str
    thread: str


@dataclass
class Events:
    """Complete events, one entry each; times in ns, codes index `Trace.strings`/`tracks`."""

    kind: Kinds
    name: Int32
    category: Int32
    track: Int32
    ts: Int64
    dur: Int64
    correlation: Int64
    external_id: Int64
    sparse: dict[str, Sparse]

    def __len__(self) -> int:
        return len(self.ts)

    @cached_property
    def end(self) -> Int64:
        """End of each event, ns."""
        return self.ts + self.dur

    def dense(self, column: str, *, absent: int = -1) -> Int64:
        """A sparse column with `absent` filled in."""
        out = np.full(len(self.ts), absent, np.int64)
        found = self.sparse[column]
        out[found.rows] = found.values
        return out


@dataclass
class DeviceWork:
    """Rows of `Events` that occupy a device stream, by start time.

    `device` and `stream` are codes into `Trace.strings`.
    """

    rows: Int64
    kind: Kinds
    name: Int32
    device: Int32
    stream: Int32
    ts: Int64
    dur: Int64

    @cached_property
    def end(self) -> Int64:
        """End of each piece of device work, ns."""
        return self.ts + self.dur


@dataclass(slots=True)
class Quality:
    """What was repaired, dropped, clipped or noticed while reading.

    `flow_pairs` counts flow ids with both ends and with one, once they are counted.
    """

    repaired: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    clipped: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    flow_pairs: tuple[int, int] | None = None


@dataclass(slots=True)
class Trace:
    """A normalised trace of one rank."""

    events: Events
    device: DeviceWork
    flows: Flows
    instants: Instants
    strings: list[str]
    tracks: list[Track]
    header: Header
    quality: Quality
    total_events: int
    categories: dict[str, int]
    sha256: str
    device_kind: str

    @property
    def start_ns(self) -> int:
        """First start over all complete events, in the clock of the file."""
        return int(self.events.ts.min()) if len(self.events) else 0

    @property
    def span_ns(self) -> int:
        """Last end minus first start over all complete events."""
        return int(self.events.end.max()) - self.start_ns if len(self.events) else 0

    def matching(self, pattern: str) -> Bool:
        """Whether each string matches the rule `pattern` of `vendors.toml`."""
        search = rules().names[pattern].search
        return np.fromiter((search(s) is not None for s in self.strings), np.bool_)
