"""From trace files to a report and a store: the one entry for command line and worker."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from profiler.analysis.calltree import CallTree, Frames, call_tree
from profiler.analysis.collectives import Calls, collective_calls, collective_rows
from profiler.analysis.critical import critical_path
from profiler.analysis.idle import idle_rows
from profiler.analysis.kernels import kernel_rows
from profiler.analysis.launches import launch_report
from profiler.analysis.memory import memory_curves
from profiler.analysis.operators import (
    module_positions,
    module_rows,
    operator_rows,
    operator_times,
    shape_rows,
    thread_rows,
)
from profiler.analysis.quality import quality_report
from profiler.analysis.ranks import RankInput, rank_set
from profiler.analysis.report import Report, TraceFacts, dump
from profiler.analysis.speedscope import Flame, flame
from profiler.analysis.steps import step_rows
from profiler.analysis.timeline import device_key, stream_rows, timelines
from profiler.errors import TraceError
from profiler.trace.intern import encodable
from profiler.trace.limits import Limits
from profiler.trace.link import Structure, link
from profiler.trace.model import Trace
from profiler.trace.normalise import normalise
from profiler.trace.read import read
from profiler.trace.sequence import forward_positions

_RANK_IN_NAME = re.compile(r"(?:rank|worker|[^a-z0-9]r)[-_]?(\d{1,6})(?!\d)", re.I)

REPORT_FILE = "report.json"
EVENTS_FILE = "events.parquet"
FLAME_FILE = "flame.speedscope.json.gz"


@dataclass(slots=True)
class Analysed:
    """One trace with everything computed from it."""

    path: Path
    trace: Trace
    structure: Structure
    tree: CallTree
    frames: Frames
    report: Report


def analyse(path: Path, limits: Limits | None = None) -> Analysed:
    """Read and analyse one trace; raises `TraceError` when it is none."""
    trace = normalise(read(path, limits))
    structure = link(trace)
    forward = forward_positions(trace, structure)
    tree, frames = call_tree(trace, structure, forward)
    times = operator_times(trace, structure)
    report = Report(
        trace=_facts(trace, path),
        span_ns=trace.span_ns,
        timeline=timelines(trace),
        streams=stream_rows(trace),
        kernels=kernel_rows(trace),
        operators=operator_rows(trace, structure, times),
        steps=step_rows(trace, structure),
        launches=launch_report(trace, structure),
        idle=idle_rows(trace, structure),
        collectives=collective_rows(trace, structure),
        quality=quality_report(trace, structure),
        threads=thread_rows(trace, structure),
        modules=module_rows(trace, structure, module_positions(trace, structure, forward)),
        operator_shapes=shape_rows(trace, structure, times),
        memory=memory_curves(trace),
        critical_path=critical_path(trace, structure),
    )
    return Analysed(path, trace, structure, tree, frames, report)


def flame_of(analysed: Analysed) -> Flame:
    """The speedscope document of an analysed trace."""
    return flame(analysed.trace, analysed.tree, analysed.frames, encodable(analysed.path.name))


def ingest(paths: Sequence[Path], out: Path | None, *, limits: Limits | None = None) -> Report:
    """Analyse one trace, or several ranks of one run, and store the results in `out`.

    Writes `report.json`, `events.parquet` and `flame.speedscope.json.gz`;
    with several traces those of each rank go to `rank-<n>/`. `out` may be
    None to store nothing. Raises `TraceError` on unusable files.
    """
    if not paths:
        raise TraceError("no trace given", "name at least one file")
    if len(paths) == 1:
        return _ingest_one(paths[0], out, limits)[0]
    return _ingest_set(paths, out, limits)


def _ingest_set(paths: Sequence[Path], out: Path | None, limits: Limits | None) -> Report:
    """Analyse ranks one after the other; the report is the lowest rank's with `ranks` filled."""
    inputs: list[RankInput] = []
    for place, path in enumerate(paths):
        report, calls = _ingest_one(path, out and out / f"rank-{place}", limits)
        rank = rank_of(report, place)
        inputs.append(RankInput(rank, report, calls, report.trace.base_ns))
    if len({one.rank for one in inputs}) < len(inputs):
        inputs = [replace(one, rank=place) for place, one in enumerate(inputs)]
    inputs.sort(key=lambda one: one.rank)
    combined = replace(inputs[0].report, ranks=rank_set(inputs))
    if out is not None:
        (out / REPORT_FILE).write_bytes(dump(combined))
    return combined


def rank_of(report: Report, place: int) -> int:
    """The recorded rank, else a number the file name gives, else the place in the list."""
    if report.trace.rank is not None:
        return report.trace.rank
    found = _RANK_IN_NAME.search(Path(report.trace.path).name)
    return int(found.group(1)) if found else place


def _ingest_one(path: Path, out: Path | None, limits: Limits | None) -> tuple[Report, Calls]:
    analysed = analyse(path, limits)
    report = analysed.report
    calls = collective_calls(analysed.trace, analysed.structure)
    if out is None:
        return report, calls
    try:
        out.mkdir(parents=True, exist_ok=True)
        document = flame_of(analysed)
        (out / FLAME_FILE).write_bytes(document.compressed())
        _store_events(analysed, out / EVENTS_FILE)
        report = _with_warnings(report, [f"flame graph: {cut}" for cut in document.cuts])
        (out / REPORT_FILE).write_bytes(dump(report))
    except OSError as error:
        reason = error.strerror or str(error)
        raise TraceError(f"{out} cannot be written: {reason}", "check the folder") from None
    return report, calls


def _store_events(analysed: Analysed, path: Path) -> None:
    # Loading the Parquet library takes as long as a small trace; only storing needs it.
    from profiler.trace.store import write_events

    write_events(analysed.trace, analysed.structure, path)


def _with_warnings(report: Report, warnings: list[str]) -> Report:
    if not warnings:
        return report
    quality = replace(report.quality, warnings=[*report.quality.warnings, *warnings])
    return replace(report, quality=quality)


def _facts(trace: Trace, path: Path) -> TraceFacts:
    header = trace.header
    used = {trace.strings[code] for code in np.unique(trace.device.device).tolist()}
    return TraceFacts(
        path=encodable(str(path)),
        sha256=trace.sha256,
        events=trace.total_events,
        events_by_category=trace.categories,
        torch_version=header.torch_version,
        device_kind=trace.device_kind,
        devices=sorted(used, key=device_key),
        rank=header.rank,
        world_size=header.world_size,
        start_ns=trace.start_ns,
        base_ns=header.base_ns,
    )
