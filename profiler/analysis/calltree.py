"""The merged call tree: module path -> operator -> call -> kernel, with self times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profiler.trace.batch import NONE, Bool, Int32
from profiler.trace.clock import Int64
from profiler.trace.codes import grouped
from profiler.trace.kinds import Kind
from profiler.trace.link import HOST_KINDS, Structure
from profiler.trace.model import Trace
from profiler.trace.nest import Nesting, depths, nearest, nest

DEPTH_LIMIT = 500
OUTSIDE = "(between operators)"


@dataclass(slots=True)
class CallTree:
    """Nodes in order: a parent always comes before its children, -1 marks roots.

    `name` indexes `Trace.strings`; `calls`, `host_self_ns` and
    `device_self_ns` belong to the node itself. `kernels` are leaves: (node,
    name, device ns, count). `unattributed` is device work without a host side
    as (name, device ns, count). `cut` counts calls deeper than the limit.
    """

    parent: Int64
    name: Int64
    calls: Int64
    host_self_ns: Int64
    device_self_ns: Int64
    kernels: list[tuple[int, int, int, int]]
    unattributed: list[tuple[int, int, int]]
    cut: int


@dataclass(slots=True)
class Frames:
    """The intervals the tree is made of: nesting, names, and the node of each one."""

    nesting: Nesting
    shown: Bool
    node: Int32


def call_tree(trace: Trace, structure: Structure, forward: Int32) -> tuple[CallTree, Frames]:
    """Merge all calls with the same stack; backward operators go under their forward module.

    `forward` is aligned with `structure.host` (see `forward_positions`).
    Marks of steps and phases are no frames, so that steps merge; their own time
    becomes the node `OUTSIDE`. Python frames are frames.
    """
    nesting = _nesting(trace, structure)
    names = trace.events.name[nesting.rows]
    shown = ~_marks(trace, names)
    parent = nearest(nesting.parent, shown)
    parent = _under_forward(trace, structure, nesting, parent, forward=forward)
    parent, level, cut = _limited(parent)
    node, node_parent, node_name = _nodes(parent, level, names, shown)
    between = int(nesting.self_ns[~shown].sum())
    if between:
        node_parent = np.append(node_parent, NONE)
        node_name = np.append(node_name, _string(trace, OUTSIDE))
    size = len(node_parent)
    kept = node >= 0
    own = np.zeros(size, np.int64)
    np.add.at(own, node[kept], nesting.self_ns[kept])
    if between:
        own[-1] = between
    tree = CallTree(
        parent=node_parent,
        name=node_name,
        calls=np.bincount(node[kept], minlength=size).astype(np.int64),
        host_self_ns=own,
        device_self_ns=np.zeros(size, np.int64),
        kernels=[],
        unattributed=[],
        cut=cut,
    )
    frames = Frames(nesting, shown, node)
    _add_device(trace, structure, tree, frames)
    return tree, frames


def _string(trace: Trace, text: str) -> int:
    """The code of `text`, added to the strings if it is new."""
    if text not in trace.strings:
        trace.strings.append(text)
    return trace.strings.index(text)


def _nesting(trace: Trace, structure: Structure) -> Nesting:
    """Host nesting, with python frames when there are any."""
    events = trace.events
    if not (events.kind == Kind.PYTHON).any():
        return structure.host
    kinds = np.array((*HOST_KINDS, Kind.PYTHON), np.int8)
    rows = np.flatnonzero(np.isin(events.kind, kinds))
    tie = events.external_id[rows]
    return nest(rows, events.track[rows], events.ts[rows], events.dur[rows], tie=tie)


def _marks(trace: Trace, names: Int32) -> Bool:
    marks = trace.matching("step") | trace.matching("iteration") | trace.matching("phase")
    return np.asarray(marks[names])


def _under_forward(
    trace: Trace, structure: Structure, nesting: Nesting, parent: Int32, *, forward: Int32
) -> Int32:
    """Hang outermost backward operators without a module under their forward's module."""
    backward = np.flatnonzero(forward >= 0)
    if not len(backward):
        return parent
    host = structure.host
    position = np.full(len(trace.events), NONE, np.int32)
    position[nesting.rows] = np.arange(len(nesting.rows), dtype=np.int32)
    is_module = np.asarray(trace.events.kind[nesting.rows] == Kind.MODULE)
    if not is_module.any():
        return parent
    module = nearest(nesting.parent, is_module)
    at = position[host.rows[backward]]
    home = module[position[host.rows[forward[backward]]]]
    is_backward = np.zeros(len(parent), np.bool_)
    is_backward[at] = True
    outermost = nearest(nesting.parent, is_backward)[at] == NONE
    move = outermost & (module[at] == NONE) & (home >= 0)
    out = parent.copy()
    out[at[move]] = home[move]
    return out


