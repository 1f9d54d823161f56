"""The box under the findings: what would any change bring that the reader thinks of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dashboard.models import Trace
from dashboard.panels.asking import FIELDS
from dashboard.queries.replays import read_steps
from dashboard.queries.reports import read_report
from dashboard.services.artifacts import removal_of
from profiler.analysis.findings.scene import folded
from profiler.analysis.findings.what_if import Price
from profiler.analysis.questions import CHANGES, NAME_CHARS, SUBJECTS, answer, parse_question
from profiler.analysis.report import Report
from profiler.errors import UserError

CHANGE_WORDS = {
    "faster": "is faster",
    "gone": "is gone",
    "no_host": "costs the host no time",
    "hidden": "is hidden behind compute",
}
SUBJECT_WORDS = {
    "operator": "Operator",
    "module": "Module",
    "kernel": "Kernel",
    "collective": "Collective",
}
_NAMES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One option of a list."""

    value: str
    title: str
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfPanel:
    """The question as it stands in the address, its answer or what is wrong with it.

    `reason` says why nothing can be asked of this trace. `said` repeats the
    question in words; `names` are the ones worth asking about, for completion.
    """

    row: Trace
    reason: str = ""
    subjects: tuple[Choice, ...] = ()
    changes: tuple[Choice, ...] = ()
    name: str = ""
    times: str = "2"
    names: tuple[str, ...] = ()
    window: str = ""
    said: str = ""
    price: Price | None = None
    problem: str = ""

    @property
    def parameters(self) -> str:
        """Its part of the address."""
        return " ".join(FIELDS.values())


def what_if_panel(trace: Trace, data: Mapping[str, str]) -> WhatIfPanel:
    """The box; raises `UserError` when what was stored cannot be read."""
    if trace.report is None or trace.replay is None or trace.replay.removed_at is not None:
        return WhatIfPanel(row=trace, reason=_why_not(trace))
    report, steps = read_report(trace.report.sha256), read_steps(trace.replay.sha256)
    given = {field: data.get(name, "") for field, name in FIELDS.items()}
    asked = bool(given["name"].strip())
    price, problem = None, ""
    if asked:
        try:
            price = answer(steps, parse_question(given))
        except UserError as error:
            problem = error.line()
    return WhatIfPanel(
        row=trace,
        subjects=_choices(SUBJECTS, SUBJECT_WORDS, given["subject"]),
        changes=_choices(CHANGES, CHANGE_WORDS, given["change"]),
        name=given["name"][:NAME_CHARS],
        times=given["times"][:12] or "2",
        names=_names(report),
        window=steps.graph.window.name,
        said=_said(given) if asked else "",
        price=price,
        problem=problem,
    )


def _why_not(trace: Trace) -> str:
    if trace.replay is not None and trace.replay.removed_at is not None:
        return f"{removal_of(trace.replay).message}."
    if trace.report is not None and read_report(trace.report.sha256).pricing is None:
        return "Its steps cannot be replayed: the work of its device was not recorded."
    return "It was read before questions could be asked: read it again."


def _choices(values: tuple[str, ...], words: Mapping[str, str], chosen: str) -> tuple[Choice, ...]:
    return tuple(Choice(value=v, title=words[v], chosen=v == chosen) for v in values)


def _said(given: Mapping[str, str]) -> str:
    change = CHANGE_WORDS.get(given["change"], "")
    if given["change"] == "faster":
        change = f"is {given['times'] or '2'} times as fast"
    return f"{given['name'].strip()} {change}"


def _names(report: Report) -> tuple[str, ...]:
    """Operators, modules with their layers together, kernels and collectives, by time."""
    modules = [folded(row.path) for row in report.modules]
    names = [
        *(row.name for row in report.operators[:_NAMES]),
        *dict.fromkeys(modules[: 4 * _NAMES]),
        *(row.name for row in report.kernels[:_NAMES]),
        *(row.name for row in report.collectives[:_NAMES]),
    ]
    return tuple(dict.fromkeys(name for name in names if name))[: 3 * _NAMES]
