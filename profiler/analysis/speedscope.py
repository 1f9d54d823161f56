"""A speedscope file of a trace: merged host and device time, a timeline per queue and per thread.

Format: speedscope's file-format-spec. Names only are frames, so equal calls
merge in its Left Heavy and Sandwich views; times are nanoseconds.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field

import msgspec
import numpy as np

from profiler import __version__
from profiler.analysis.calltree import CallTree, Frames
from profiler.analysis.operators import module_path
from profiler.trace.codes import distinct
from profiler.trace.model import Trace

SCHEMA_URL = "https://www.speedscope.app/file-format-schema.json"
SAMPLE_LIMIT = 200_000
BYTES_LIMIT = 10_000_000
LANES = 8
"""Works of one queue shown at once; where more overlap, the profile says how many it leaves out."""

NO_HOST = "(launched outside the recording)"


@dataclass(slots=True)
class Frame:
    """A name shown in the viewer."""

    name: str


@dataclass(slots=True)
class Shared:
    """The frames all profiles index into."""

    frames: list[Frame]


@dataclass(slots=True)
class Sampled:
    """Stacks (root first) with weights in ns."""

    name: str
    endValue: int
    samples: list[list[int]]
    weights: list[int]
    type: str = "sampled"
    unit: str = "nanoseconds"
    startValue: int = 0


@dataclass(slots=True)
class Change:
    """A frame opened (O) or closed (C) at a time."""

    type: str
    at: int
    frame: int


@dataclass(slots=True)
class Evented:
    """Balanced opens and closes of one thread, times not decreasing."""

    name: str
    endValue: int
    events: list[Change]
    type: str = "evented"
    unit: str = "nanoseconds"
    startValue: int = 0


@dataclass(slots=True)
class File:
    """A speedscope document."""

    shared: Shared
    profiles: list[Sampled | Evented]
    name: str
    exporter: str = f"daybreak@{__version__}"
    activeProfileIndex: int = 0
    schema: str = field(default=SCHEMA_URL)


@dataclass(frozen=True, slots=True)
class Flame:
    """The encoded document and what had to be left out to keep to the limits."""

    content: bytes
    cuts: tuple[str, ...]

    def compressed(self) -> bytes:
        """The document as gzip, without a time stamp."""
        return gzip.compress(self.content, compresslevel=6, mtime=0)


class _Names:
    """Frames of the document, made as they are used."""

    def __init__(self, trace: Trace) -> None:
        self._strings = trace.strings
        self._index: dict[str, int] = {}
        self.frames: list[Frame] = []

    def __call__(self, name: int) -> int:
        return self.text(module_path(self._strings[name]))

    def text(self, text: str) -> int:
        """The frame of a text."""
        found = self._index.get(text)
        if found is None:
            found = self._index[text] = len(self.frames)
            self.frames.append(Frame(text))
        return found


def flame(trace: Trace, tree: CallTree, frames: Frames, title: str) -> Flame:
    """The document, smaller than the limits: first timelines go, then the smallest stacks."""
    cuts = [f"{tree.cut:,} calls deeper than 500 frames folded"] if tree.cut else []
    budget = SAMPLE_LIMIT
    timelines = True
    while True:
        content, dropped = _document(trace, tree, frames, title, budget=budget, timelines=timelines)
        if len(content) <= BYTES_LIMIT:
            break
        if timelines:
            timelines = False
        else:
            budget = min(budget * 3 // 4, int(budget * BYTES_LIMIT / len(content)))
    if dropped:
        cuts.append(f"{dropped:,} smallest stacks left out")
    return Flame(content, tuple(cuts))


def _document(
    trace: Trace, tree: CallTree, frames: Frames, title: str, *, budget: int, timelines: bool
) -> tuple[bytes, int]:
    names = _Names(trace)
    stacks = _stacks(tree, names)
    host, lost_host = _sampled(stacks, _host_samples(tree), "Host self time", budget)
    device, lost_device = _sampled(
        stacks, _device_samples(tree, names), "Device self time", budget - len(host.samples)
    )
    profiles: list[Sampled | Evented] = [device] if device.samples else []
    profiles.append(host)
    if timelines:
        room = budget - len(host.samples) - len(device.samples)
        queues = _streams(trace, names, room)
        room -= sum(len(queue.events) for queue in queues)
        profiles += [*queues, *_timelines(trace, frames, names, room)]
    lost = lost_host + lost_device
    name = f"{title} (cut: {lost:,} smallest stacks left out)" if lost else title
    document = File(Shared(names.frames), profiles, name)
    content = msgspec.json.encode(document).replace(b'"schema":', b'"$schema":', 1)
    return content, lost


def _stacks(tree: CallTree, names: _Names) -> list[list[int]]:
    """Root-first frame indices of every node."""
    stacks: list[list[int]] = []
    for parent, name in zip(tree.parent.tolist(), tree.name.tolist(), strict=True):
        above = stacks[parent] if parent >= 0 else []
        stacks.append([*above, names(name)])
    return stacks


def _host_samples(tree: CallTree) -> list[tuple[int, int, int]]:
    """(weight, node, leaf frame or -1) of every node with host self time."""
    own = tree.host_self_ns
    return [(int(own[n]), n, -1) for n in np.flatnonzero(own > 0).tolist()]


def _device_samples(tree: CallTree, names: _Names) -> list[tuple[int, int, int]]:
    samples = [(ns, node, names(name)) for node, name, ns, _ in tree.kernels if ns]
    return samples + [(ns, -1, names(name)) for name, ns, _ in tree.unattributed if ns]


def _sampled(
    stacks: list[list[int]], samples: list[tuple[int, int, int]], name: str, budget: int
) -> tuple[Sampled, int]:
    kept = sorted(samples, key=lambda s: (-s[0], s[1], s[2]))[: max(budget, 0)]
    kept.sort(key=lambda s: (s[1], s[2]))
    weights = [weight for weight, _, _ in kept]
    shown = [
        (stacks[node] if node >= 0 else []) + ([leaf] if leaf >= 0 else [])
        for _, node, leaf in kept
    ]
    lost = len(samples) - len(kept)
    title = f"{name} (cut)" if lost else name
    return Sampled(name=title, endValue=sum(weights), samples=shown, weights=weights), lost


def _timelines(trace: Trace, frames: Frames, names: _Names, room: int) -> list[Evented]:
    """One evented profile per host thread, as long as all of them fit."""
    rows = frames.nesting.rows[frames.shown]
    if 2 * len(rows) > room:
        return []
    track = trace.events.track[rows]
    out = []
    for code in distinct(track):
        mine = rows[track == code]
        thread = trace.tracks[code]
        events = _changes(trace, mine.tolist(), names)
        end = trace.span_ns
        label = thread.thread or f"thread {thread.tid}"
        out.append(Evented(name=f"Timeline of {label}", endValue=end, events=events))
    return out


def _streams(trace: Trace, names: _Names, room: int) -> list[Evented]:
    """One evented profile per queue of a device, as long as all of them fit.

    Work that runs beside other work of its queue (inside graph launches, or
    where several hardware queues share a name) goes to a profile of its own,
    as a stack can only nest.
    """
    device = trace.device
    if not len(device.rows) or 2 * len(device.rows) > room:
        return []
    queues: dict[tuple[int, int], list[int]] = {}
    pairs = zip(device.device.tolist(), device.stream.tolist(), strict=True)
    for work, pair in enumerate(pairs):
        queues.setdefault(pair, []).append(work)
    out = []
    for (place, stream), works in queues.items():
        name = f"Device {trace.strings[place]}, stream {trace.strings[stream]}"
        lanes, left = _lanes(trace, works)
        for number, lane in enumerate(lanes, 1):
            label = f"{name}, beside the above ({number})" if number > 1 else name
            if left and number == LANES:
                label += f", {left:,} more left out"
            out.append(Evented(label, trace.span_ns, _works(trace, lane, names)))
    return out


def _lanes(trace: Trace, works: list[int]) -> tuple[list[list[int]], int]:
    """Works of a queue so that those of a lane follow each other; how many found no lane."""
    ts, end = trace.device.ts, trace.device.end
    lanes: list[list[int]] = []
    free: list[int] = []
    left = 0
    for work in works:
        begin = int(ts[work])
        at = next((n for n, until in enumerate(free) if until <= begin), len(lanes))
        if at == LANES:
            left += 1
            continue
        if at == len(lanes):
            lanes.append([])
            free.append(0)
        lanes[at].append(work)
        free[at] = int(end[work])
    return lanes, left


def _works(trace: Trace, lane: list[int], names: _Names) -> list[Change]:
    """Opens and closes of works that follow each other."""
    device, start = trace.device, trace.start_ns
    out: list[Change] = []
    for work in lane:
        frame = names(int(device.name[work]))
        out.append(Change("O", int(device.ts[work]) - start, frame))
        out.append(Change("C", int(device.end[work]) - start, frame))
    return out


def _changes(trace: Trace, rows: list[int], names: _Names) -> list[Change]:
    """Opens and closes; an interval that outlives the one it started in is cut at its end."""
    start = trace.start_ns
    ts, end, name = trace.events.ts, trace.events.end, trace.events.name
    out: list[Change] = []
    stack: list[tuple[int, int]] = []
    for row in rows:
        begin, finish = int(ts[row]) - start, int(end[row]) - start
        while stack and stack[-1][0] <= begin:
            at, frame = stack.pop()
            out.append(Change("C", at, frame))
        if stack:
            finish = min(finish, stack[-1][0])
        frame = names(int(name[row]))
        out.append(Change("O", begin, frame))
        stack.append((finish, frame))
    while stack:
        at, frame = stack.pop()
        out.append(Change("C", at, frame))
    return out
