"""Traces that were recorded long ago, with all their files in the store."""

from __future__ import annotations

import itertools
import os
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.utils import timezone

from dashboard.models import Artifact, Run, RunArtifact, RunState, Trace, TraceState
from profiler.analysis.report import dump
from tests.factories import make_report, make_run, make_trace, store_artifact

_numbers = itertools.count(1)


def path_of(artifact: Artifact) -> Path:
    """Where the store keeps a file."""
    root = Path(urlsplit(settings.ARTIFACTS_URL).path)
    return root / artifact.sha256[:2] / artifact.sha256


def age_file(artifact: Artifact, days: float) -> Artifact:
    """The file and its row as if stored `days` ago."""
    moment = timezone.now() - timedelta(days=days)
    os.utime(path_of(artifact), (moment.timestamp(), moment.timestamp()))
    Artifact.objects.filter(pk=artifact.pk).update(created_at=moment)
    return artifact


def old_file(days: float, data: bytes | None = None) -> Artifact:
    """A file of its own content unless given, stored `days` ago."""
    content = data if data is not None else f"file {next(_numbers)}".encode()
    return age_file(store_artifact(content), days)


def old_run(days: float, *, first: bool = False) -> Run:
    """A run that succeeded `days` ago; unless it is the `first` another one is Day-0."""
    if not first:
        make_run(RunState.SUCCEEDED)
    moment = timezone.now() - timedelta(days=days)
    return make_run(RunState.SUCCEEDED, created_at=moment, started_at=moment, ended_at=moment)


def old_trace(days: float, *, run: Run | None = None, raw: Artifact | None = None) -> Trace:
    """A trace read `days` ago with every kind of file; of a run the raw file is the run's too."""
    moment = timezone.now() - timedelta(days=days)
    number = next(_numbers)
    report = make_report(span_ns=1_000_000 + number)
    raw = raw or old_file(days)
    files = {
        "redacted": old_file(days),
        "columns": old_file(days),
        "replay": old_file(days),
        "collectives": old_file(days),
        "flame": old_file(days),
        "graph": old_file(days),
        "report": age_file(store_artifact(dump(report)), days),
    }
    if run is not None:
        RunArtifact.objects.create(run=run, attempt=1, name="trace.json.gz", artifact=raw)
    times = {"created_at": moment, "ended_at": moment}
    return make_trace(TraceState.READY, run=run, raw=raw, **files, **times)


def left(trace: Trace) -> set[str]:
    """Which files of a trace are still there; a row without its mark must have its file."""
    names = ("raw", "redacted", "columns", "replay", "collectives", "report", "flame", "graph")
    found = set()
    trace = Trace.objects.select_related(*names).get(pk=trace.pk)
    for name in names:
        artifact = getattr(trace, name)
        there = path_of(artifact).exists()
        assert there == (artifact.removed_at is None), f"{name} of {trace}"
        if there:
            found.add(name)
    return found
