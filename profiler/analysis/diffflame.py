"""The data of a diff flame graph: both call trees merged by path, times per step."""

from __future__ import annotations

from dataclasses import dataclass

from profiler.analysis.diff import apportion
from profiler.analysis.matching import folded
from profiler.analysis.stepprofile import StepProfile

FRAMES_SHOWN = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffFrame:
    """One frame; `parent` is a position before its own, -1 for roots.

    Times are ns per step: totals hold the frames inside, self times do not.
    A side without the frame has 0 there.
    """

    parent: int
    name: str
    baseline_ns: int
    candidate_ns: int
    baseline_self_ns: int
    candidate_self_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffFlame:
    """A merged tree: parents before children, children by size.

    `vanished` and `appeared` list the outermost frames that only one side has,
    the largest first, as positions in `frames`; `unmatched` is their share of
    the baseline's and of the candidate's time. `without_frames` is device time
    with no host side, which no frame can hold. `merged` counts small frames
    whose time went to the frame around them.
    """

    measure: str
    frames: tuple[DiffFrame, ...]
    vanished: tuple[int, ...]
    appeared: tuple[int, ...]
    baseline_ns: int
    candidate_ns: int
    unmatched: tuple[float | None, float | None]
    without_frames: tuple[int, int]
    merged: int


class _Tree:
    """The growing merged tree: own times per side."""

    def __init__(self) -> None:
        self.parent: list[int] = []
        self.name: list[str] = []
        self.own: list[list[int]] = []
        self.known: dict[tuple[int, str], int] = {}

    def add(self, profile: StepProfile, side: int, measure: str, *, fold_layers: bool) -> None:
        """Add the frames of one side."""
        device = measure == "device"
        times = [frame.device_ns if device else frame.host_ns for frame in profile.frames]
        shares = apportion(times, len(profile.steps))
        place: list[int] = []
        for frame, ns in zip(profile.frames, shares, strict=True):
            above = place[frame.parent] if frame.parent >= 0 else -1
            name = folded(frame.name) if fold_layers and _is_module(frame.name) else frame.name
            at = self.known.setdefault((above, name), len(self.name))
            if at == len(self.name):
                self.parent.append(above)
                self.name.append(name)
                self.own.append([0, 0])
            self.own[at][side] += ns
            place.append(at)

    def totals(self) -> list[list[int]]:
        """Own times and those of all frames inside."""
        total = [list(own) for own in self.own]
        for at in range(len(total) - 1, -1, -1):
            if self.parent[at] >= 0:
                for side in (0, 1):
                    total[self.parent[at]][side] += total[at][side]
        return total


def _is_module(name: str) -> bool:
    """Whether a frame is a module: a path, or a module class of a python frame."""
    return "::" not in name and "(" not in name


def diff_flame(
    baseline: StepProfile,
    candidate: StepProfile,
    measure: str = "device",
    *,
    fold_layers: bool = True,
    most: int = FRAMES_SHOWN,
) -> DiffFlame:
    """Merge the trees of two profiles by `measure`: "device" or "host" time."""
    tree = _Tree()
    for side, profile in enumerate((baseline, candidate)):
        tree.add(profile, side, measure, fold_layers=fold_layers)
    total = tree.totals()
    kept = _largest(total, most)
    place = _placed(tree, total, kept)
    own = _own_of_kept(tree, place)
    order = sorted(kept, key=lambda at: place[at])
    frames = tuple(
        DiffFrame(
            parent=place[tree.parent[at]] if tree.parent[at] >= 0 else -1,
            name=tree.name[at],
            baseline_ns=total[at][0],
            candidate_ns=total[at][1],
            baseline_self_ns=own[place[at]][0],
            candidate_self_ns=own[place[at]][1],
        )
        for at in order
    )
    gone, new = _one_sided(frames, 0), _one_sided(frames, 1)
    sums = [sum(pair[side] for pair in tree.own) for side in (0, 1)]
    lost = sum(frames[at].baseline_ns for at in gone), sum(frames[at].candidate_ns for at in new)
    return DiffFlame(
        measure=measure,
        frames=frames,
        vanished=gone,
        appeared=new,
        baseline_ns=sums[0],
        candidate_ns=sums[1],
        unmatched=(lost[0] / sums[0] if sums[0] else None, lost[1] / sums[1] if sums[1] else None),
        without_frames=(_without(baseline, measure), _without(candidate, measure)),
        merged=sum(1 for pair in total if any(pair)) - len(kept),
    )


def _largest(total: list[list[int]], most: int) -> set[int]:
    """Positions of the frames that are shown: those with time, the largest, parents first."""
    timed = [at for at, pair in enumerate(total) if any(pair)]
    return set(sorted(timed, key=lambda at: (-max(total[at]), at))[:most])


def _placed(tree: _Tree, total: list[list[int]], kept: set[int]) -> dict[int, int]:
    """New position of each kept frame: depth first, larger children first."""
    children: dict[int, list[int]] = {}
    for at in kept:
        children.setdefault(tree.parent[at], []).append(at)
    place: dict[int, int] = {}
    stack = sorted(children.get(-1, []), key=lambda at: (max(total[at]), -at))
    while stack:
        at = stack.pop()
        place[at] = len(place)
        stack += sorted(children.get(at, []), key=lambda inner: (max(total[inner]), -inner))
    return place


def _own_of_kept(tree: _Tree, place: dict[int, int]) -> list[list[int]]:
    """Own times of kept frames, with those of the frames that went into them."""
    own = [[0, 0] for _ in place]
    nearest: list[int] = []
    for at, above in enumerate(tree.parent):
        nearest.append(place[at] if at in place else nearest[above] if above >= 0 else -1)
        if nearest[-1] >= 0:
            own[nearest[-1]][0] += tree.own[at][0]
            own[nearest[-1]][1] += tree.own[at][1]
    return own


def _one_sided(frames: tuple[DiffFrame, ...], side: int) -> tuple[int, ...]:
    """The outermost frames that only `side` has, the largest first."""
    alone = [not (frame.candidate_ns, frame.baseline_ns)[side] for frame in frames]
    outermost = [
        at for at, frame in enumerate(frames)
        if alone[at] and not (frame.parent >= 0 and alone[frame.parent])
    ]  # fmt: skip
    return tuple(
        sorted(outermost, key=lambda at: -(frames[at].baseline_ns, frames[at].candidate_ns)[side])
    )


def _without(profile: StepProfile, measure: str) -> int:
    """Device time per step with no host side."""
    return sum(profile.unlinked_ns) // len(profile.steps) if measure == "device" else 0
