"""The sentence on top of the overview: how everything is, in ten seconds."""

from __future__ import annotations

from dashboard.panels.standing import times, tone_of
from dashboard.queries.overview import Attention, Overview, Row
from profiler.errors import printable

NAME_CHARS = 64


def answer(found: Overview) -> str:
    """What needs a look first, else how the models moved since Day-0."""
    problems = _problems(found)
    if problems:
        return f"{problems} {_movement(found)}".strip()
    if found.now.stuck:
        where = ", ".join(queue.platform for queue in found.now.stuck)
        return f"Queued runs wait for a worker on {where}: none is alive."
    if not found.measured:
        return f"Nothing is measured yet; {_plural(found.now.running, 'run')} running, " + (
            f"{found.now.queued:,} queued."
        )
    return f"Nothing needs a look. {_movement(found)}".strip()


def _problems(found: Overview) -> str:
    if not found.attention:
        return ""
    first = found.attention[0]
    more = f", and {found.attention_total - 1:,} more" if found.attention_total > 1 else ""
    if first.kind == "slower":
        count = _plural(found.slower, "confirmed slow-down")
        needs = "needs" if found.slower == 1 else "need"
        return f"{count} {needs} a look: {_where(first)} {first.title}{more}."
    need = "thing needs" if found.attention_total == 1 else "things need"
    return f"{found.attention_total:,} {need} a look: {_what(first)}{more}."


def _what(item: Attention) -> str:
    if item.kind == "failed":
        return f"the newest run of {_where(item)} ended as {item.title.lower()}"
    return f"{_where(item)} was {item.title}"


def _where(item: Attention) -> str:
    name = " ".join(filter(None, (printable(item.model, NAME_CHARS), item.scenario)))
    return f"{name} on {printable(item.platform, NAME_CHARS)}"


def _movement(found: Overview) -> str:
    """The model that gained most since Day-0, and the one that lost most."""
    moved = [
        (cell.ratio, row, cell.scenario)
        for row in found.rows
        for cell in row.cells
        if cell is not None and cell.ratio and tone_of(cell.ratio)
    ]
    if not moved:
        measured = f"{found.measured:,} of {found.workloads:,} workloads are measured"
        return f"{measured}; none has moved since Day-0."
    most = max(moved, key=lambda item: item[0])
    least = min(moved, key=lambda item: item[0])
    said = [_moved(*most)]
    if least[0] < 1 and least is not most:
        said.append(_moved(*least))
    return f"Since Day-0 {', '.join(said)}."


def _moved(ratio: float, row: Row, scenario: str) -> str:
    where = f"{printable(row.model, NAME_CHARS)} {scenario} on {row.platform}"
    return f"{where} is {times(ratio)}"


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
