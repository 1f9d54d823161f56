"""`manage.py runs`: every run with its state, as a table or as JSON for other programs."""

from __future__ import annotations

import json
from argparse import ArgumentParser

from dashboard.management.base import ContractCommand
from dashboard.queries.runs import RunRow, all_runs
from profiler import units
from profiler.errors import printable

COLUMNS = ("run", "model", "scenario", "state", "trace", "value", "took", "created")


class Command(ContractCommand):
    help = "List every run with its state and the state of its trace."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print a JSON list")

    def handle(self, *args: object, **options: object) -> None:
        rows = all_runs()
        if options["json"]:
            self.stdout.write(json.dumps([_facts(row) for row in rows], indent=1))
        elif rows:
            self._table([COLUMNS, *(_cells(row) for row in rows)])
        else:
            self.stdout.write("No runs yet: start one on the New run page.")

    def _table(self, rows: list[tuple[str, ...]]) -> None:
        widths = [max(len(row[place]) for row in rows) for place in range(len(COLUMNS))]
        for row in rows:
            line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self.stdout.write(line.rstrip())


def _facts(row: RunRow) -> dict[str, object]:
    """One run in the stable form that other programs rely on."""
    return {
        "id": row.id,
        "model": row.model,
        "scenario": row.scenario,
        "state": row.state,
        "trace_state": row.trace_state or None,
        "created_at": row.created_at.isoformat(),
        "ended_at": row.ended_at.isoformat() if row.ended_at else None,
    }


def _cells(row: RunRow) -> tuple[str, ...]:
    value = row.headline
    return (
        str(row.id),
        printable(row.model, 40),
        row.scenario,
        row.state,
        row.trace_state or units.MISSING,
        units.quantity(value.value, value.unit) if value else units.MISSING,
        units.duration(row.took_ns),
        f"{row.created_at:%Y-%m-%d %H:%M}",
    )
