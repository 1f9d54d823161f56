"""Which commits lie between two, and which is best measured next."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.services import bisect_range
from dashboard.services.bisect_range import (
    Answers,
    Node,
    Range,
    RangeError,
    next_probe,
    parent_of,
    range_between,
    steps_left,
    suspects,
)


def line(count: int) -> list[Node]:
    """`c0` to the newest, newest first."""
    nodes = [Node(sha=f"c{at}", parents=(f"c{at - 1}",) if at else ()) for at in range(count)]
    return nodes[::-1]


def graph(text: str) -> list[Node]:
    """`a b:a c:a d:bc`, oldest first, as a history."""
    words = [word.partition(":") for word in text.split()]
    return [Node(sha=sha, parents=tuple(parents)) for sha, _, parents in words][::-1]


def test_it_takes_what_the_good_commit_lacks() -> None:
    assert range_between(line(9), "c3", "c7").shas == ("c4", "c5", "c6", "c7")


def test_it_takes_a_side_branch_that_was_merged() -> None:
    found = range_between(graph("a b:a s:a c:b m:cs"), "b", "m")
    assert found.shas == ("s", "c", "m")


def test_it_leaves_out_what_the_good_commit_reaches_on_another_way() -> None:
    found = range_between(graph("a s:a g:as b:g n:bs"), "g", "n")
    assert found.shas == ("b", "n")


def test_it_reads_no_further_than_it_must() -> None:
    read: list[str] = []

    def history() -> Iterator[Node]:
        for node in line(1_000):
            read.append(node.sha)
            yield node

    range_between(history(), "c995", "c998")
    assert len(read) < 6


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        ("c2", "c2", "the same commit"),
        ("c7", "c2", "no ancestor of the bad one"),
    ],
)
def test_it_says_why_there_is_no_range(good: str, bad: str, words: str) -> None:
    with pytest.raises(RangeError, match=words):
        range_between(line(9), good, bad)


def test_it_refuses_a_commit_of_another_branch() -> None:
    with pytest.raises(RangeError, match="no ancestor"):
        range_between(graph("a b:a c:a"), "b", "c")


def test_it_refuses_more_than_it_can_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bisect_range, "RANGE_LIMIT", 5)
    with pytest.raises(RangeError, match="More than 5 commits"):
        range_between(line(9), "c1", "c8")


def test_it_halves_a_line() -> None:
    found = range_between(line(17), "c0", "c16")
    assert next_probe(found, Answers()) == "c8"
    assert next_probe(found, Answers(good=frozenset({"c8"}))) == "c12"
    assert next_probe(found, Answers(bad=frozenset({"c8"}))) == "c4"


def test_it_goes_round_a_commit_that_says_nothing() -> None:
    found = range_between(line(17), "c0", "c16")
    assert next_probe(found, Answers(silent=frozenset({"c8"}))) in {"c7", "c9"}


def test_it_ends_when_only_silent_ones_are_left() -> None:
    found = range_between(line(6), "c0", "c5")
    answers = Answers(good=frozenset({"c2"}), bad=frozenset({"c4", "c5"}), silent=frozenset({"c3"}))
    assert next_probe(found, answers) is None
    assert suspects(found, answers) == ("c3", "c4")


def test_it_clears_a_branch_that_a_bad_commit_does_not_hold() -> None:
    found = range_between(graph("a b:a s:a c:b m:cs"), "a", "m")
    assert suspects(found, Answers(bad=frozenset({"c"}))) == ("b", "c")


def test_it_knows_the_first_parent() -> None:
    found = range_between(graph("a b:a s:a c:b m:cs"), "a", "m")
    assert parent_of(found, "m") == "c"


@given(st.integers(2, 200), st.data())
def test_it_finds_any_culprit_in_as_many_steps_as_halving_takes(
    count: int, data: st.DataObject
) -> None:
    culprit = data.draw(st.integers(1, count))
    found = range_between(line(count + 1), "c0", f"c{count}")
    good: set[str] = set()
    bad: set[str] = set()
    taken = 0
    while probe := next_probe(found, Answers(good=frozenset(good), bad=frozenset(bad))):
        (bad if int(probe[1:]) >= culprit else good).add(probe)
        taken += 1
    assert suspects(found, Answers(good=frozenset(good), bad=frozenset(bad))) == (f"c{culprit}",)
    assert taken <= steps_left(count)


@given(st.integers(3, 40), st.data())
def test_silent_commits_never_lead_to_a_wrong_one(count: int, data: st.DataObject) -> None:
    culprit = data.draw(st.integers(1, count))
    mute = data.draw(st.sets(st.integers(1, count - 1)))
    found: Range = range_between(line(count + 1), "c0", f"c{count}")
    said: dict[str, set[str]] = {"good": set(), "bad": set(), "silent": set()}

    def answers() -> Answers:
        return Answers(**{name: frozenset(shas) for name, shas in said.items()})

    while probe := next_probe(found, answers()):
        at = int(probe[1:])
        said["silent" if at in mute else "bad" if at >= culprit else "good"].add(probe)
    assert f"c{culprit}" in suspects(found, answers())
