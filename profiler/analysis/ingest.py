"""From trace files to a report and a store: the one entry for command line and worker."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.errors import TraceError
from profiler.trace.limits import Limits
from profiler.trace.ranks import rank_in_name
from profiler.trace.read import Reading

if TYPE_CHECKING:
    from profiler.analysis.analyse import Analysed, Linked
    from profiler.analysis.collectives import Calls
    from profiler.analysis.findings.scene import Scene
    from profiler.analysis.known import Known
    from profiler.analysis.ranks import RankInput
    from profiler.analysis.report import Report

REPORT_FILE = "report.json"
EVENTS_FILE = "events.parquet"
FLAME_FILE = "flame.speedscope.json.gz"
GRAPH_FILE = "flamegraph.json.gz"
CALLS_FILE = "collectives.json"
STEPS_FILE = "replay.bin"
PROFILE_FILE = "stepprofile.json.gz"


def analyse(path: Path, limits: Limits | None = None) -> Analysed:
    """Read and analyse one trace without storing anything; raises `TraceError` when it is none."""
    with Reading(path, limits or Limits()) as reading:
        # Loaded while helpers already decode.
        from profiler.analysis.analyse import analysed, linked

        return analysed(path, linked(reading.finish()))


def ingest(
    paths: Sequence[Path],
    out: Path | None,
    *,
    limits: Limits | None = None,
    known: Known | None = None,
) -> Report:
    """Analyse one trace, or several ranks of one run, and store the results in `out`.

    Writes `report.json`, `events.parquet`, `flame.speedscope.json.gz`,
    `flamegraph.json.gz`, `stepprofile.json.gz`, where steps were replayed `replay.bin`
    and where there are collectives `collectives.json`; with several traces those of each
    rank go to `rank-<n>/`, in the order given. `out` may be None to store
    nothing. `known` is what the workload's history and platform say beside the
    trace. Raises `TraceError` on unusable files.
    """
    if not paths:
        raise TraceError("no trace given", "name at least one file")
    try:
        if len(paths) == 1:
            return _ingest_one(paths[0], out, limits, known)[0]
        return _ingest_set(paths, out, limits, known)
    except OSError as error:
        reason = error.strerror or str(error)
        raise TraceError(f"{out} cannot be written: {reason}", "check the folder") from None


def _ingest_set(
    paths: Sequence[Path], out: Path | None, limits: Limits | None, known: Known | None
) -> Report:
    """Analyse ranks one after the other; the report is the lowest rank's with `ranks` filled.

    Its findings are those of all ranks together: what equal ranks would save is among them.
    """
    from profiler.analysis.ranks import RankInput, rank_set
    from profiler.analysis.report import dump

    inputs: list[RankInput] = []
    first: tuple[int, Scene | None] | None = None
    for place, path in enumerate(paths):
        report, calls, scene = _ingest_one(path, out and out / f"rank-{place}", limits, known)
        inputs.append(RankInput(rank_of(report, place), report, calls, report.trace.base_ns))
        # Only the lowest rank is kept: a trace is far larger than its report.
        if first is None or inputs[-1].rank < first[0]:
            first = (inputs[-1].rank, scene)
        del scene
    if len({one.rank for one in inputs}) < len(inputs):
        inputs = [replace(one, rank=place) for place, one in enumerate(inputs)]
    inputs.sort(key=lambda one: one.rank)
    combined = replace(inputs[0].report, ranks=rank_set(inputs))
    combined = _levelled(combined, first[1] if first is not None else None, known)
    if out is not None:
        (out / REPORT_FILE).write_bytes(dump(combined))
    return combined


def _levelled(combined: Report, scene: Scene | None, known: Known | None) -> Report:
    from profiler.analysis.analyse import priced
    from profiler.analysis.findings import findings_of

    if scene is None:
        return combined
    scene.ranks = combined.ranks
    return priced(combined, findings_of(scene, known.noise if known is not None else 0.0))


def rank_of(report: Report, place: int) -> int:
    """The recorded rank, else a number the file name gives, else the place in the list."""
    if report.trace.rank is not None:
        return report.trace.rank
    named = rank_in_name(Path(report.trace.path).name)
    return place if named is None else named


def _ingest_one(
    path: Path, out: Path | None, limits: Limits | None, known: Known | None
) -> tuple[Report, Calls, Scene | None]:
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    with Reading(path, limits or Limits()) as reading:
        # Loaded while helpers already decode.
        from profiler.analysis.analyse import analysed, flame_of, linked, steps_of
        from profiler.analysis.calls import dump_calls
        from profiler.analysis.collectives import collective_calls
        from profiler.analysis.findings import context_of
        from profiler.analysis.flame_document import pack
        from profiler.analysis.flamegraph import flame_graph_of
        from profiler.analysis.report import dump
        from profiler.analysis.stepping import step_profile
        from profiler.analysis.stepprofile import dump_profile

        storing = None if out is None else _Storing(out / EVENTS_FILE)
        found = linked(reading.finish())
    if storing is not None:
        storing.start(found)
    results = analysed(path, found, context_of(known) if known is not None else None)
    report, calls = results.report, collective_calls(found.trace, found.structure)
    if out is None or storing is None:
        return report, calls, results.scene
    document = flame_of(results)
    report = _with_warnings(report, [f"flame graph: {cut}" for cut in document.cuts])
    (out / FLAME_FILE).write_bytes(document.compressed())
    (out / GRAPH_FILE).write_bytes(pack(flame_graph_of(results)))
    steps = steps_of(results)
    if steps is not None:
        (out / STEPS_FILE).write_bytes(steps)
    (out / PROFILE_FILE).write_bytes(dump_profile(step_profile(results)))
    if calls.kind:
        (out / CALLS_FILE).write_bytes(dump_calls(calls))
    (out / REPORT_FILE).write_bytes(dump(report))
    storing.finish()
    return report, calls, results.scene


class _Storing:
    """Writes the event store in a thread: encoding and compressing leave the interpreter free."""

    def __init__(self, path: Path) -> None:
        # The Parquet library takes long to load: now, while helpers decode.
        import profiler.trace.store

        self._store = profiler.trace.store
        self._path = path
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None

    def start(self, found: Linked) -> None:
        """Begin writing; the columns must not change from here on (strings may be added)."""
        self._thread = threading.Thread(target=self._run, args=(found,))
        self._thread.start()

    def _run(self, found: Linked) -> None:
        try:
            self._store.write_events(found.trace, found.structure, self._path)
        except Exception as error:
            self._error = error

    def finish(self) -> None:
        """Wait for the file; raises the error that writing met."""
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error


def _with_warnings(report: Report, warnings: list[str]) -> Report:
    if not warnings:
        return report
    quality = replace(report.quality, warnings=[*report.quality.warnings, *warnings])
    return replace(report, quality=quality)
