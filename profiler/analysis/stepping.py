"""From one analysed trace to its time per step, by module, operator and shapes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from profiler.analysis.analyse import Analysed
from profiler.analysis.launches import graph_work
from profiler.analysis.operators import module_path
from profiler.analysis.stepprofile import (
    STEPS_LIMIT,
    FrameTime,
    KernelTime,
    OperatorTime,
    Part,
    StepProfile,
)
from profiler.analysis.steps import step_event_rows
from profiler.analysis.window import split_device, split_host
from profiler.trace.batch import NONE, Bool, Int32
from profiler.trace.clock import Int64
from profiler.trace.kinds import Kind
from profiler.trace.vendors import rules

KERNELS_SHOWN = 8
FRAMES_LIMIT = 20_000
_NUMBERED = re.compile(r"0x[0-9a-fA-F]+|\(\d+\)(?=: )")
_SHOWN_KINDS = (Kind.KERNEL, Kind.COMMUNICATION, Kind.COPY, Kind.FILL)


def step_profile(results: Analysed) -> StepProfile:
    """The profile of an analysed trace; without steps the whole trace is one."""
    return _Stepping(results).profile()


@dataclass(slots=True)
class _Places:
    """Step of each operator call and of each piece of device work; NONE outside the window."""

    ops: Int32
    device: Int32


class _Stepping:
    """One trace on its way to a profile."""

    def __init__(self, results: Analysed) -> None:
        self.results = results
        self.trace = results.trace
        self.structure = results.structure
        rows = results.report.steps
        kept = rows[:STEPS_LIMIT]
        offset = self.trace.start_ns
        self.names = tuple(row.name for row in kept) or ("whole trace",)
        self.left_out = len(rows) - len(kept)
        self.starts = np.array([offset + row.start_ns for row in kept] or [offset], np.int64)
        end = max((offset + row.start_ns + row.dur_ns for row in kept), default=None)
        self.end = offset + self.trace.span_ns if end is None else end

    def profile(self) -> StepProfile:
        """Everything put together."""
        measure = "device" if self.works.any() else "host"
        groups = self._groups()
        shown, parts = self._window(measure)
        facts = self.results.report.trace
        return StepProfile(
            path=facts.path,
            device_kind=facts.device_kind,
            torch_version=facts.torch_version,
            measure=measure,
            marked=bool(self.results.report.steps),
            steps=self.names,
            left_out_steps=self.left_out,
            window_ns=int(self.end - self.starts[0]),
            operators=self._operators(*groups, shown),
            opaque_ns=self._per_step(self.opaque),
            outside_ns=self._per_step(~self.opaque & (self.owner < 0) & self.launched),
            unlinked_ns=self._per_step(~self.opaque & (self.owner < 0) & ~self.launched),
            parts=parts,
            frames=self._frames(),
        )

    @cached_property
    def works(self) -> Bool:
        """Which device rows are work at all."""
        return np.isin(self.trace.device.kind, np.array(_SHOWN_KINDS, np.int8))

    @cached_property
    def launched(self) -> Bool:
        """Which device rows name the host side that started them."""
        return np.asarray(self.structure.launch >= 0)

    @cached_property
    def opaque(self) -> Bool:
        """Which device rows ran inside a graph launch."""
        return self.works & graph_work(self.trace, self.structure)

    @cached_property
    def owner(self) -> Int32:
        """Position in `Structure.ops` of each device row's operator, NONE without one."""
        owner = np.append(self.structure.op_position, np.int32(NONE))[self.structure.op]
        owner[self.opaque | ~self.works] = NONE
        return owner

    @cached_property
    def places(self) -> _Places:
        """Work belongs to the step in which it was launched."""
        structure, events = self.structure, self.trace.events
        source = np.where(structure.launch >= 0, structure.launch, structure.op)
        issued = np.append(events.ts, 0)[source]
        when = np.where(source >= 0, issued, self.trace.device.ts)
        return _Places(self._step_of(events.ts[structure.ops.rows]), self._step_of(when))

    def _step_of(self, when: Int64) -> Int32:
        step = np.searchsorted(self.starts, when, side="right") - 1
        step[when >= self.end] = NONE
        return step.astype(np.int32)

    def _per_step(self, chosen: Bool) -> tuple[int, ...]:
        mine = np.flatnonzero(chosen & self.works & (self.places.device >= 0))
        out = np.zeros(len(self.starts), np.int64)
        np.add.at(out, self.places.device[mine], self.trace.device.dur[mine])
        return tuple(out.tolist())

    @cached_property
    def node(self) -> Int32:
        """Tree node of each position of `Structure.ops`."""
        frames = self.results.frames
        by_row = np.full(len(self.trace.events), NONE, np.int32)
        by_row[frames.nesting.rows] = frames.node
        return by_row[self.structure.ops.rows]

    def _groups(self) -> tuple[Int64, Int64, list[tuple[str, str]]]:
        """Group of each operator call, a call of each group, and its shapes and types."""
        events, rows = self.trace.events, self.structure.ops.rows
        shapes, dtypes = (events.dense(name)[rows] for name in ("shapes", "dtypes"))
        size = len(self.trace.strings) + 1
        pairs, pair = np.unique((shapes + 1) * size + dtypes + 1, return_inverse=True)
        keys = (self.node.astype(np.int64) + 1) * len(pairs) + pair
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
        texts = [*self.trace.strings, ""]
        details = [(texts[shapes[at]], texts[dtypes[at]]) for at in first.tolist()]
        return group, first, details

    def _operators(
        self, group: Int64, first: Int64, details: list[tuple[str, str]], shown: Int64
    ) -> tuple[OperatorTime, ...]:
        """One row for each group that is called in the window."""
        ops, device, places = self.structure.ops, self.trace.device, self.places
        shape = (len(first), len(self.starts))
        calls, host, work = (np.zeros(shape, np.int64) for _ in range(3))
        inside = places.ops >= 0
        np.add.at(calls, (group[inside], places.ops[inside]), 1)
        np.add.at(host, (group[inside], places.ops[inside]), ops.self_ns[inside])
        mine = np.flatnonzero((self.owner >= 0) & (places.device >= 0))
        mine_group = group[self.owner[mine]]
        np.add.at(work, (mine_group, places.device[mine]), device.dur[mine])
        part = np.zeros(len(first), np.int64)
        np.add.at(part, group, shown)
        kernels = self._kernels(mine, mine_group)
        paths = _Paths(self.results, self.kinds)
        out = []
        for at in np.flatnonzero(calls.any(axis=1) | work.any(axis=1) | (part > 0)).tolist():
            module, chain, name = paths.of(int(self.node[first[at]]), int(ops.rows[first[at]]))
            out.append(
                OperatorTime(
                    module=module,
                    operator=chain[-1],
                    name=name,
                    around=chain[:-1],
                    shapes=details[at][0],
                    dtypes=details[at][1],
                    calls=tuple(calls[at].tolist()),
                    host_ns=tuple(host[at].tolist()),
                    device_ns=tuple(work[at].tolist()),
                    shown_ns=int(part[at]),
                    kernels=kernels.get(at, ()),
                )
            )
        return tuple(out)

    def _kernels(self, mine: Int64, group: Int64) -> dict[int, tuple[KernelTime, ...]]:
        """Per group its device work by name, the longest first."""
        device, size = self.trace.device, len(self.trace.strings) + 1
        keys, inverse, counts = np.unique(
            group * size + device.name[mine], return_inverse=True, return_counts=True
        )
        total = np.zeros(len(keys), np.int64)
        np.add.at(total, inverse, device.dur[mine])
        found: dict[int, list[KernelTime]] = {}
        for key, count, ns in zip(keys.tolist(), counts.tolist(), total.tolist(), strict=True):
            made = KernelTime(name=self.trace.strings[key % size], count=count, device_ns=ns)
            found.setdefault(key // size, []).append(made)
        return {
            at: tuple(sorted(rows, key=lambda row: (-row.device_ns, row.name))[:KERNELS_SHOWN])
            for at, rows in found.items()
        }

    def _window(self, measure: str) -> tuple[Int64, tuple[Part, ...]]:
        """What each operator call shows in the window, and the parts without an operator."""
        start, end = int(self.starts[0]), int(self.end)
        if measure == "host":
            return self._host_window(end)
        split = split_device(self.trace, self.structure, start, end)
        kind, shown = self.trace.device.kind, split.shown
        compute = np.asarray(kind == Kind.KERNEL)
        mine = np.flatnonzero(compute & (self.owner >= 0))
        calls = np.zeros(len(self.structure.ops.rows), np.int64)
        np.add.at(calls, self.owner[mine], shown[mine])
        loose = compute & (self.owner < 0) & ~self.opaque
        copies = np.isin(kind, np.array((Kind.COPY, Kind.FILL), np.int8))
        named = {
            ("communication", "exposed communication"): kind == Kind.COMMUNICATION,
            ("copy", "exposed copies"): copies,
            ("opaque", "inside graph launches"): compute & self.opaque,
            ("unattributed", "launched outside operators"): loose & self.launched,
            ("unattributed", "launch not recorded"): loose & ~self.launched,
        }
        sums = {key: int(shown[chosen].sum()) for key, chosen in named.items()}
        sums |= {("idle", cause): ns for cause, ns in split.idle.items()}
        sums["unattributed", "difference to the vendor's own idle time"] = split.rest
        parts = [Part(kind=k, name=n, total_ns=ns) for (k, n), ns in sums.items() if ns]
        return calls, tuple(parts)

    def _host_window(self, end: int) -> tuple[Int64, tuple[Part, ...]]:
        """The window of a trace without device work: operators, and what is between them."""
        marks = step_event_rows(self.trace)
        track = int(self.trace.events.track[marks[0]]) if len(marks) else None
        host = split_host(self.trace, self.structure, self.starts, end, track=track)
        parts = [
            Part(kind="host", name=n, total_ns=int(ns.sum()), per_step_ns=tuple(ns.tolist()))
            for n, ns in host.between.items()
        ]
        return host.shown, tuple(parts)

    def _frames(self) -> tuple[FrameTime, ...]:
        """The call tree with the time of the window, runtime calls and markers merged away."""
        trace, frames, tree = self.trace, self.results.frames, self.results.tree
        nesting = frames.nesting
        size = len(tree.parent)
        host, work = np.zeros(size, np.int64), np.zeros(size, np.int64)
        inside = (frames.node >= 0) & (self._step_of(trace.events.ts[nesting.rows]) >= 0)
        np.add.at(host, frames.node[inside], nesting.self_ns[inside])
        by_row = np.append(np.full(len(trace.events), NONE, np.int32), np.int32(NONE))
        by_row[nesting.rows] = frames.node
        structure = self.structure
        source = np.where(structure.launch >= 0, structure.launch, structure.op)
        at = by_row[source]
        mine = self.works & (at >= 0) & (self.places.device >= 0)
        np.add.at(work, at[mine], trace.device.dur[mine])
        names = [canonical(trace.strings[n]) for n in tree.name.tolist()]
        calls = [kind == Kind.RUNTIME for kind in self.kinds]
        hidden = [call and above >= 0 for call, above in zip(calls, tree.parent, strict=True)]
        return _merged_frames(
            tree.parent.tolist(), names, hidden, list(zip(host, work, strict=True))
        )

    @cached_property
    def kinds(self) -> list[int]:
        """What each tree node is."""
        frames = self.results.frames
        kind = np.full(len(self.results.tree.parent), int(Kind.OTHER), np.int64)
        kept = frames.node >= 0
        kind[frames.node[kept]] = self.trace.events.kind[frames.nesting.rows[kept]]
        return kind.tolist()


def canonical(name: str) -> str:
    """A name without what differs between equal runs: addresses, line numbers, vendors."""
    return rules().operators.get(name) or _NUMBERED.sub("", module_path(name))


def _merged_frames(
    parent: list[int], names: list[str], hidden: list[bool], times: list[tuple[int, int]]
) -> tuple[FrameTime, ...]:
    """Frames by name; the time of a hidden one belongs to the frame around it."""
    place: list[int] = []
    known: dict[tuple[int, str], int] = {}
    sums: list[list[int]] = []
    for at, name in enumerate(names):
        above = place[parent[at]] if parent[at] >= 0 else NONE
        key = (above, name)
        if hidden[at] or (len(known) >= FRAMES_LIMIT and above >= 0):
            place.append(above)
        else:
            if key not in known:
                known[key] = len(sums)
                sums.append([0, 0])
            place.append(known[key])
        sums[place[-1]][0] += int(times[at][0])
        sums[place[-1]][1] += int(times[at][1])
    return tuple(
        FrameTime(parent=above, name=name, host_ns=own, device_ns=device)
        for (above, name), (own, device) in zip(known, sums, strict=True)
    )


class _Paths:
    """Module path and operators around a tree node, from its ancestors."""

    def __init__(self, results: Analysed, kinds: list[int]) -> None:
        self._strings = results.trace.strings
        self._parent = results.tree.parent.tolist()
        self._name = results.tree.name.tolist()
        self._kind = kinds
        self._names = results.trace.events.name
        self._python_module = rules().names["python_module"]

    def of(self, node: int, row: int) -> tuple[str, tuple[str, ...], str]:
        """Module, canonical operators from the outermost to this one, and the recorded name."""
        recorded = self._strings[int(self._names[row])]
        module, classes = "", []
        chain = [canonical(recorded)]
        at = self._parent[node] if node >= 0 else NONE
        while at >= 0:
            name, kind = self._strings[self._name[at]], self._kind[at]
            if kind == Kind.HOST_OP and not module:
                chain.append(canonical(name))
            elif kind == Kind.MODULE and not module:
                module = module_path(name)
            elif kind == Kind.PYTHON and self._python_module.search(name):
                classes.append(self._python_module.sub("", name))
            at = self._parent[at]
        return module or ".".join(reversed(classes)), tuple(reversed(chain)), recorded
