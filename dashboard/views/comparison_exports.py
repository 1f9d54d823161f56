"""A comparison as CSV, as Markdown and as the commands that repeat it."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Iterator

from dashboard.queries.comparisons import ComparisonView, WorkloadView
from dashboard.views.downloads import Cell
from profiler import units
from profiler.errors import printable

PAIR_COLUMNS = (
    "workload",
    "model",
    "metric",
    "unit",
    "pair",
    "order",
    "baseline",
    "candidate",
    "relative_change",
    "dropped",
)


def pair_cells(view: ComparisonView) -> Iterator[tuple[Cell, ...]]:
    """Every pair of every workload with all its digits."""
    for item in view.workloads:
        for pair in item.pairs:
            yield (
                str(item.row.workload),
                item.row.workload.model.name,
                item.row.metric,
                item.verdict.unit,
                pair.number,
                pair.order,
                pair.baseline,
                pair.candidate,
                pair.change,
                pair.dropped,
            )


def commands(view: ComparisonView) -> str:
    """What repeats the comparison from a terminal of the server's machine."""
    row = view.row
    base = row.baseline.sha if row.baseline else row.baseline_ref
    candidate = row.candidate.sha if row.candidate else row.candidate_ref
    words = ["--repo", row.repository.slug, "--base", base, "--candidate", candidate]
    if row.version is not None:
        words += ["--template", row.version.template.name]
    elif view.workloads and view.workloads[0].session is not None:
        words += ["--like-run", str(view.workloads[0].session.pk)]
    words += ["--platform", row.platform.slug, "--margin", f"{row.margin * 100:g}"]
    words += ["--seed", str(row.seed)]
    return f"python manage.py compare {shlex.join(words)}"


def markdown(view: ComparisonView, address: str) -> str:
    """The verdict and one table, for a review or an issue."""
    row = view.row
    lines = [
        f"**{markdown_cell(view.sentence)}**",
        "",
        f"Baseline {_commit(row.baseline_ref, row.baseline)}, "
        f"candidate {_commit(row.candidate_ref, row.candidate)}, "
        f"on {markdown_cell(row.platform.slug)}, margin ±{row.margin * 100:g} %. "
        f"Numerics: not checked. {address}",
        "",
        "| workload | verdict | change (95 %) | pairs | dropped |",
        "|---|---|---|---:|---:|",
        *(_line(item) for item in view.workloads),
        "",
    ]
    return "\n".join(lines)


def as_text(view: ComparisonView) -> str:
    """One screen for a terminal or the log of a CI job; foreign text made harmless."""
    row = view.row
    lines = [
        f"Comparison {row.pk}: {view.state}",
        printable(view.sentence, 1000),
        *([printable(row.hint, 500)] if row.hint else []),
        f"baseline  {_plain(row.baseline_ref, row.baseline)}",
        f"candidate {_plain(row.candidate_ref, row.candidate)}",
        f"platform  {printable(row.platform.slug)}, margin ±{row.margin * 100:g} %, "
        f"{view.pairs} pairs, {view.failed_pairs} dropped, numerics not checked",
        *([f"dropped   {printable(view.first_failure, 300)}"] if view.first_failure else []),
        "",
    ]
    names = [printable(f"{i.row.workload.model.name} {i.row.workload}", 60) for i in view.workloads]
    width = max((len(name) for name in names), default=0)
    for name, item in zip(names, view.workloads, strict=True):
        told = printable(item.row.message, 200) if item.row.state == "failed" else item.figures
        lines.append(f"  {name:<{width}}  {item.verdict.state:<14}  {told}".rstrip())
    return "\n".join(lines)


def as_json(view: ComparisonView) -> str:
    """The machine-readable summary of `manage.py compare --json`."""
    row = view.row
    summary = {
        "schema": 1,
        "comparison": row.pk,
        "state": row.state,
        "verdict": view.state,
        "exit_code": int(view.exit_code),
        "sentence": view.sentence,
        "failure_kind": row.failure_kind or None,
        "repository": row.repository.slug,
        "baseline": row.baseline.sha if row.baseline else None,
        "candidate": row.candidate.sha if row.candidate else None,
        "platform": row.platform.slug,
        "seed": row.seed,
        "pairs": view.pairs,
        "dropped_pairs": view.failed_pairs,
        "numerics": "not checked",
        "workloads": [_facts(item) for item in view.workloads],
    }
    return json.dumps(summary, indent=1, allow_nan=False)


def _facts(item: WorkloadView) -> dict[str, object]:
    return {
        "model": item.row.workload.model.name,
        "workload": str(item.row.workload),
        "state": item.row.state,
        "failure_kind": item.row.failure_kind or None,
        "message": item.row.message or None,
        "metric": item.row.metric,
        "verdict": dataclasses.asdict(item.verdict),
    }


def _plain(ref: str, commit: object) -> str:
    sha = getattr(commit, "sha", "")[:10]
    subject = printable(getattr(commit, "subject", ""), 80)
    return f"{sha} {subject} ({ref})" if sha else printable(ref, 80)


def _line(item: WorkloadView) -> str:
    name = f"{item.row.workload.model.name} {item.row.workload}"
    told = item.row.message if item.row.state == "failed" else item.verdict.state
    return (
        f"| {markdown_cell(name)} | {markdown_cell(told)} | {item.figures or units.MISSING} "
        f"| {item.verdict.counts.used} | {item.failed} |"
    )


def _commit(ref: str, commit: object) -> str:
    sha = getattr(commit, "sha", "")[:10]
    subject = markdown_cell(getattr(commit, "subject", ""))
    return f"`{sha or markdown_cell(ref)}` {subject}".rstrip()


def markdown_cell(text: str) -> str:
    """Foreign text that neither breaks the table nor becomes markup."""
    plain = printable(text, 200)
    return "".join(f"\\{char}" if char in "\\`*_{}[]<>|#!&" else char for char in plain)
