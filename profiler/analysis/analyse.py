"""Everything that is computed from one trace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from profiler.analysis.calltree import CallTree, Frames, call_tree
from profiler.analysis.collectives import collective_rows
from profiler.analysis.critical import critical_path
from profiler.analysis.findings import (
    NO_FINDINGS,
    Context,
    FindingsResult,
    finding_rows,
    findings_of,
    pricing_of,
    scene_of,
)
from profiler.analysis.findings.scene import Scene
from profiler.analysis.findings.stored import pack, replayed
from profiler.analysis.findings.typical import typical_calls
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
from profiler.analysis.quality import flow_pairs, quality_report
from profiler.analysis.report import Report, TraceFacts
from profiler.analysis.roofline.peaks import peaks_of
from profiler.analysis.roofline.summary import roofline_report
from profiler.analysis.roofline.table import Roofline, roofline
from profiler.analysis.speedscope import Flame, flame
from profiler.analysis.splits import split_rows
from profiler.analysis.steps import step_rows
from profiler.analysis.timeline import device_key, stream_rows, timelines
from profiler.trace.batch import no_flows
from profiler.trace.codes import distinct
from profiler.trace.heap import keep_blocks, trim
from profiler.trace.intern import encodable
from profiler.trace.link import Structure, link
from profiler.trace.model import Trace
from profiler.trace.normalise import normalise
from profiler.trace.raw import RawTrace
from profiler.trace.sequence import forward_positions

_FEW_EVENTS = 2_000_000
"""Below it speed counts more than memory."""


@dataclass(slots=True)
class Linked:
    """A normalised trace with its structure."""

    trace: Trace
    structure: Structure


@dataclass(slots=True)
class Analysed:
    """One trace with everything computed from it.

    `scene` is the part of it that was replayed, None where nothing was; `roof`
    covers the whole trace and goes with `structure`.
    """

    path: Path
    trace: Trace
    structure: Structure
    tree: CallTree
    frames: Frames
    report: Report
    scene: Scene | None
    findings: FindingsResult
    roof: Roofline


def linked(raw: RawTrace) -> Linked:
    """Normalise and link a raw trace."""
    if raw.events < _FEW_EVENTS:
        keep_blocks()
    trace = normalise(raw)
    structure = link(trace)
    # Nobody follows the arrows from here on, and they are a fifth of a trace.
    trace.quality.flow_pairs = flow_pairs(trace)
    trace.flows = no_flows()
    trim()
    return Linked(trace, structure)


def analysed(path: Path, found: Linked, context: Context | None = None) -> Analysed:
    """All results of a linked trace; `context` is what is known beside it."""
    trace, structure = found.trace, found.structure
    forward = forward_positions(trace, structure)
    tree, frames = call_tree(trace, structure, forward)
    times = operator_times(trace, structure)
    known = context or Context()
    peaks = known.peaks or peaks_of(trace.header.device_names)
    roof = roofline(trace, structure, peaks, times)
    steps = step_rows(trace, structure)
    report = Report(
        trace=_facts(trace, path),
        span_ns=trace.span_ns,
        timeline=timelines(trace),
        streams=stream_rows(trace),
        kernels=kernel_rows(trace),
        operators=operator_rows(trace, structure, times),
        steps=steps,
        launches=launch_report(trace, structure),
        idle=idle_rows(trace, structure),
        collectives=collective_rows(trace, structure),
        quality=quality_report(trace, structure),
        threads=thread_rows(trace, structure),
        modules=module_rows(trace, structure, module_positions(trace, structure, forward)),
        operator_shapes=shape_rows(trace, structure, times),
        memory=memory_curves(trace, structure),
        critical_path=critical_path(trace, structure),
        roofline=roofline_report(roof, peaks),
        splits=split_rows(trace, structure, steps),
    )
    known = replace(known, peaks=peaks)
    scene = scene_of(trace, structure, report, known)
    result = findings_of(scene, known.noise) if scene is not None else NO_FINDINGS
    report = priced(report, result)
    if scene is not None:
        report = replace(report, typical=typical_calls(scene))
    return Analysed(path, trace, structure, tree, frames, report, scene, result, roof)


def priced(report: Report, result: FindingsResult) -> Report:
    """The report with what could be won."""
    return replace(report, findings=finding_rows(result), pricing=pricing_of(result))


def steps_of(results: Analysed) -> bytes | None:
    """The replayed steps as a file that answers questions; None where there was no replay."""
    if results.scene is None:
        return None
    return pack(replayed(results.scene, results.findings.path))


def flame_of(results: Analysed) -> Flame:
    """The speedscope document of an analysed trace."""
    title = encodable(results.path.name)
    return flame(results.trace, results.tree, results.frames, title)


def _facts(trace: Trace, path: Path) -> TraceFacts:
    header = trace.header
    used = {trace.strings[code] for code in distinct(trace.device.device)}
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
