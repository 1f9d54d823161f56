"""`manage.py prune`: remove what the retention policy keeps no longer, or say what that is."""

from __future__ import annotations

import json
from argparse import ArgumentParser

from dashboard.management.base import ContractCommand
from dashboard.models import RetentionPolicy
from dashboard.queries.retention import EXPORT_ROWS, Plan, plan
from dashboard.services.retention import prune
from profiler import units
from profiler.errors import printable


class Command(ContractCommand):
    help = "Remove stored files that the retention policy keeps no longer."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="say what would go, and stop")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: object, **options: object) -> None:
        if options["dry_run"]:
            found = plan(EXPORT_ROWS)
            self.stdout.write(_as_json(found) if options["json"] else _as_text(found))
            return
        done = prune()
        freed = units.size(done.size_bytes)
        said = f"removed {done.files} file{'' if done.files == 1 else 's'}, {freed}"
        facts = {"files": done.files, "bytes": done.size_bytes}
        self.stdout.write(json.dumps(facts) if options["json"] else said)


def _policy(policy: RetentionPolicy | None) -> dict[str, int | None]:
    return {
        "raw_days": policy.raw_days if policy else None,
        "columns_days": policy.columns_days if policy else None,
    }


def _as_json(found: Plan) -> str:
    """The dry run in the stable form that other programs rely on."""
    return json.dumps(
        {
            "policy": _policy(found.policy),
            "files": found.files,
            "bytes": found.size_bytes,
            "kinds": {
                kind.kind: {"files": kind.files, "bytes": kind.size_bytes} for kind in found.kinds
            },
            "traces": [
                {
                    "kind": row.kind,
                    "file": row.title,
                    "bytes": row.size_bytes,
                    "trace": row.trace_id,
                    "run": row.run_id,
                    "recorded_at": row.recorded_at.isoformat(),
                }
                for row in found.rows
            ],
        },
        indent=1,
    )


def _as_text(found: Plan) -> str:
    days = _policy(found.policy)
    if not any(days.values()):
        lines = ["No policy is set: raw traces and columns are kept for ever."]
    else:
        lines = [f"{name}: {value or 'for ever'}" for name, value in days.items()]
    for kind in found.kinds:
        lines.append(f"{kind.title}: {units.size(kind.size_bytes)} in {kind.files} files")
    for row in found.rows:
        place = f"trace {row.trace_id}" if row.trace_id else f"run {row.run_id}"
        name = printable(row.title, 60)
        lines.append(f"  {place}  {row.kind}  {units.size(row.size_bytes)}  {name}")
    lines.append(f"would remove {found.files} files, {units.size(found.size_bytes)}")
    return "\n".join(lines)
