"""What a trace's own flame graph draws: merged stacks of device, host and idle time.

Three views, times in integer nanoseconds: `device` is device time under the
host stack (module path -> operator -> kernel), `host` the host's self time,
`idle` what devices waited for (cause -> stack whose work ended the gap).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nsmallest

import numpy as np

from profiler.analysis.analyse import Analysed
from profiler.analysis.calltree import CallTree, Frames
from profiler.analysis.flame_document import CATEGORIES, FlameGraph, Fold, View
from profiler.analysis.idle import CAUSES, device_gaps
from profiler.analysis.operators import module_path
from profiler.analysis.roofline.table import Roofline
from profiler.trace.batch import NONE
from profiler.trace.clock import Int64
from profiler.trace.kinds import DEVICE_CLASSES, Kind
from profiler.trace.link import Structure
from profiler.trace.model import Trace

NODE_LIMIT = 20_000
"""Frames kept per view; smaller ones are folded into their parent and counted."""
NO_HOST = "(not attributed to the host)"
NO_LAUNCH = "(launched outside the recording)"
_PYTHON_MODULE = "nn.Module: "
_HOST_CATEGORIES = {
    Kind.MODULE: "module",
    Kind.HOST_OP: "operator",
    Kind.RUNTIME: "runtime",
    Kind.PYTHON: "python",
    Kind.ANNOTATION: "mark",
}


def flame_graph_of(results: Analysed) -> FlameGraph:
    """All views of a trace. Where peaks are known, counted operators say their efficiency."""
    structure, tree, frames = results.structure, results.tree, results.frames
    stacks = _Stacks(results.trace, tree, frames)
    # That of the whole trace: the scene may hold only the steps that were replayed.
    reached = _efficiency(structure, frames, results.roof)
    names = _Names()
    device, host, idle = _Growing(names), _Growing(names), _Growing(names)
    _add_device(device, stacks, reached)
    _add_host(host, stacks, reached if not tree.kernels else {})
    _add_idle(idle, stacks, structure)
    grown = {"device": device, "host": host, "idle": idle}
    views = [view.limited(kind) for kind, view in grown.items() if sum(view.self_ns)]
    return FlameGraph(steps=len(results.report.steps), names=names.texts, views=views)


class _Names:
    """Texts by number, each once."""

    def __init__(self) -> None:
        self._index: dict[str, int] = {}
        self.texts: list[str] = []

    def __call__(self, text: str) -> int:
        found = self._index.get(text)
        if found is None:
            found = self._index[text] = len(self.texts)
            self.texts.append(text)
        return found


class _Growing:
    """A view while it is made: frames with the same parent, name and category are one."""

    def __init__(self, names: _Names) -> None:
        self._names = names
        self._found: dict[tuple[int, int, int], int] = {}
        self.parent: list[int] = []
        self.name: list[int] = []
        self.category: list[int] = []
        self.self_ns: list[int] = []
        self.calls: list[int] = []
        self.reached: dict[int, int] = {}

    def frame(self, parent: int, text: str, category: str) -> int:
        """The frame below `parent`, made when it is new."""
        key = parent, self._names(text), CATEGORIES.index(category)
        at = self._found.get(key)
        if at is None:
            at = self._found[key] = len(self.parent)
            self.parent.append(parent)
            self.name.append(key[1])
            self.category.append(key[2])
            self.self_ns.append(0)
            self.calls.append(0)
        return at

    def add(self, at: int, ns: int, calls: int) -> None:
        """Time and calls of a frame's own."""
        self.self_ns[at] += ns
        self.calls[at] += calls

    def limited(self, kind: str) -> View:
        """The largest frames; a parent is never smaller than its children, so none loses it."""
        whole = self._view(kind, range(len(self.parent)), ())
        if len(self.parent) <= NODE_LIMIT:
            return whole
        total = whole.totals()
        order = nsmallest(NODE_LIMIT, range(len(total)), key=lambda at: (-total[at], at))
        kept = sorted(order)
        return self._view(kind, kept, _folds(self.parent, self.self_ns, kept))

    def _view(self, kind: str, kept: Iterable[int], folds: Iterable[Fold]) -> View:
        place = {at: number for number, at in enumerate(kept)} | {NONE: NONE}
        rows = [at for at in place if at != NONE]
        return View(
            kind=kind,
            total_ns=sum(self.self_ns),
            parent=[place[self.parent[at]] for at in rows],
            name=[self.name[at] for at in rows],
            category=[self.category[at] for at in rows],
            self_ns=[self.self_ns[at] for at in rows],
            calls=[self.calls[at] for at in rows],
            folded=[
                Fold(at=place[fold.at], frames=fold.frames, total_ns=fold.total_ns)
                for fold in folds
            ],
            efficiency=[self.reached.get(at, -1) for at in rows] if self.reached else [],
        )


def _folds(parent: list[int], self_ns: list[int], kept: list[int]) -> Iterator[Fold]:
    """Frames that are not kept, gathered at the frame they end up below."""
    home = list(range(len(parent)))
    frames: dict[int, int] = {}
    total: dict[int, int] = {}
    stays = set(kept)
    for at, above in enumerate(parent):
        if at in stays:
            continue
        home[at] = home[above] if above >= 0 else NONE
        frames[home[at]] = frames.get(home[at], 0) + 1
        total[home[at]] = total.get(home[at], 0) + self_ns[at]
    for at in sorted(frames):
        yield Fold(at=at, frames=frames[at], total_ns=total[at])


