"""A reader's own "what if", asked of a trace that was read long ago."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Literal, get_args

from profiler.analysis.findings.stored import Replayed, unpack
from profiler.analysis.findings.what_if import Price, Target, WhatIf, price
from profiler.errors import UserError

Change = Literal["faster", "gone", "no_host", "hidden"]
Subject = Literal["operator", "module", "kernel", "collective"]

CHANGES: tuple[Change, ...] = get_args(Change)
SUBJECTS: tuple[Subject, ...] = get_args(Subject)

ALLOWED: Mapping[Change, tuple[Subject, ...]] = {
    "faster": SUBJECTS,
    "gone": ("operator", "module", "kernel"),
    "no_host": ("operator", "module"),
    "hidden": ("collective",),
}
"""What can be asked of what: only communication hides, only what the host runs has host time."""

MOST_TIMES = 1000.0
NAME_CHARS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`name` is `times` faster, gone, without host time in it, or hidden behind other work.

    A module path with `*` for layer numbers means all of them. `times` counts
    for `faster` alone; below 1 it is slower.
    """

    change: Change
    subject: Subject
    name: str
    times: float = 2.0


def parse_question(fields: Mapping[str, str]) -> Question:
    """A question from texts `change`, `subject`, `name` and `times`.

    Raises `UserError` for any other value than those allowed.
    """
    change, subject = fields.get("change", ""), fields.get("subject", "")
    if change not in CHANGES:
        raise UserError(f"{change!r} is no change", f"one of {', '.join(CHANGES)}")
    allowed = ALLOWED[change]
    if subject not in allowed:
        raise UserError(f"{change} cannot be asked of {subject!r}", f"only of {', '.join(allowed)}")
    name = fields.get("name", "").strip()
    if not name or len(name) > NAME_CHARS:
        raise UserError("the question names nothing", "take a name of the tables")
    times = _times(fields.get("times", "") or "2") if change == "faster" else 2.0
    return Question(change=change, subject=subject, name=name, times=times)


def _times(text: str) -> float:
    try:
        times = float(text.replace(",", "."))
    except ValueError:
        times = 0.0
    if not (isfinite(times) and 1 / MOST_TIMES <= times <= MOST_TIMES):
        raise UserError(f"{text!r} is no factor", f"a number up to {MOST_TIMES:.0f}; 2 is twice")
    return times


def request_of(question: Question) -> WhatIf:
    """The question as the pricing takes it."""
    factor = 1 / question.times if question.change == "faster" else 0.0
    target: Target = question.subject
    if question.change == "no_host":
        target = "host_of_operator" if question.subject == "operator" else "host_of_module"
    return WhatIf(target=target, name=question.name, factor=factor)


def answer(steps: Replayed, *questions: Question) -> Price:
    """What the changes of the questions would bring together; raises `UserError`."""
    return price(steps, *(request_of(question) for question in questions))


def what_if(path: Path, *questions: Question) -> Price:
    """The same from the file that ingest stored (`replay.bin`); raises `UserError`."""
    try:
        content = path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(f"{path} cannot be read: {reason}", "read the trace again") from None
    return answer(unpack(content), *questions)
