"""The history around a change as dots and two levels; places in a box of 600 by 160."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.queries.changes import ChangeView
from profiler import units
from profiler.errors import printable

WIDTH, HEIGHT, EDGE = 600.0, 160.0, 12.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One point; `said` is what its row in the table says."""

    x: str
    y: str
    side: str
    run_id: int
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The centre before or after."""

    x1: str
    x2: str
    y: str
    side: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFigure:
    """Dots and levels; `low` and `high` are the values at the lower and the upper edge."""

    dots: tuple[Dot, ...]
    levels: tuple[Level, ...]
    low: str
    high: str


def change_figure(view: ChangeView) -> ChangeFigure | None:
    """What the page draws; None without points."""
    if not view.points:
        return None
    row, unit = view.row, view.metric.unit
    values = [*view.values, row.before_value, row.after_value]
    low, high = min(values), max(values)

    def across(place: float) -> str:
        step = (WIDTH - 2 * EDGE) / max(1, len(view.points) - 1)
        return f"{min(WIDTH, max(0.0, EDGE + step * place)):.1f}"

    def up(value: float) -> str:
        part = (value - low) / (high - low) if high > low else 0.5
        return f"{HEIGHT - EDGE - part * (HEIGHT - 2 * EDGE):.1f}"

    dots = tuple(
        Dot(
            x=across(place),
            y=up(point.value),
            side=point.side,
            run_id=point.run_id,
            said=f"{point.sha[:10]} {printable(point.subject, 80)}: "
            f"{units.quantity(point.value, unit)}",
        )
        for place, point in enumerate(view.points)
    )
    sides = {"before": row.before_value, "after": row.after_value}
    places = {side: [at for at, p in enumerate(view.points) if p.side == side] for side in sides}
    levels = tuple(
        Level(
            x1=across(found[0] - 0.4),
            x2=across(found[-1] + 0.4),
            y=up(sides[side]),
            side=side,
        )
        for side, found in places.items()
        if found
    )
    return ChangeFigure(
        dots=dots, levels=levels, low=units.quantity(low, unit), high=units.quantity(high, unit)
    )
