"""Which commits lie between good and bad, and which of them is best measured next.

Knows nothing of measuring: a history and what single commits said go in. The
rule is that of `git bisect`: the commit whose answer leaves the fewest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from profiler.errors import UserError

RANGE_LIMIT = 2_000


class RangeError(UserError):
    """Two commits with nothing to search between them."""

    kind = "bad_range"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A commit with its parents, first parent first."""

    sha: str
    parents: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Commits that `bad` reaches and `good` does not, parents before children; the last is bad."""

    good: str
    nodes: tuple[Node, ...]

    @property
    def shas(self) -> tuple[str, ...]:
        return tuple(node.sha for node in self.nodes)


def range_between(history: Iterable[Node], good: str, bad: str) -> Range:
    """The commits between; `history` runs from children to parents and holds both.

    Reads no further than it must. Raises `RangeError` when `good` is no
    ancestor of `bad`, when both are one, or when too many lie between.
    """
    if good == bad:
        raise RangeError("Good and bad are the same commit", "name two different ones")
    wanted, known_good = {bad}, {good}
    pending = {bad}
    found: list[Node] = []
    for node in history:
        pending.discard(node.sha)
        if node.sha in known_good:
            known_good.update(node.parents)
            pending.difference_update(node.parents)
        elif node.sha in wanted:
            found.append(node)
            wanted.update(node.parents)
            pending.update(p for p in node.parents if p not in known_good)
        if len(found) > RANGE_LIMIT:
            raise RangeError(
                f"More than {RANGE_LIMIT:,} commits lie between good and bad",
                "name a good commit that is nearer",
            )
        if not pending:
            break
    if good not in wanted:
        raise RangeError(
            "The good commit is no ancestor of the bad one",
            "name as good a commit that the bad one is built on",
        )
    return Range(good=good, nodes=tuple(reversed(found)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What commits said, by hash."""

    good: frozenset[str] = frozenset()
    bad: frozenset[str] = frozenset()
    silent: frozenset[str] = frozenset()
    """Skipped or unsure: measured, and no wiser."""


def suspects(found: Range, answers: Answers) -> tuple[str, ...]:
    """Commits that may be the first bad one, parents before children.

    A bad commit clears all that is not among its ancestors, a good one all that is.
    """
    around = _ancestors(found.nodes)
    place = {node.sha: at for at, node in enumerate(found.nodes)}
    left = (1 << len(found.nodes)) - 1
    for sha in answers.bad & place.keys():
        left &= around[place[sha]]
    for sha in answers.good & place.keys():
        left &= ~around[place[sha]]
    return tuple(node.sha for at, node in enumerate(found.nodes) if left >> at & 1)


def next_probe(found: Range, answers: Answers) -> str | None:
    """The commit to measure next; None when no further answer can narrow the suspects."""
    left = suspects(found, answers)
    known = answers.good | answers.bad | answers.silent
    open_ = [sha for sha in left if sha not in known and sha != left[-1]]
    if not open_:
        return None
    around = _ancestors(found.nodes)
    place = {node.sha: at for at, node in enumerate(found.nodes)}
    mask = sum(1 << place[sha] for sha in left)

    def gain(sha: str) -> int:
        inside = (around[place[sha]] & mask).bit_count()
        return min(inside, len(left) - inside)

    return max(open_, key=gain)


def steps_left(suspected: int) -> int:
    """About how many more commits are measured until one of `suspected` is left."""
    return max(0, (suspected - 1).bit_length())


def parent_of(found: Range, sha: str) -> str:
    """The first parent of a commit of the range."""
    return next(node.parents[0] for node in found.nodes if node.sha == sha)


def _ancestors(nodes: Sequence[Node]) -> list[int]:
    """For each commit the set of its ancestors in the range and itself, as bits."""
    place: Mapping[str, int] = {node.sha: at for at, node in enumerate(nodes)}
    sets: list[int] = []
    for at, node in enumerate(nodes):
        own = 1 << at
        for parent in node.parents:
            if parent in place:
                own |= sets[place[parent]]
        sets.append(own)
    return sets
