"""A diff flame graph as boxes: width is one side's time, colour the change. Needs no script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from profiler.analysis.diffflame import DiffFlame, DiffFrame
from profiler.errors import printable

By = Literal["time", "share"]
Side = Literal["baseline", "candidate"]

SMALLEST = 0.001
"""Frames narrower than this share of the width are folded into a count."""

DEPTH_LIMIT = 60
LISTED = 12
LEVELS = 4
_NAME_LIMIT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One frame: place in per cent of the width, row, and the step of its colour."""

    at: int
    name: str
    left: float
    width: float
    depth: int
    colour: str
    baseline_ns: int
    candidate_ns: int

    @property
    def x(self) -> str:
        return f"{self.left:.3f}"

    @property
    def w(self) -> str:
        return f"{self.width:.3f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlameView:
    """The boxes of the subtree at `root`, the way back up, and what has no box."""

    boxes: tuple[Box, ...]
    rows: int
    folded: int
    root: int | None
    path: tuple[tuple[int, str], ...]
    vanished: tuple[DiffFrame, ...]
    appeared: tuple[DiffFrame, ...]
    largest_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FlameWish:
    """What the address asks for."""

    side: Side = "candidate"
    by: By = "time"
    root: int | None = None


def flame_view(flame: DiffFlame, wish: FlameWish) -> FlameView:
    """Boxes laid out from left to right in the order of the frames."""
    frames = flame.frames
    root = wish.root if wish.root is not None and 0 <= wish.root < len(frames) else None
    largest = max((abs(_change(frame)) for frame in frames), default=0)
    layout = _Layout(flame, wish, largest)
    boxes, folded = layout.boxes(root)
    return FlameView(
        boxes=tuple(boxes),
        rows=max((box.depth for box in boxes), default=-1) + 1,
        folded=folded,
        root=root,
        path=_path(frames, root),
        vanished=tuple(frames[at] for at in flame.vanished[:LISTED]),
        appeared=tuple(frames[at] for at in flame.appeared[:LISTED]),
        largest_ns=largest,
    )


def _change(frame: DiffFrame) -> int:
    return frame.candidate_ns - frame.baseline_ns


class _Layout:
    """Places the frames of a subtree side by side below the frame around them."""

    def __init__(self, flame: DiffFlame, wish: FlameWish, largest: int) -> None:
        self._flame = flame
        self._wish = wish
        self._largest = largest
        self._children: dict[int, list[int]] = {}
        for at, frame in enumerate(flame.frames):
            self._children.setdefault(frame.parent, []).append(at)

    def boxes(self, root: int | None) -> tuple[list[Box], int]:
        """Every box wide enough to be seen, and how many frames are not."""
        tops = self._children.get(-1, []) if root is None else [root]
        whole = sum(self._time(at) for at in tops)
        found: list[Box] = []
        folded = 0
        todo = [(tops, 0.0, 0)]
        while todo and whole:
            level, left, depth = todo.pop()
            for at in level:
                width = self._time(at) / whole
                if width < SMALLEST or depth >= DEPTH_LIMIT:
                    folded += 1
                    continue
                found.append(self._box(at, left, width, depth))
                todo.append((self._children.get(at, []), left, depth + 1))
                left += width
        return found, folded

    def _time(self, at: int) -> int:
        frame = self._flame.frames[at]
        return frame.candidate_ns if self._wish.side == "candidate" else frame.baseline_ns

    def _box(self, at: int, left: float, width: float, depth: int) -> Box:
        frame = self._flame.frames[at]
        return Box(
            at=at,
            name=printable(frame.name, _NAME_LIMIT),
            left=left * 100,
            width=width * 100,
            depth=depth,
            colour=self._colour(frame),
            baseline_ns=frame.baseline_ns,
            candidate_ns=frame.candidate_ns,
        )

    def _colour(self, frame: DiffFrame) -> str:
        """`new`, `gone`, `same`, or less and more in four steps of the largest change."""
        if not frame.baseline_ns:
            return "new"
        if not frame.candidate_ns:
            return "gone"
        part = self._part(frame)
        if abs(part) < 0.02:
            return "same"
        step = min(LEVELS, 1 + int(abs(part) * LEVELS))
        return f"{'less' if part < 0 else 'more'}{step}"

    def _part(self, frame: DiffFrame) -> float:
        """The change between -1 and 1: of the largest change, or of the share of the step."""
        if self._wish.by == "time":
            return _change(frame) / self._largest if self._largest else 0.0
        before = frame.baseline_ns / (self._flame.baseline_ns or 1)
        after = frame.candidate_ns / (self._flame.candidate_ns or 1)
        return max(-1.0, min(1.0, (after - before) * 4))


def _path(frames: Sequence[DiffFrame], at: int | None) -> tuple[tuple[int, str], ...]:
    """The frames around `at`, outermost first, itself last."""
    found: list[tuple[int, str]] = []
    while at is not None and at >= 0:
        found.append((at, printable(frames[at].name, 80)))
        at = frames[at].parent
    return tuple(reversed(found))