def _limited(parent: Int32) -> tuple[Int32, Int32, int]:
    """Parents, depths and how many calls were deeper than the limit: they hang below its frame."""
    level = depths(parent)
    deep = level >= DEPTH_LIMIT
    if not deep.any():
        return parent, level, 0
    kept = nearest(parent, ~deep)
    out = np.where(deep, kept, parent)
    return out, depths(out), int(deep.sum())


def _nodes(parent: Int32, level: Int32, names: Int32, shown: Bool) -> tuple[Int32, Int64, Int64]:
    """Node of each interval (-1 for hidden ones), parent and name of each node.

    Level by level: intervals whose parents have the same node and which have
    the same name are one node.
    """
    node = np.full(len(parent), NONE, np.int32)
    width = int(names.max()) + 1 if len(names) else 1
    parents: list[Int64] = []
    labels: list[Int64] = []
    made = 0
    order = np.argsort(level, kind="stable").astype(np.int32)
    order = order[shown[order]]
    bounds = np.searchsorted(level[order], np.arange(level.max() + 2 if len(level) else 1))
    for low, high in zip(bounds.tolist(), bounds.tolist()[1:], strict=False):
        members = order[low:high]
        if not len(members):
            continue
        above = np.where(parent[members] >= 0, node[parent[members]], np.int32(NONE))
        # Parents are nodes of the level above, or none for all of the level.
        first = int(above.min())
        key = (above.astype(np.int64) - first) * width + names[members]
        keys, inverse = grouped(key, (int(above.max()) - first + 1) * width)
        node[members] = made + inverse
        parents.append(keys // width + first)
        labels.append(keys % width)
        made += len(keys)
    empty = np.empty(0, np.int64)
    return (
        node,
        np.concatenate(parents) if parents else empty,
        np.concatenate(labels) if labels else empty,
    )


def _add_device(trace: Trace, structure: Structure, tree: CallTree, frames: Frames) -> None:
    """Add each piece of device work to the node of its launch, else of its operator."""
    device = trace.device
    position = np.full(len(trace.events), NONE, np.int32)
    position[frames.nesting.rows] = np.arange(len(frames.nesting.rows), dtype=np.int32)
    source = np.where(structure.launch >= 0, structure.launch, structure.op)
    # Index -1 finds the NONE that is appended.
    at = np.append(position, NONE)[source]
    node = np.append(frames.node, NONE)[at]
    works = (device.kind != Kind.WAIT) | (node >= 0)
    node, names, dur = node[works], device.name[works].astype(np.int64), device.dur[works]
    found = node >= 0
    np.add.at(tree.device_self_ns, node[found], dur[found])
    width = len(trace.strings) + 1
    keys, inverse, counts = np.unique(
        (node + 1) * width + names, return_inverse=True, return_counts=True
    )
    total = np.zeros(len(keys), np.int64)
    np.add.at(total, inverse, dur)
    for key, ns, count in zip(keys.tolist(), total.tolist(), counts.tolist(), strict=True):
        owner, name = key // width - 1, key % width
        if owner >= 0:
            tree.kernels.append((owner, name, ns, count))
        else:
            tree.unattributed.append((name, ns, count))
