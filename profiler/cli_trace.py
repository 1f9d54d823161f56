"""Command-line handlers of `analyze` and `flame`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.errors import ExitCode, TraceError, printable

if TYPE_CHECKING:
    from profiler.analysis.report import Report

Subparsers = argparse._SubParsersAction


def register(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add `analyze` and `flame` to the command line."""
    analyze = subparsers.add_parser("analyze", help="analyse traces: one, or the ranks of one run")
    analyze.add_argument("traces", nargs="+", type=Path, metavar="TRACE")
    analyze.add_argument("--json", action="store_true", help="print the report as JSON")
    analyze.add_argument("--out", type=Path, metavar="DIR", help="store report, events and flame")
    analyze.add_argument(
        "--redact",
        type=Path,
        metavar="CLEAN.json.gz",
        help="write a copy of the trace without credentials, environment, host and user names",
    )
    analyze.add_argument(
        "--known",
        type=Path,
        metavar="FILE",
        help="what the workload's history and platform say, as the dashboard writes it",
    )
    analyze.set_defaults(handler=run_analyze)
    flame = subparsers.add_parser("flame", help="write a speedscope file of a trace")
    flame.add_argument("trace", type=Path, metavar="TRACE")
    flame.add_argument("-o", "--output", type=Path, required=True, metavar="OUT.speedscope.json")
    flame.set_defaults(handler=run_flame)


def run_analyze(args: argparse.Namespace) -> int:
    """`analyze TRACE [TRACE ...] [--json] [--out DIR] [--redact CLEAN] [--known FILE]`."""
    from profiler.analysis.ingest import ingest
    from profiler.analysis.known import load_known
    from profiler.analysis.report import dump
    from profiler.trace.secrets import redact

    if args.redact is not None:
        if len(args.traces) != 1:
            raise TraceError("--redact takes one trace", "clean the ranks one by one")
        redact(args.traces[0], args.redact)
    known = load_known(args.known) if args.known is not None else None
    report = ingest(args.traces, args.out, known=known)
    if args.json:
        sys.stdout.buffer.write(dump(report) + b"\n")
        sys.stdout.buffer.flush()
    else:
        print(_summary(report))
    return ExitCode.FINE


def run_flame(args: argparse.Namespace) -> int:
    """`flame TRACE -o OUT.speedscope.json`; a name that ends in .gz is compressed."""
    from profiler.analysis.analyse import flame_of
    from profiler.analysis.ingest import analyse

    document = flame_of(analyse(args.trace))
    content = document.compressed() if args.output.suffix == ".gz" else document.content
    try:
        args.output.write_bytes(content)
    except OSError as error:
        reason = error.strerror or str(error)
        raise TraceError(f"{args.output} cannot be written: {reason}", "check the folder") from None
    for cut in document.cuts:
        print(f"flame graph: {cut}", file=sys.stderr)
    return ExitCode.FINE


def _summary(report: Report) -> str:
    """The report in some lines for people."""
    from profiler import units

    trace = report.trace
    lines = [
        f"{printable(trace.path)}: {units.count(trace.events)} events, "
        f"{units.duration(report.span_ns)}, {trace.device_kind}"
    ]
    lines += [
        f"device {printable(row.device)}: busy {units.duration(row.busy_ns)} of "
        f"{units.duration(row.span_ns)}, communication not covered by compute "
        f"{units.duration(row.exposed_comm_ns)}"
        for row in report.timeline
    ]
    lines += [
        f"{units.duration(op.device_self_ns or op.host_self_ns):>10}  "
        f"{units.count(op.count):>8} x  {printable(units.middle(op.name))}"
        for op in report.operators[:10]
    ]
    lines += [f"warning: {printable(text)}" for text in report.quality.warnings]
    return "\n".join(lines)
