"""Command-line handlers of `diff` (two traces) and `compare` (the results of two sides)."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from profiler.errors import ExitCode, UserError, printable
from profiler.units import change, count, duration, middle, quantity, share

if TYPE_CHECKING:
    from profiler.analysis.compare import Comparison
    from profiler.analysis.diff import Diff, DiffSide
    from profiler.analysis.diffflame import DiffFlame
    from profiler.analysis.stepprofile import StepProfile
    from profiler.analysis.waterfall import Waterfall

Subparsers = argparse._SubParsersAction

ROWS_SHOWN = 10


def register(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add `diff` and `compare` to the command line."""
    diff = subparsers.add_parser("diff", help="compare two traces per step")
    diff.add_argument("baseline", type=Path, metavar="BASE", help="trace")
    diff.add_argument("candidate", type=Path, metavar="CAND", help="trace")
    diff.add_argument("--json", action="store_true", help="print one JSON object")
    diff.add_argument("--each-layer", action="store_true", help="do not count equal layers as one")
    diff.set_defaults(handler=run_diff)
    compare = subparsers.add_parser("compare", help="compare the results of two sides")
    where = "result.json, folder of a run, or folder of such folders"
    compare.add_argument("baseline", type=Path, metavar="BASE_RESULT", help=where)
    compare.add_argument("candidate", type=Path, metavar="CAND_RESULT", help=where)
    compare.add_argument("--json", action="store_true", help="print one JSON object")
    compare.add_argument("--metric", help="metric that decides (default: the scenario's headline)")
    compare.add_argument("--margin", type=float, default=2.0, metavar="PERCENT",
                         help="smallest change that matters (default: 2)")  # fmt: skip
    compare.set_defaults(handler=run_compare)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffReport:
    """What `diff --json` prints."""

    schema: int
    diff: Diff
    waterfall: Waterfall
    flame: DiffFlame


def run_diff(options: argparse.Namespace) -> int:
    """`diff BASE CAND [--json] [--each-layer]`: no verdict, so exit 0."""
    from profiler.analysis.diff import SCHEMA, diff
    from profiler.analysis.diffflame import diff_flame
    from profiler.analysis.waterfall import waterfall

    one, other = _profile(options.baseline), _profile(options.candidate)
    fold = not options.each_layer
    found = diff(one, other, fold_layers=fold)
    steps = waterfall(found)
    if options.json:
        flame = diff_flame(one, other, found.measure, fold_layers=fold)
        _print_json(DiffReport(schema=SCHEMA, diff=found, waterfall=steps, flame=flame))
    else:
        print("\n".join(_diff_lines(found, steps)))
    return int(ExitCode.FINE)


def _profile(path: Path) -> StepProfile:
    from profiler.analysis.stepprofile import profile_of_trace

    return profile_of_trace(path)


def run_compare(options: argparse.Namespace) -> int:
    """`compare BASE_RESULT CAND_RESULT`: the exit code is the verdict."""
    from profiler.analysis.compare import compare_launches
    from profiler.analysis.ladder import Settings
    from profiler.analysis.results import load_launches

    if not 0 < options.margin < 100:
        raise UserError(f"margin {options.margin:g} is not between 0 and 100 %", "2 is usual")
    sides = load_launches(options.baseline), load_launches(options.candidate)
    settings = Settings(margin=options.margin / 100)
    found = compare_launches(*sides, settings, options.metric)
    if options.json:
        _print_json(found)
    else:
        print("\n".join(_comparison_lines(found)))
    return found.exit_code


def _print_json(value: object) -> None:
    text = msgspec.json.format(msgspec.json.encode(value), indent=1)
    sys.stdout.buffer.write(text + b"\n")
    sys.stdout.buffer.flush()


def _comparison_lines(found: Comparison) -> list[str]:
    """The verdict first, then every metric, differences and notes."""
    lines = [found.sentence, ""]
    for verdict in found.verdicts:
        interval = f"{change(verdict.low)} to {change(verdict.high)}"
        lines.append(f"  {verdict.title:<28} {verdict.state:<14} {change(verdict.effect):>9}  "
                     f"{interval if verdict.low is not None else ''}".rstrip())  # fmt: skip
    lines += [
        f"  environment: {printable(field.name)}: {printable(str(field.baseline), 60)} -> "
        f"{printable(str(field.candidate), 60)}"
        for field in found.environment
        if field.matters
    ]
    return [*lines, *(f"  note: {note}" for note in found.notes)]


def _diff_lines(found: Diff, steps: Waterfall) -> list[str]:
    """Both steps, the waterfall and the operators with the largest change."""
    lines = [_side_line("baseline", found.baseline), _side_line("candidate", found.candidate), ""]
    lines.append(f"where a step's {_signed(found.change_ns)} come from")
    for bar in steps.bars:
        name = f"idle: {bar.name}" if bar.kind == "idle" else bar.name
        lines.append(f"  {_signed(bar.change_ns):>10}  {printable(middle(name, 80))}")
    lines += ["", f"operators by change of {found.measure} time in an ordinary step"]
    for row in found.rows[:ROWS_SHOWN]:
        sure = " (beyond noise of steps)" if row.significant else ""
        place = f"{row.module}: " if row.module else ""
        name = printable(middle(place + row.operator, 80))
        lines.append(f"  {_signed(row.usual_change_ns):>10}  {name}, {row.how}{sure}")
    return [*lines, "", *(f"note: {note}" for note in found.notes)]


def _side_line(name: str, side: DiffSide) -> str:
    said = [
        f"{name:<9} {printable(side.path)}: {count(side.steps)} steps of {duration(side.step_ns)}",
        f"matched {share(side.matched_share)}",
    ]
    parts = (("opaque", side.opaque_ns), ("outside operators", side.outside_ns),
             ("unlinked", side.unlinked_ns))  # fmt: skip
    said += [f"{what} {duration(ns)}" for what, ns in parts if ns]
    return ", ".join(said)


def _signed(ns: int) -> str:
    """A change of a duration with its sign."""
    sign = "+" if ns > 0 else "−" if ns < 0 else "±"
    return f"{sign}{quantity(abs(ns), 'ns')}"