class _Stacks:
    """The call tree with a name and a category per node."""

    def __init__(self, trace: Trace, tree: CallTree, frames: Frames) -> None:
        self.trace, self.tree, self.frames = trace, tree, frames
        self.parent: list[int] = tree.parent.tolist()
        self.code: list[int] = tree.name.tolist()
        kind = np.full(len(self.parent), Kind.OTHER, np.int64)
        shown = frames.node >= 0
        kind[frames.node[shown]] = trace.events.kind[frames.nesting.rows[shown]]
        named = {int(kind): category for kind, category in _HOST_CATEGORIES.items()}
        self.category = [named.get(code, "other") for code in kind.tolist()]
        for node in np.flatnonzero(kind == Kind.PYTHON).tolist():
            if trace.strings[self.code[node]].startswith(_PYTHON_MODULE):
                self.category[node] = "module"
        self._placed: dict[tuple[int, int], dict[int, int]] = {}

    def text(self, code: int) -> str:
        """A name as shown."""
        return module_path(self.trace.strings[code])

    def place(self, view: _Growing, node: int, *, root: int = NONE, calls: bool = True) -> int:
        """The frame of a node below `root`; without `calls` those of the runtime are left out."""
        known = self._placed.setdefault((id(view), root), {NONE: root})
        path = []
        while node not in known:
            path.append(node)
            node = self.parent[node]
        at = known[node]
        for node in reversed(path):
            if calls or self.category[node] != "runtime":
                at = view.frame(at, self.text(self.code[node]), self.category[node])
            known[node] = at
        return at

    def note_reached(self, node: int, view: _Growing, reached: dict[int, int]) -> None:
        """Pass the efficiency of the operators around a node on to their frames in `view`."""
        while node >= 0:
            if node in reached:
                view.reached[self.place(view, node, calls=False)] = reached[node]
            node = self.parent[node]


def _add_host(view: _Growing, stacks: _Stacks, reached: dict[int, int]) -> None:
    tree = stacks.tree
    for node in np.flatnonzero(tree.host_self_ns > 0).tolist():
        at = stacks.place(view, node)
        view.add(at, int(tree.host_self_ns[node]), int(tree.calls[node]))
        if node in reached:
            view.reached[at] = reached[node]


def _add_device(view: _Growing, stacks: _Stacks, reached: dict[int, int]) -> None:
    """Kernels below the operator that launched them; those without a host side below one frame."""
    tree, device = stacks.tree, stacks.trace.device
    kind = np.zeros(len(stacks.trace.strings), np.int8)
    kind[device.name] = device.kind
    classes = [DEVICE_CLASSES.get(Kind(code), "other") for code in kind.tolist()]
    for node, name, ns, count in tree.kernels:
        at = stacks.place(view, node, calls=False)
        view.add(view.frame(at, stacks.text(name), classes[name]), ns, count)
        if reached:
            stacks.note_reached(node, view, reached)
    for name, ns, count in tree.unattributed:
        at = view.frame(NONE, NO_HOST, "other")
        view.add(view.frame(at, stacks.text(name), classes[name]), ns, count)


def _add_idle(view: _Growing, stacks: _Stacks, structure: Structure) -> None:
    """Gaps by device (where there are several), cause, and the stack whose work ended them."""
    gaps = list(device_gaps(stacks.trace, structure))
    position = np.full(len(stacks.trace.events) + 1, NONE, np.int64)
    position[stacks.frames.nesting.rows] = stacks.frames.node
    for device, gap in gaps:
        root = view.frame(NONE, f"device {device}", "device") if len(gaps) > 1 else NONE
        launch = structure.launch[gap.opener]
        source = np.where(launch >= 0, launch, structure.op[gap.opener])
        node = position[source]
        for cause, at, ns, count in _summed(gap.cause, node, gap.length_ns):
            below = view.frame(root, CAUSES[cause].replace("_", " "), "cause")
            if at >= 0:
                below = stacks.place(view, at, root=below, calls=False)
            else:
                below = view.frame(below, NO_LAUNCH, "other")
            view.add(below, ns, count)


def _summed(cause: Int64, node: Int64, ns: Int64) -> Iterator[tuple[int, int, int, int]]:
    """(cause, node, ns, gaps) of equal pairs."""
    width = int(node.max()) + 2 if len(node) else 1
    keys, inverse, counts = np.unique(
        cause * width + node + 1, return_inverse=True, return_counts=True
    )
    total = np.zeros(len(keys), np.int64)
    np.add.at(total, inverse, ns)
    for key, sum_ns, count in zip(keys.tolist(), total.tolist(), counts.tolist(), strict=True):
        if sum_ns:
            yield key // width, key % width - 1, sum_ns, count


def _efficiency(structure: Structure, frames: Frames, roof: Roofline) -> dict[int, int]:
    """Thousandths of the roofline per node: least time of its counted calls over their time."""
    bounds = {row.signature: row.bound_ns for row in roof.rows if row.bound_ns is not None}
    bound = np.array([bounds.get(signature, -1.0) for signature in roof.signatures])
    if not len(bound):
        return {}
    counted = (roof.signature >= 0) & (roof.time_ns > 0)
    counted &= bound[roof.signature] >= 0
    if not counted.any():
        return {}
    rows = structure.ops.rows[counted]
    position = np.full(int(frames.nesting.rows.max()) + 1, NONE, np.int64)
    position[frames.nesting.rows] = frames.node
    node = position[rows]
    size = int(node.max()) + 1 if len(node) else 0
    least = np.bincount(node[node >= 0], bound[roof.signature[counted]][node >= 0], size)
    spent = np.bincount(node[node >= 0], roof.time_ns[counted][node >= 0], size)
    return {at: round(1000 * least[at] / spent[at]) for at in np.flatnonzero(spent).tolist()}
